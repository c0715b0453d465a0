"""Runs played where there is no folder of records are found done by the command that would have played them."""

from __future__ import annotations

from pathlib import Path

from neuclust.experiment.sinks import read_lines
from neuclust.experiment.spec import read_spec
from neuclust.experiment.store import read_store
from neuclust.experiment.sweep import standing
from neuclust.experiment.tasks import tasks_of
from tools.portable import main

SWEEP = """
name = "small"
rounds = 5
seeds = 2

[[environment]]
env = "quadratic"

[[policy]]
policy = "{policy}"
"""


def held(lines: Path) -> set[str]:
    """Keys a file holds."""
    return {row["key"] for row in read_lines(lines)}


def test_runs_come_home_under_their_keys_and_are_not_played_twice(tmp_path: Path) -> None:
    files = [tmp_path / f"{policy}.toml" for policy in ("linucb", "uniform")]
    for file in files:
        file.write_text(SWEEP.format(policy=file.stem))
    lines, folder = tmp_path / "runs.jsonl", tmp_path / "records"
    asked = [word for file in files for word in ("--sweep", str(file))]
    assert main(["play", "--out", str(lines), "--workers", "1", *asked]) == 0
    once = lines.read_text()
    assert main(["play", "--out", str(lines), "--workers", "1", *asked]) == 0
    assert lines.read_text() == once
    assert main(["take", str(lines), "--into", str(folder), "--sweep", str(files[0])]) == 0
    tasks = tasks_of(read_spec(files[0]))
    found = standing(folder, tasks)
    assert (len(found.held), found.missing, found.others) == (2, (), 0)
    assert {record.policy for record in read_store(folder).values()} == {"linucb"}
    assert held(lines) > {task.key for task in tasks}


def test_a_line_that_a_kill_cut_short_is_played_again(tmp_path: Path) -> None:
    file, lines = tmp_path / "linucb.toml", tmp_path / "runs.jsonl"
    file.write_text(SWEEP.format(policy="linucb"))
    order = ["play", "--out", str(lines), "--workers", "1", "--sweep", str(file)]
    assert main(order) == 0
    whole = held(lines)
    lines.write_text(lines.read_text()[:-40])
    assert len(held(lines)) == 1
    assert main(order) == 0
    assert held(lines) == whole
