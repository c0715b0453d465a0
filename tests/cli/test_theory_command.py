"""`neuclust theory` from end to end: what it says and writes, and what it refuses in a sentence."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_line import Command
from datasets import dataset_of

SMALL = ("--contexts", "80", "--first", "20", "--rounds", "40", "--slate-size", "3", "--policy", "neuclust:paper")
PICTURES = ("dimension", "elbow", "regret", "lemma3", "gamma", "promises", "drift", "calibration", "separation")


def numbers(value: Any) -> list[Any]:
    """Every leaf of a document."""
    if isinstance(value, dict):
        return [leaf for each in value.values() for leaf in numbers(each)]
    return [leaf for each in value for leaf in numbers(each)] if isinstance(value, list) else [value]


def test_a_problem_is_analysed_written_and_said(command: Command, problem: Path, tmp_path: Path) -> None:
    folder, file = tmp_path / "out", tmp_path / "theory.json"
    answer = command("theory", "--data", problem, *SMALL, "--out", folder, "--json", file)
    assert answer.code == 0, answer.err
    assert "\x1b" not in answer.out + answer.err  # piped: no control characters
    for words in ("The effective dimension is d̃ = ", "form ", "grows like t^", "Assumption 5 asks", "T1. ", "T5. "):
        assert words in answer.out
    drawn = {f"{name}.{kind}" for name in PICTURES for kind in ("svg", "png")}
    assert {each.name for each in folder.iterdir()} == drawn | {"theory.html", "theory.json"}
    made = json.loads(file.read_text())
    assert made == json.loads((folder / "theory.json").read_text())
    assert all(math.isfinite(each) for each in numbers(made) if isinstance(each, float))
    exact, bracket, probes = made["effective_dimension_methods"]
    assert made["effective_dimension"] == exact["value"]
    assert bracket["low"] - 1e-9 <= exact["value"] <= bracket["high"] + 1e-9
    assert probes["low"] <= exact["value"] <= probes["high"]
    assert made["run"]["rounds"] == 40
    page = (folder / "theory.html").read_text()
    assert "Where the statement does not hold as printed" in page
    assert 'src="http' not in page
    assert 'href="http' not in page
    assert "$10" not in page
    assert "mathdefault" not in page
    assert f"neuclust theory --data {problem}" in page
    assert "--contexts 80" in page


def test_the_document_alone_on_stdout(command: Command, problem: Path) -> None:
    answer = command("theory", "--data", problem, *SMALL, "--play", "0", "--json", "-", "--quiet")
    assert answer.code == 0, answer.err
    assert answer.err == ""
    assert json.loads(answer.out)["run"] is None


def test_recorded_runs_are_played_again_and_agree(call: Command, problem: Path, tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    played = ("--policy", "neuclust:paper", "--policy", "linucb", "--rounds", "20", "--slate-size", "3", "--seeds", "3")
    assert call("run", "--data", problem, *played, "--out", runs, "--quiet").code == 0
    few = ("--contexts", "40", "--first", "10", "--json", "-", "--quiet")
    made = json.loads(call("theory", "--run", runs, "--data", problem, *few).out)
    assert made["run"]["policy"] == "neuclust:paper"
    assert made["run"]["same_as_recorded"] is True
    assert made["run"]["growth"]["runs"] == 3
    other = json.loads(call("theory", "--run", runs, "--data", problem, "--policy", "linucb", *few).out)
    assert other["run"]["same_as_recorded"] is True
    assert other["run"]["lemma_3"] is None  # no net: nothing of the lemma's to look at
    refused = call("theory", "--run", runs, "--policy", "bump", *few)
    assert refused.code == 2
    assert "'bump'" in refused.err


def saved(folder: Path, arms: Any, rounds: Any) -> Path:
    file = folder / "small.npz"
    dataset_of("small", np.asarray(arms), np.asarray(rounds)).save(file)
    return file


def arrays(folder: Path, **changed: Any) -> Path:
    """A prepared file with arrays of its own, however wrong."""
    held: dict[str, Any] = {
        "arms": np.full((8, 2), 3.0), "rounds": np.ones((5, 2)), "arm_ids": np.arange(8), "round_ids": np.arange(5),
        "features": np.array(["a", "b"]),
    }  # fmt: skip
    held |= changed
    file = folder / "wrong.npz"
    np.savez(file, **{name: each for name, each in held.items() if each is not None})
    return file


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"arms": None}, ["arms"]),
        ({"arms": np.zeros((0, 2)), "arm_ids": np.arange(0)}, ["arm"]),
        ({"arms": np.full((8, 2), np.nan)}, ["arms"]),
        ({}, ["distinct contexts", "one and the same", "singular"]),
        ({"arms": np.zeros((8, 2))}, ["distinct contexts", "none"]),
    ],
)
def test_files_that_say_nothing(
    call: Command, tmp_path: Path, changed: dict[str, Any], words: list[str]
) -> None:  # fmt: skip
    answer = call("theory", "--data", arrays(tmp_path, **changed), "--out", tmp_path / "out")
    refused(answer, 65, words)
    assert not (tmp_path / "out").exists()


def refused(answer: Any, code: int, words: list[str]) -> None:
    """One sentence, the exit code, nothing on stdout."""
    said = " ".join(answer.err.split())
    assert answer.code == code, answer.err
    assert answer.out == ""
    assert "Traceback" not in answer.err
    assert all(word in said for word in words), said


def test_one_context_alone(call: Command, tmp_path: Path) -> None:
    file = saved(tmp_path, [[3.0, 4.0]], np.ones((5, 2)))
    refused(
        call("theory", "--data", file, "--slate-size", "1"), 65, ["at least 2 distinct contexts", "one and the same"]
    )


def test_contexts_along_one_ray_are_analysed(call: Command, tmp_path: Path) -> None:
    """Distinct contexts, one direction: H has rank one, which is said and not a failure."""
    file = saved(tmp_path, 2.0 ** -np.arange(8.0)[:, None] * [[4.5, 3.2]], np.ones((30, 2)))
    answer = call("theory", "--data", file, "--slate-size", "2", "--play", "0", "--json", "-")
    assert answer.code == 0, answer.err
    made = json.loads(answer.out)
    assert made["contexts"]["directions"] == 1
    assert made["norm_bound"]["lambda_0"] == 0


@pytest.mark.parametrize("width", ["1000000000", "1" + "0" * 400])
def test_widths_that_no_machine_holds(call: Command, problem: Path, tmp_path: Path, width: str) -> None:
    answer = call("theory", "--data", problem, "--set", f"arms.network.width={width}", "--out", tmp_path / "out")
    refused(answer, 2, ["width"])
    assert not (tmp_path / "out").exists()


def test_places_without_a_problem(call: Command, problem: Path, tmp_path: Path) -> None:
    text = tmp_path / "text.npz"
    text.write_text("no archive")
    empty = tmp_path / "empty"
    empty.mkdir()
    refused(call("theory", "--data", tmp_path / "absent.npz"), 65, ["absent.npz"])
    refused(call("theory", "--data", text), 65, ["text.npz"])
    assert call("theory", "--run", empty).code in (2, 65)
    refused(call("theory"), 2, ["--data", "--run"])
    refused(call("theory", "--data", problem, "--env", "bump"), 2, ["both"])
    refused(call("theory", "--data", problem, "--contexts", "1"), 2, ["--contexts"])
    refused(call("theory", "--data", problem, "--json", "absent/x.json"), 2, ["--json"])
    assert call("theory", "--data", problem, *SMALL, "--out", text).code == 2
