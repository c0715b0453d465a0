"""The follower of models: what fails with one recommender stops neither the process nor the others, and is told."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from running_service import eventually
from simulated_service import stored

from neuclust.serve.api import follower
from neuclust.serve.api.answering.served import Served
from neuclust.serve.api.app import make_app
from neuclust.serve.api.auth import Keys
from neuclust.serve.api.options import ServeOptions
from neuclust.serve.api.service import Service
from neuclust.serve.store.contract import Head, Store, StoreError
from neuclust.serve.store.opening import open_store

BROKEN = "a"  # the first that is looked at


class Opening:
    """Opens recommenders, and fails with one of them; counts how often it was asked for that."""

    def __init__(self, error: Exception) -> None:
        self.error: Exception | None = error
        self.asked = 0
        self.really = Served.started

    def __call__(self, store: Store, head: Head) -> Served:
        if head.name == BROKEN:
            self.asked += 1
            if self.error is not None:
                raise self.error
        return self.really(store, head)


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Store]:
    with closing(open_store(f"sqlite:{tmp_path / 'service.db'}")) as store:
        for name in (BROKEN, "b"):
            stored(store, name)
        yield store


@contextmanager
def _serving(store: Store, opening: Opening, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[TestClient, Service]]:
    monkeypatch.setattr(Served, "started", opening)
    service = Service(store, ServeOptions(), Keys(store, required=False))
    with TestClient(make_app(service)) as client:
        yield client, service


def _found(client: TestClient) -> dict[str, Any]:
    found: dict[str, Any] = client.get("/health/ready").json()["recommenders"]
    return found


@pytest.mark.parametrize("error", [KeyError("weights"), RuntimeError("shapes"), StoreError("restore a backup")])
def test_a_recommender_that_fails_stops_no_other(
    opened: Store, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, error: Exception
) -> None:
    """Fails when one recommender keeps the process from being ready or others from being followed, when its problem is
    told nowhere, or an unexpected one is logged without its traceback."""
    caplog.set_level(logging.WARNING, "neuclust.serve")
    with _serving(opened, Opening(error), monkeypatch) as (client, service):
        eventually(lambda: client.get("/health/ready").status_code == 200, "the process is ready")
        eventually(lambda: "b" in service.served, "the other one is there")
        found = _found(client)
        said = str(error) if isinstance(error, StoreError) else type(error).__name__
        assert said in found[BROKEN]["problem"]
        assert found["b"]["problem"] == ""
        listed = {each["name"]: each["problem"] for each in client.get("/v1/recommenders").json()["recommenders"]}
        assert said in listed[BROKEN]
        assert listed["b"] == ""
    record = next(each for each in caplog.records if said in each.getMessage())
    assert bool(record.exc_info) == (not isinstance(error, StoreError))


def test_a_failure_is_not_repeated_at_once_and_ends(opened: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fails when states of a recommender that cannot be opened are read every quarter of a second, or its problem is
    told after it is over."""
    opening = Opening(StoreError("restore a backup"))
    monkeypatch.setattr(follower, "RETRY", (0.8, 0.8))
    with _serving(opened, opening, monkeypatch) as (client, _):
        eventually(lambda: _found(client).get(BROKEN, {}).get("problem", "") != "", "the problem is told")
        begun, asked = time.monotonic(), opening.asked
        eventually(lambda: opening.asked == asked + 2, "it is tried again")
        assert time.monotonic() - begun > 0.8
        opening.error = None
        eventually(lambda: _found(client)[BROKEN]["problem"] == "", "the problem is over")
