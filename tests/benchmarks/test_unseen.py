"""Problems outside the suite are played once, their truths have the chances they name, and the table tells the runs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from benchmarks.unseen import POOLS, main
from neuclust.experiment.sinks import read_lines


@pytest.mark.parametrize("name", POOLS)
def test_a_pool_has_finite_contexts_and_chances_that_differ(name: str) -> None:
    contexts, chances = POOLS[name](np.random.default_rng([3, 77]))
    again, _ = POOLS[name](np.random.default_rng([3, 77]))
    assert np.isfinite(contexts).all()
    assert np.array_equal(contexts, again)
    assert len(contexts) == len(chances) >= 200
    assert 0 <= chances.min() < chances.max() - 0.5 <= 0.5


def test_a_contest_plays_what_the_file_does_not_hold(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "runs.jsonl"
    order = ["play", "--out", str(out), "--problem", "wine", "--rounds", "60", "--workers", "1"]
    main([*order, "--policy", "uniform"])
    main([*order, "--policy", "uniform", "--policy", "linucb@alpha=0.5", "--policy", "nobody"])
    rows = read_lines(out)
    assert [row["policy"] for row in rows] == ["uniform", "linucb@alpha=0.5"]
    blind, linear = (row["regret"]["60"] for row in rows)
    assert linear < 0.5 * blind
    assert "wine nobody seed 0: " in capsys.readouterr().err
    main(["table", str(out)])
    assert f"{blind:.1f} ({blind:.1f} of 1)" in capsys.readouterr().out
