"""What cannot work is refused before anything runs: one sentence, an exit code, nothing written."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_line import Command

from neuclust.registry import policy_config

ARRAYS: dict[str, Any] = {
    "arms": np.full((8, 2), 3.0),
    "rounds": np.ones((5, 2)),
    "arm_ids": np.arange(8),
    "round_ids": np.arange(5),
    "features": np.array(["a", "b"]),
}


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--policy", "linucp"], ["'linucp'", "did you mean linucb?"]),
        (["--policy", "neuclust", "--preset", "papr"], ["'papr'", "did you mean paper"]),
        (["--policy", "linucb:papr"], ["'papr'", "default"]),
        (["--policy", "linucb", "--set", "alfa=1"], ["alfa", "did you mean alpha"]),
        (["--policy", "linucb", "--set", "alpha=much"], ["alpha", "expected a number, got 'much'"]),
        (["--policy", "linucb", "--set", "alpha"], ["expected key=value, got 'alpha'"]),
        (["--policy", "linucb", "--set", "alpha=1", "--set", "alpha=2"], ["alpha twice"]),
        (["--policy", "linucb", "--policy", "linucb"], ["linucb twice"]),
        (["--slate-size", "61"], ["slate size from 1 to the 60 arms", "got 61"]),
        (["--slate-size", "9", "--arms-per-round", "8"], ["got 9"]),
        (["--policy", "neuclust", "--clusters", "61"], ["61 clusters", "60 arms", "--clusters"]),
        (["--rounds", "301"], ["at most the 300 rounds", "got 301"]),
        (["--rounds", "0"], ["--rounds"]),
        (["--seeds", "0"], ["--seeds"]),
        (["--slate-reward", "sum"], ["'sum'", "at-least-one"]),
        (["--slate-reward", "table:0,1"], ["6 values"]),
        (["--env", "bump"], ["--env", "--data", "both"]),
        (["--plot", "curve.pdf"], ["--plot", ".png or .svg"]),
        (["--plot", "absent/curve.png"], ["--plot", "absent"]),
        (["--json", "."], ["--json", "expected a file, got the folder"]),
        (["--no-such-option"], ["--no-such-option"]),
    ],
)
def test_bad_options(call: Command, problem: Path, tmp_path: Path, options: list[str], words: list[str]) -> None:
    policy = [] if "--policy" in options else ["--policy", "uniform"]
    answer = call("run", "--data", problem, *policy, "--out", tmp_path / "out", *options)
    assert answer.code == 2
    assert answer.out == ""
    assert all(word in " ".join(answer.err.split()) for word in words), answer.err
    assert "rounds in" not in answer.err, "something ran"
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("options", "end"),
    [
        (["--env", "cluster"], "environment: no built-in problem 'cluster'; did you mean clusters?"),
        (["--env", "Bump"], "no built-in problem 'Bump'; did you mean bump?"),
        (["--env", "yelp"], "no built-in problem 'yelp'; did you mean yelp-twin or yelp-volatile?"),
        (["--policy", "auto", "--set", "foo=1"], "--set foo: no such setting; auto has "),
        (["--policy", "linucb", "--set", "foo=1"], "no such setting; known: encoder.kind, encoder.rho, encoder."),
        (["--policy", "linucb", "--set", "alpha=much"], "expected a number, got 'much' (see `neuclust policies NAME`)"),
        (
            ["--env", "replay"],
            "--env: replay plays back real ratings and needs a file of them; `neuclust data prepare ",
        ),
        (["--policy", "cn_ucb"], "no policy 'cn_ucb'; did you mean cn-ucb?"),
        (
            ["--set", "clustering=3"],
            "expected one setting, got a group of them; set one of its members: clustering.method, ",
        ),
    ],
)
def test_only_names_that_are_close_are_suggested(call: Command, options: list[str], end: str) -> None:
    answer = call("run", *options, "--rounds", 1)
    assert answer.code == 2
    assert end in answer.err
    assert answer.err.count("\n") == 1


def test_the_settings_of_a_policy_are_listed_as_set_takes_them(call: Command) -> None:
    lines = [line.split() for line in call("policies", "linucb").out.splitlines()[3:] if line.strip()]
    listed = {key: value for key, value, *_ in lines}
    assert listed["alpha"] == "1.0"
    for key, value in listed.items():
        policy_config("linucb", overrides={key: value})
    assert "did you mean linucb?" in call("policies", "linucp").err


def test_a_real_process_refuses_with_one_line(command: Command, problem: Path) -> None:
    answer = command("run", "--data", problem, "--policy", "linucp")
    assert answer.code == 2
    assert answer.out == ""
    assert answer.err.startswith("neuclust: ")
    assert answer.err.count("\n") == 1


def test_a_folder_that_cannot_be_written_is_found_before_the_run(call: Command, problem: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("here first")
    for option in ("--out", "--save"):
        answer = call("run", "--data", problem, "--policy", "uniform", option, tmp_path / "file/folder")
        assert answer.code == 2
        assert f"{option}: expected a folder that can be written" in answer.err
        assert answer.err.count("\n") == 1
    if os.geteuid() != 0:  # root may write anywhere
        (tmp_path / "shut").mkdir(mode=0o555)
        answer = call("run", "--data", problem, "--policy", "uniform", "--out", tmp_path / "shut/out")
        assert (answer.code, "permission denied" in answer.err) == (2, True)


def test_a_folder_with_other_things_is_no_place_for_a_policy(call: Command, problem: Path, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    answer = call("run", "--data", problem, "--policy", "uniform", "--save", tmp_path)
    assert (answer.code, "--save: expected a new folder or an earlier save" in answer.err) == (2, True)


def write_nan(path: Path) -> None:
    arms = ARRAYS["arms"].copy()
    arms[3, 1] = np.nan
    np.savez(path, **(ARRAYS | {"arms": arms}))


def write_truncated(path: Path) -> None:
    np.savez(path, **ARRAYS)
    path.write_bytes(path.read_bytes()[:-40])


def write_pickled(path: Path) -> None:
    np.savez(path, **(ARRAYS | {"features": np.array(["a", None], dtype=object)}))


def write_text(path: Path) -> None:
    path.write_text("arms,rounds\n1,2\n")


def write_without_rounds(path: Path) -> None:
    np.savez(path, **{name: array for name, array in ARRAYS.items() if name != "rounds"})


@pytest.mark.parametrize(
    ("write", "words"),
    [
        (write_nan, "arms[3, 1]: expected a finite number, got nan"),
        (write_truncated, "damaged or foreign"),
        (write_pickled, "pickled objects, which are never loaded"),
        (write_text, "damaged or foreign"),
        (write_without_rounds, "missing rounds"),
        (None, "could not read it (No such file or directory)"),
    ],
)
def test_bad_data(call: Command, tmp_path: Path, write: object, words: str) -> None:
    path = tmp_path / "bad.npz"
    if callable(write):
        write(path)
    answer = call("run", "--data", path, "--policy", "uniform", "--slate-size", 2, "--out", tmp_path / "out")
    assert answer.code == 65
    assert words in answer.err
    assert str(path) in answer.err
    assert answer.err.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_bad_data_in_a_real_process(command: Command, tmp_path: Path) -> None:
    write_truncated(tmp_path / "bad.npz")
    answer = command("run", "--data", tmp_path / "bad.npz", "--json", "-")
    assert (answer.code, answer.out) == (65, "")
    assert answer.err.count("\n") == 1
