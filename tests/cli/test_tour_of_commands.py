"""Every command line of the tour of the commands works, in its order, in one folder."""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path

import pytest
from command_line import Command

ROOT = Path(__file__).parents[2]
# What makes each command small; later options win over those of the line.
SMALLER: dict[str, list[str]] = {
    "shop": ["--requests", "2", "-q"],
    "run": ["--rounds", "2", "--seeds", "1", "-q"],
    "evaluate": ["-q"],
    "sweep": ["--engine", "inline", "-q"],
    "compare": [],
    "report": [],
    "tune": ["--rounds", "2", "--tune-seeds", "100", "--report-seeds", "0,1", "--trials", "1", "-q"],
    "reproduce": ["--quick", "--plan"],
    "suite": ["--problem", "bump", "--policy", "uniform", "--rounds", "2", "--engine", "inline", "-q"],
    "clusters": ["--most", "3"],
    "policies": [],
    "envs": [],
    "data": [],
}


def use_it() -> list[list[str]]:
    """The words after `neuclust` of every line of the block, without its comments."""
    page = (ROOT / "docs" / "guides" / "commands.md").read_text(encoding="utf-8")
    block = re.search(r"## Use it\n\n```sh\n(.*?)```", page, re.S)
    assert block is not None
    lines = [shlex.split(line, comments=True) for line in block[1].splitlines()]
    assert {line[0] for line in lines} == {"neuclust"}
    return [line[1:] for line in lines]


def test_the_tour_shows_every_command_that_can_be_made_small() -> None:
    assert {line[0] for line in use_it()} == set(SMALLER)


def test_the_lines_of_the_tour_work_one_after_the_other(
    call: Command, problem: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copy(problem, tmp_path / "movielens-25m.npz")  # a small one of the same name
    (tmp_path / "experiments").mkdir()
    for file in (ROOT / "experiments").glob("*.toml"):
        text = re.sub(r"(?m)^rounds = .*$", "rounds = 2", file.read_text(encoding="utf-8"))
        (tmp_path / "experiments" / file.name).write_text(re.sub(r"(?m)^seeds = .*$", "seeds = 1", text))
    for line in use_it():
        answer = call(*line, *SMALLER[line[0]])
        assert answer.code == 0, (line, answer.err)
    assert (tmp_path / "results" / "clusters" / "report" / "report.html").exists()
