"""Sweeps in a real MLflow store: parameters, metrics over rounds and files; a store that fails costs no record."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from command_line import Command
from mlflow_store import client, fresh_store, runs

from neuclust import tasks
from neuclust.doors.mlflow.sweeps import MlflowSink
from neuclust.doors.mlflow.tracking import Tracking
from neuclust.errors import ConfigError
from neuclust.experiment.engines.engine import Failure, Outcome, play
from neuclust.experiment.records import RunRecord
from neuclust.experiment.store import read_store

SPEC = """
name = "small"
rounds = 60
slate_size = 2
seeds = 2
[[environment]]
env = "clusters"
arms_per_round = 20
[[policy]]
policy = "linucb"
settings = { alpha = 0.5 }
[[policy]]
policy = "uniform"
"""


@pytest.fixture(autouse=True)
def _alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # artefacts of a SQLite store are beside it
    monkeypatch.delenv("MLFLOW_EXPERIMENT_NAME", raising=False)


def tagged(uri: str, kind: str) -> list[Any]:
    return [run for run in runs(uri, "neuclust") if run.data.tags["neuclust.kind"] == kind]


def test_a_sweep_is_in_mlflow_with_curves_and_pictures(call: Command, tmp_path: Path) -> None:
    uri = fresh_store(tmp_path)
    (tmp_path / "small.toml").write_text(SPEC)
    sweep = ("sweep", "small.toml", "--out", "out", "--engine", "inline", "--quiet", "--mlflow", uri)
    assert call(*sweep) == (0, "", "")
    (parent,), found = tagged(uri, "sweep"), tagged(uri, "run")
    records = read_store(tmp_path / "out")
    assert {run.data.tags["neuclust.key"] for run in found} == set(records)
    for run in found:
        record = records[run.data.tags["neuclust.key"]]
        assert (run.info.status, run.data.tags["mlflow.parentRunId"]) == ("FINISHED", parent.info.run_id)
        assert run.data.params["policy"] == record.policy
        assert (run.data.params["seed"], run.data.params["rounds"]) == (str(record.seed), "60")
        assert run.data.params.get("settings.alpha") == record.settings.get("alpha")
        curve = client(uri).get_metric_history(run.info.run_id, "expected_regret")
        assert sorted((point.step, point.value) for point in curve) == list(record.curve)
        assert run.data.metrics["clipped_regret"] == record.clipped_regret
        kept = client(uri).download_artifacts(run.info.run_id, "record.json", str(tmp_path))
        assert json.loads(Path(kept).read_text()) == json.loads(json.dumps(record.to_json()))
    drawn = {file.path for file in client(uri).list_artifacts(parent.info.run_id, "report/figures")}
    assert any(path.endswith(".svg") for path in drawn)
    assert call(*sweep).code == 0  # all runs are there: nothing is sent twice
    assert len(runs(uri, "neuclust")) == 5


def test_what_a_folder_holds_is_sent_later(call: Command, tmp_path: Path) -> None:
    """A sweep that ran without MLflow, or while that was away, is sent by the same command."""
    uri = fresh_store(tmp_path)
    (tmp_path / "small.toml").write_text(SPEC)
    sweep = ("sweep", "small.toml", "--out", "out", "--engine", "inline", "--quiet")
    assert call(*sweep).code == 0
    assert call(*sweep, "--mlflow", uri).code == 0
    assert len(tagged(uri, "run")) == 4


def test_a_store_that_cannot_be_opened_is_refused_before_anything_runs(
    call: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fresh_store(tmp_path)
    (tmp_path / "small.toml").write_text(SPEC)
    (tmp_path / "broken.db").write_bytes(b"this is no database" * 100)
    monkeypatch.delenv("MLFLOW_ALLOW_FILE_STORE", raising=False)
    for uri in (f"sqlite:///{tmp_path / 'broken.db'}", "a folder", "http://127.0.0.1:9"):
        answer = call("sweep", "small.toml", "--out", "out", "--quiet", "--mlflow", uri)
        assert answer.code == 2
        assert f"--mlflow: expected an MLflow store that can be opened, got {uri} (" in answer.err
    assert not (tmp_path / "out" / "runs").exists()


def test_a_store_that_breaks_costs_one_sentence_and_no_record(tmp_path: Path) -> None:
    uri, said = fresh_store(tmp_path), list[str]()
    sink = MlflowSink(Tracking.opened(uri, "neuclust"), "broken", said.append)
    planned = tasks(["uniform"], "clusters", seeds=range(2), rounds=5)
    played = [Outcome(task, record) for task, record in zip(planned, play(planned), strict=True)]
    (tmp_path / "mlflow.db").write_bytes(b"this is no database any more" * 100)
    for outcome in played:
        sink(outcome)
    sink.close()
    assert len(said) == 1
    assert "the same command sends what is missing" in said[0]


@pytest.mark.parametrize("name", ["bob's", 'the "best"', "both ' and \""])
def test_a_sweep_of_any_name_is_found_again(name: str, tmp_path: Path) -> None:
    """Fails when a quote in a name breaks MLflow's filter, or another sweep's runs pass for this one's."""
    uri = fresh_store(tmp_path)
    (task,) = tasks(["uniform"], "clusters", rounds=5)
    (record,) = play([task])
    assert isinstance(record, RunRecord)
    for sweep in (name, "another", name):
        sink = MlflowSink(Tracking.opened(uri, "neuclust"), sweep, pytest.fail)
        sink.send(task.key, record)
        sink.close()
    assert sorted(run.data.tags["neuclust.sweep"] for run in tagged(uri, "run")) == sorted([name, "another"])
    assert len(tagged(uri, "sweep")) == 2


def test_a_password_is_not_told() -> None:
    with pytest.raises(ConfigError, match=r"got http://me:\*\*\*@127\.0\.0\.1:9 ") as refused:
        Tracking.opened("http://me:se:cret@127.0.0.1:9", "neuclust")
    assert "cret" not in str(refused.value)


def test_a_failed_run_is_failed_in_mlflow_and_may_come_again(tmp_path: Path) -> None:
    uri = fresh_store(tmp_path)
    sink = MlflowSink(Tracking.opened(uri, "neuclust"), "failing", pytest.fail)
    (task,) = tasks(["uniform"], "clusters", rounds=5)
    sink(Outcome(task, Failure("StateError: lost its head", "Traceback …")))
    (failed,) = tagged(uri, "run")
    assert failed.info.status == "FAILED"
    assert "lost its head" in failed.data.tags["neuclust.error"]
    (record,) = play([task])
    assert isinstance(record, RunRecord)
    sink.send(task.key, record)
    sink.close()
    assert sorted(run.info.status for run in tagged(uri, "run")) == ["FAILED", "FINISHED"]


def test_without_mlflow_one_sentence_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mlflow", None)
    with pytest.raises(ConfigError, match=r"needs mlflow, .*pip install 'neuclust\[mlflow\]'"):
        Tracking.opened("sqlite:///nowhere.db", "any")
