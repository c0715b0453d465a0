"""A folder of records is read with its failures."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from invented_records import MakeRecord

from neuclust.analysis.sources import Failure, read_source
from neuclust.errors import DataError
from neuclust.experiment.records import write_runs
from neuclust.experiment.store import open_store, write_run


def test_a_store_is_read_with_its_failures_but_not_those_played_since(record: MakeRecord, tmp_path: Path) -> None:
    open_store(tmp_path / "store", make=True)
    write_run(tmp_path / "store", "aa", record("linucb", 0, 10.0))
    notes = tmp_path / "store" / "failures"
    notes.mkdir()
    (notes / "aa.json").write_text(json.dumps({"error": "settled"}))
    (notes / "bb.json").write_text(json.dumps({"error": "lost", "run": "cn-ucb, seed 1", "traceback": "deep"}))
    (notes / "cc.json").write_text("{")
    source = read_source(tmp_path / "store")
    assert [run.policy for run in source.records] == ["linucb"]
    assert source.failures == (Failure("cn-ucb, seed 1", "lost", "deep"), Failure("cc", "its note could not be read"))


def test_a_folder_and_a_file_of_runs_are_the_same_source(record: MakeRecord, tmp_path: Path) -> None:
    write_runs(tmp_path / "runs.json", [record("linucb", 0, 10.0)])
    assert read_source(tmp_path) == read_source(tmp_path / "runs.json")


def test_nothing_to_report_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"store\.json or runs\.json inside"):
        read_source(tmp_path)
    write_runs(tmp_path / "runs.json", [])
    with pytest.raises(DataError, match="at least one run"):
        read_source(tmp_path)
