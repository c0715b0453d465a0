"""`neuclust suite` on a few small problems."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest
from command_line import Command

SMALL = ("--rounds", "8", "--problem", "clusters", "--problem", "cascade", "--engine", "inline")


@pytest.fixture(autouse=True)
def _no_shared_data(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NEUCLUST_SHARED_DATA", raising=False)


def test_plays_prints_and_writes_and_plays_nothing_twice(call: Command, tmp_path: Path) -> None:
    arguments = ("suite", *SMALL, "--policy", "linucb", "--policy", "uniform", "--seeds", "2", "--out", tmp_path / "s")
    first = call(*arguments)
    assert first.code == 0, first.err
    assert "clusters (T=8)" in first.out
    assert "8 runs: 0 done, 8 to do" in first.err
    rows = list(csv.DictReader((tmp_path / "s" / "report" / "suite.csv").open()))
    assert {(row["problem"], row["policy"], row["seeds"]) for row in rows} == {
        (f"{problem} (T=8)", policy, "2") for problem in ("clusters", "cascade") for policy in ("linucb", "uniform")
    }
    assert sum(row["best"] == "True" for row in rows) == 2
    assert "**" in (tmp_path / "s" / "report" / "suite.md").read_text()
    assert (tmp_path / "s" / "report" / "suite.svg").read_text().count("<svg") == 1
    assert (tmp_path / "s" / "report" / "report.html").is_file()
    again = call(*arguments)
    assert "8 runs: 8 done, 0 to do" in again.err
    assert again.out == first.out


def test_prints_references(call: Command, tmp_path: Path) -> None:
    answer = call("suite", *SMALL, "--seeds", "1", "--references", "--out", tmp_path / "s")
    assert answer.code == 0, answer.err
    lines = answer.out.strip().splitlines()
    assert [line.split("|")[1].strip() for line in lines[2:]] == ["clusters", "cascade"]
    assert all(float(cell) >= 0 for line in lines[2:] for cell in line.split("|")[3:8])


def test_says_what_it_leaves_out_and_refuses_what_it_does_not_know(call: Command, tmp_path: Path) -> None:
    alone = call("suite", "--problem", "replay", "--out", tmp_path / "r", "--policy", "uniform")
    assert "replay is left out" in alone.err
    wrong = call("suite", "--problem", "bumps", "--out", tmp_path / "w", "--policy", "uniform")
    assert wrong.code == 2
    assert "--problem: expected one of" in wrong.err


@pytest.mark.parametrize("wrong", [["--policy", "linucp"], ["--problem", "bumb"], ["--set", "foo=1"]])
def test_a_slip_leaves_no_folder_behind(call: Command, tmp_path: Path, wrong: list[str]) -> None:
    answer = call("suite", "--quick", *wrong, "--out", tmp_path / "out")
    assert answer.code == 2
    assert answer.err.count("\n") == 1
    assert not (tmp_path / "out").exists()
