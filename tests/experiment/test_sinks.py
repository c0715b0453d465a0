"""Sinks: what was written is there after a kill, in the order of the tasks, and failures are no records."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from sweep_files import Ear, tiny_tasks

from neuclust.errors import ConfigError, StateError
from neuclust.experiment.engines.engine import Failure, Outcome, play_inline
from neuclust.experiment.records import read_runs
from neuclust.experiment.sinks import JsonLines, RunsFiles, StoreSink, read_lines
from neuclust.experiment.store import open_store, read_store


def test_a_file_of_runs_is_whole_after_every_run_and_in_the_order_of_the_tasks(tmp_path: Path) -> None:
    tasks = tiny_tasks(tmp_path, seeds=1)
    outcomes = list(play_inline(tasks, Ear()))
    sink, file = RunsFiles([tmp_path / "runs.json"], tasks), tmp_path / "runs.json"
    for count, outcome in enumerate(reversed(outcomes), start=1):
        sink(outcome)
        assert len(read_runs(file)) == count
    assert [record.policy for record in read_runs(file)] == [task.contestant.policy for task in tasks]
    with pytest.raises(ConfigError, match="too narrow"):
        sink(Outcome(tasks[0], Failure.of(ConfigError("too narrow"))))
    assert sink.records == read_runs(file)


def test_a_store_keeps_records_and_failures_and_no_run_cut_short(tmp_path: Path) -> None:
    tasks, folder = tiny_tasks(tmp_path, seeds=1), tmp_path / "store"
    open_store(folder, make=True)
    sink = StoreSink(folder)
    sink(Outcome(tasks[0], Failure("StateError: lost", "Traceback")))
    told = json.loads((folder / "failures" / f"{tasks[0].key}.json").read_text())
    assert (told["run"], told["error"], told["config"]["seed"]) == (tasks[0].title, "StateError: lost", 0)
    (outcome,) = play_inline(tasks[:1], Ear())
    sink(Outcome(tasks[1], replace(outcome.record(), interrupted=True)))
    assert read_store(folder) == {}
    sink(outcome)
    assert list(read_store(folder)) == [tasks[0].key]
    assert not list((folder / "failures").iterdir())


def test_lines_go_on_behind_one_that_was_cut_short(tmp_path: Path) -> None:
    file = tmp_path / "runs.jsonl"
    assert read_lines(file) == []
    with JsonLines(file) as lines:
        lines.write({"n": 1})
        assert read_lines(file) == [{"n": 1}]  # flushed
    with file.open("a") as stream:
        stream.write('{"n": 2')
    assert read_lines(file) == [{"n": 1}]
    with JsonLines(file) as lines:
        lines.write({"n": 3})
    assert read_lines(file) == [{"n": 1}, {"n": 3}]


def test_a_failure_without_an_exception_names_its_run(tmp_path: Path) -> None:
    (task, *_) = tiny_tasks(tmp_path, seeds=1)
    with pytest.raises(StateError, match=r"uniform on tiny, seed 0: the worker process died"):
        Outcome(task, Failure("the worker process died")).record()
