"""Files that the real obp made and read (obp_feedback.json, by tools/obp_feedback.py), and logs written in its form."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from logged_runs import DIM, K, explorer, feedback_of, profiles, write_run
from patience import HANG_SECONDS

from neuclust import evaluate_log
from neuclust.core import Round
from neuclust.errors import ConfigError, DataError
from neuclust.logs import LogWriter, RunStart, open_log, read_obp, write_obp
from tools.obp_feedback import our_log

ROOT = Path(__file__).parents[2]
RECORD: dict[str, Any] = json.loads((Path(__file__).parent / "obp_feedback.json").read_text(encoding="utf-8"))


def uniform(path: Path, estimator: str, **options: Any) -> float:
    """What slates drawn evenly would have earned, by us."""
    found = evaluate_log(path, ["uniform"], estimator=estimator, learning="replay", fit=0.0, **options)
    return float(found.policies[0].estimate)


@pytest.mark.parametrize("kind", ["slates", "plain"])
def test_feedback_of_obp_is_judged_as_obp_judges_it(kind: str, tmp_path: Path) -> None:
    """Fails when rows, chances or rewards of obp's own dictionaries come out wrong."""
    np.savez(tmp_path / "a.npz", **RECORD["feedback"][kind])
    for estimator, estimate in RECORD["estimates"][kind].items():
        assert uniform(tmp_path / "a.npz", estimator, format="obp") == pytest.approx(estimate, abs=1e-12)


@pytest.mark.parametrize(("kind", "slots"), [("ours", 3), ("ours, one slot", 1)])
def test_obp_judges_our_files_as_we_judge_our_logs(kind: str, slots: int, tmp_path: Path) -> None:
    """Fails when a log changes on the way into obp's form: the record holds what obp said of the written file."""
    log = tmp_path / "a.jsonl"
    our_log(log, slots)
    for estimator, estimate in RECORD["estimates"][kind].items():
        assert uniform(log, estimator) == pytest.approx(estimate, abs=1e-12)
    assert write_obp(open_log(log), tmp_path / "a.npz") == 60
    for estimator, estimate in RECORD["estimates"][kind].items():
        assert uniform(tmp_path / "a.npz", estimator, format="obp") == pytest.approx(estimate, abs=1e-12)


def test_a_log_comes_back_from_obp(tmp_path: Path) -> None:
    """Fails when ids, slates, rewards, chances, profiles or queries change on the way."""
    our_log(tmp_path / "a.jsonl")
    ours = open_log(tmp_path / "a.jsonl")
    write_obp(ours, tmp_path / "a.npz")
    back = read_obp(tmp_path / "a.npz")
    for one, two in zip(ours.decisions(), back.decisions(), strict=True):
        assert two.round.arm_ids.tolist() == one.round.arm_ids.tolist()
        assert two.round.profiles.tolist() == one.round.profiles.tolist()
        assert one.round.query is not None
        assert two.round.contexts[0, 2:].tolist() == one.round.query.tolist()  # what all arms share is a column now
        assert (two.slate.tolist(), two.rewards.tolist()) == (one.slate.tolist(), one.rewards.tolist())
        assert one.propensities is not None
        np.testing.assert_allclose(np.asarray(two.propensities), one.propensities, rtol=1e-12)
    write_obp(back, tmp_path / "b.npz")  # and a second time to the same file
    with np.load(tmp_path / "a.npz") as first, np.load(tmp_path / "b.npz") as second:
        assert {name: first[name].shape for name in first.files} == {name: second[name].shape for name in second.files}
        assert all(np.allclose(first[name], second[name], rtol=1e-12) for name in first.files)


def test_what_obp_has_no_place_for_is_refused_or_left_out_by_leave(tmp_path: Path) -> None:
    """Fails when eligibility or features are dropped silently, or a refused file is left behind."""
    log, out = tmp_path / "a.jsonl", tmp_path / "a.npz"
    write_run(log, 8)
    with pytest.raises(DataError, match=r"a context of the same length in every decision.*lossy=True"):
        write_obp(open_log(log), out, unseen=0.0)
    some = tmp_path / "some.jsonl"
    with LogWriter(some) as writer:  # the second round offers fewer arms
        writer.start(RunStart("some", "", K, DIM))
        whole = Round(1, torch.arange(9), profiles(), None, K)
        for round in (whole, whole.only(torch.arange(6), K)):
            writer.decided(round, explorer().select(round), feedback_of(1))
    with pytest.raises(DataError, match=r"eligible in every decision.*lossy=True"):
        write_obp(open_log(some), out)
    with pytest.raises(DataError, match="expected rewards of all slots, which obp needs"):
        write_obp(open_log(log), out, lossy=True)
    with pytest.raises(ConfigError, match=r"\.npz"):
        write_obp(open_log(log), tmp_path / "a.json")
    assert not out.exists()
    assert write_obp(open_log(log), out, unseen=0.0, lossy=True) == 8
    kept = read_obp(out)
    for one, two in zip(open_log(log).decisions(), kept.decisions(), strict=True):
        assert one.round.arm_ids[one.slate].tolist() == two.round.arm_ids[two.slate].tolist()


def test_the_record_says_how_it_was_made() -> None:
    assert (RECORD["obp"], RECORD["command"].split()[2]) == ("0.5.7", "tools.obp_feedback")


@pytest.mark.soak
def test_the_real_obp_says_what_the_record_says(tmp_path: Path) -> None:
    """Makes an environment with obp in it, which reads and judges our files there."""
    home = tmp_path / "venv"
    python = home / "bin" / "python"
    _done([sys.executable, "-m", "venv", str(home)])
    packages = Path(sysconfig.get_path("purelib", vars={"base": str(home), "platbase": str(home)}))
    (packages / "outer.pth").write_text("\n".join(path for path in sys.path if path.endswith("site-packages")))
    install = [str(python), "-m", "pip", "install", "-q", "--no-deps", "--ignore-requires-python"]
    found = subprocess.run([*install, "obp==0.5.7", "seaborn"], capture_output=True, text=True, timeout=HANG_SECONDS)
    if found.returncode != 0:
        pytest.skip(f"obp cannot be installed here: {found.stderr.strip().splitlines()[-1][:200]}")
    _done([str(python), "-m", "tools.obp_feedback", "--out", str(tmp_path / "found.json")])
    assert json.loads((tmp_path / "found.json").read_text()) == RECORD


def _done(command: list[str]) -> None:
    environment = os.environ | {"PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"}
    done = subprocess.run(
        command, capture_output=True, text=True, env=environment, cwd=ROOT, timeout=HANG_SECONDS
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
