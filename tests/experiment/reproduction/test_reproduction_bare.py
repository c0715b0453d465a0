"""Runs of a reproduction on a bare machine, and `neuclust reproduce` that takes them up."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from bare_machine import bare_run
from command_line import Command

from neuclust.experiment.reproduction.bare import main

FEW = ("--runs", "2", "--seeds", "2", "--rounds", "6")
PHASES = ("--phase", "paper", "--policy", "uniform", "--policy", "linucb")


def test_lines_are_played_once_and_taken_up(
    tmp_path: Path, problem: Path, call: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    out, folder = tmp_path / "runs.jsonl", tmp_path / "folder"
    words = ["movielens", "--data", str(problem), *PHASES, *FEW, "--clusters", "1,3", "--engine", "inline"]
    words += ["--out", str(out)]
    assert main([*words, "--minutes", "0"]) == 1
    assert main(words) == 0
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    assert [(row["policy"], row["seed"]) for row in rows] == [
        *(("linucb", 0), ("uniform", 0), ("linucb", 1), ("uniform", 1))
    ]
    before = out.read_bytes()
    assert main(words) == 0
    assert out.read_bytes() == before
    capsys.readouterr()
    asked = ["reproduce", "movielens", "--data", problem, *FEW, "--clusters", "1,3", "--cluster-seeds", "1"]
    asked += ["--policy", "uniform", "--out", folder, "--engine", "inline"]
    answer = call(*asked, "--done", out)
    assert answer.code == 0, answer.err
    assert "4 runs taken up" in answer.err
    summary = json.loads((folder / "summary.json").read_text())
    linear = next(row for row in summary["rows"] if (row["policy"], row["protocol"]) == ("linucb", "paper"))
    own = [row["expected_regret"] for row in rows if row["policy"] == "linucb"]
    assert linear["expected_regret_mean"] == pytest.approx(sum(own) / 2)
    missing = call(*asked, "--done", tmp_path / "none.jsonl")
    assert (missing.code, "no file" in missing.err) == (2, True)


def test_a_bare_machine_has_what_it_imports(tmp_path: Path, problem: Path) -> None:
    words = (
        "movielens",
        "--data",
        str(problem),
        *PHASES,
        *FEW,
        "--clusters",
        "1,3",
        "--out",
        str(tmp_path / "x.jsonl"),
    )
    done = bare_run("neuclust.experiment.reproduction.bare", *words, "--engine", "inline")
    assert done.returncode == 0, done.stderr
    assert "4 runs played" in done.stderr


def test_what_is_asked_for_wrongly_is_refused(
    tmp_path: Path, problem: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["movielens", "--data", str(problem), "--out", str(tmp_path / "x.jsonl"), *FEW, "--clusters", "1,3"]
    assert main([*words, "--phase", "figures"]) == 2
    assert "--phase: expected" in capsys.readouterr().err
    assert main([*words, "--phase", "paper", "--clusters", "999"]) == 2
    assert "at most as many clusters" in capsys.readouterr().err
