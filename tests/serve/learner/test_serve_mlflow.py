"""A learner that tells a real MLflow store how it goes, and learns on where that store is broken."""

from __future__ import annotations

import logging
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from command_line import Command
from mlflow_store import client, fresh_store, runs
from patience import HANG_SECONDS
from running_service import RunningService
from simulated_service import stored, visits

from neuclust.client import Client
from neuclust.serve.learner import reporting
from neuclust.serve.learner.process import run_learner
from neuclust.serve.learner.publishing import Pace
from neuclust.serve.store.contract import Store
from tools.own_service import OwnService

EAGER = Pace(publish=0.0, share=0.0, state=0.02, progress=0.03, summary=0.0, slice=0.01)
SQLITE = pytest.mark.parametrize("store_address", ["sqlite"], indirect=True)  # where the kind makes no difference


def learned(store: Store, address: str, seconds: float = 0.2) -> None:
    """A learner until it has applied all events and published a version of them."""
    end = threading.Event()
    thread = threading.Thread(target=run_learner, args=(address, end, EAGER, seconds))
    thread.start()
    deadline = time.monotonic() + HANG_SECONDS
    (head,) = store.heads()
    while not (versions := store.versions(head.id)) or versions[0].seq < head.seq:
        assert time.monotonic() < deadline
        assert thread.is_alive()
        time.sleep(0.01)
    end.set()
    thread.join(HANG_SECONDS)
    assert not thread.is_alive()


@pytest.fixture(autouse=True)
def _often(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(reporting, "EVERY", 0.05)
    monkeypatch.setattr(reporting, "LAST", HANG_SECONDS)
    monkeypatch.delenv("MLFLOW_EXPERIMENT_NAME", raising=False)


@SQLITE
def test_mlflow_is_told_how_learning_goes(
    store: Store, store_address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fails when numbers of MLflow are not those of the store, or a second learner begins another run."""
    uri = fresh_store(tmp_path)
    monkeypatch.setenv(reporting.VARIABLE, uri)
    service = stored(store)
    told: list[Any] = []
    for seed in range(2):
        visits(service, 30, seed=seed)
        learned(store, store_address)
        (run,) = runs(uri, reporting.EXPERIMENT)
        (head,) = store.heads()
        progress = store.progress(head.id)
        assert progress is not None
        assert run.info.status == "FINISHED"
        assert run.data.tags["neuclust.recommender"] == head.name
        assert run.data.params["slate_size"]
        found = run.data.metrics
        assert (found["lessons"], found["lag_events"]) == (progress.lessons, 0)
        assert (found["events"], found["version"]) == (head.seq, store.versions(head.id)[0].version)
        assert 0 < found["live_clicks_per_request"] < 10
        assert found["live_requests"] == 30 * (seed + 1)
        told.append(run.info.run_id)
    assert told[0] == told[1]
    steps = [point.step for point in client(uri).get_metric_history(told[0], "lessons")]
    assert len(set(steps)) >= 2


@SQLITE
@pytest.mark.parametrize("broken", ["no database", "gone"])
def test_a_broken_mlflow_does_not_stop_learning(
    broken: str,
    store: Store,
    store_address: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Fails when learning ends, or waits, because of MLflow."""
    fresh_store(tmp_path)
    (tmp_path / "broken.db").write_bytes(b"this is no database" * 100)
    uri = f"sqlite:///{tmp_path / 'broken.db'}" if broken == "no database" else "http://127.0.0.1:9"
    monkeypatch.setenv(reporting.VARIABLE, uri)
    monkeypatch.setattr(reporting, "LAST", 0.1)
    visits(stored(store), 20, seed=0)
    with caplog.at_level(logging.WARNING, reporting.__name__):
        learned(store, store_address)
        deadline = time.monotonic() + HANG_SECONDS
        while broken == "no database" and not caplog.records and time.monotonic() < deadline:
            time.sleep(0.01)
    (head,) = store.heads()
    assert store.versions(head.id)[0].lessons > 0
    if broken == "no database":
        assert "MLflow was not told how learning goes" in caplog.messages[0]


def test_a_service_without_mlflow_says_so(call: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mlflow", None)
    monkeypatch.setenv(reporting.VARIABLE, "")
    answer = call("serve", "--mlflow", "sqlite:///mlflow.db")
    assert answer.code == 2
    assert answer.err.strip().endswith("pip install 'neuclust[mlflow]'")


@pytest.mark.soak
def test_a_service_tells_mlflow(tmp_path: Path) -> None:
    uri = fresh_store(tmp_path)
    own = OwnService(f"sqlite:{tmp_path / 'shop.db'}", options=("--mlflow", uri), log=tmp_path / "log")
    with RunningService(own) as service:
        shop = Client(service.address).create("shop", slate_size=2, policy="linucb")
        shop.put_items([{"id": f"i{index}", "price": index} for index in range(10)])
        for _ in range(20):
            choice = shop.recommend()
            shop.feedback(choice.decision_id, {choice.items[0]: 1})
        time.sleep(1.5)
    (run,) = runs(uri, reporting.EXPERIMENT)
    assert run.data.metrics["lessons"] == 20, (tmp_path / "log").read_text()
    assert run.data.metrics["live_clicks_per_request"] == 1.0
