"""A service that is started again answers at once with what it had learned, also where models were damaged."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from running_service import RunningService, running
from simulated_service import stored, visits
from stores import damage_blob

from neuclust.serve.api.answering.served import Served
from neuclust.serve.api.auth import Keys
from neuclust.serve.api.options import ServeOptions
from neuclust.serve.api.service import Service
from neuclust.serve.fold.fold import Fold
from neuclust.serve.fold.recovery import newest_model
from neuclust.serve.store.contract import Head, Store, Version
from neuclust.serve.store.opening import open_store
from neuclust.serve.store.sql import SqlStore


def _ask(service: RunningService, **body: Any) -> Any:
    return service.call("POST", "shop/recommendations", body, 200)


def _damage_models(address: str) -> None:
    with closing(open_store(address)) as store:
        head = store.head("shop")
        assert head is not None
        for version in store.versions(head.id):
            damage_blob(store, head.id, version.version, "model")


def test_a_start_answers_with_what_was_learned(tmp_path: Path) -> None:
    """Fails when the first answers after a start are errors or of an untrained policy, or when models that cannot be
    read stop a recommender whose state is whole."""
    with running(tmp_path) as service:
        service.make("shop", policy="linucb")
        for at in range(5):
            choice = _ask(service, user=f"u{at}", request_id=f"r{at}")
            told = {"decision_id": choice["decision_id"], "items": {choice["slate"][0]["item"]: 1.0}}
            service.call("POST", "shop/feedback", told, 202)
        service.learned("shop")
        first = _ask(service, request_id="r0", user="u0")
        service.stop()
        service.start()
        assert _ask(service, user="u9")["model_version"] > 0
        assert _ask(service, request_id="r0", user="u0") == first
        service.stop()
        _damage_models(service.db)
        service.start()
        assert _ask(service, user="u9")["model_version"] > 0


# --- which model answers first ----------------------------------------------------------------------------------


def _published(store: Store, states: tuple[bool, ...]) -> Head:
    """A log with a version after every ten visits, those that are named with a state."""
    service, token, fold = stored(store), store.lease("test", 60), Fold.begin()
    assert token is not None
    head = store.head("shop")
    assert head is not None
    for number, state in enumerate(states, 1):
        visits(service, 10, seed=number)
        for row in store.read(head.id, fold.seq, 1_000):
            fold.apply(row)
        version = Version(number, fold.seq, 1.0, fold.lessons, state, True)
        store.publish(head.id, token, version, fold.model(), fold.state() if state else None)
    found = store.head("shop")
    assert found is not None
    return found


@contextmanager
def _first(store: Store) -> Iterator[Served]:
    """The recommender as a service has it before its first answer: its follower does not help."""
    service = Service(store, ServeOptions(), Keys(store, required=False))
    service.follower.close()
    try:
        yield service.desk.call(lambda: service.synced("shop")).result()
    finally:
        service.desk.close()
        service.writer.close()


def _lessons(served: Served) -> tuple[int, int]:
    assert served.model is not None
    return served.version, served.model.lessons


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Store]:
    with closing(open_store(f"sqlite:{tmp_path / 'service.db'}")) as store:
        yield store


def test_the_pinned_model_answers_first(opened: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fails when a start serves another model than the pinned one, or does so where that is beyond the listing."""
    head = _published(opened, (False, False, True))
    lessons = {each.version: each.lessons for each in opened.versions(head.id)}
    opened.promote(head.id, 1)
    with _first(opened) as served:
        assert _lessons(served) == (1, lessons[1])
    everything = SqlStore.versions
    monkeypatch.setattr(SqlStore, "versions", lambda store, id, most=1: everything(store, id, min(most, 1)))
    with _first(opened) as served:
        assert _lessons(served) == (1, lessons[1])


def test_a_model_newer_than_the_newest_state_answers_first(opened: Store) -> None:
    """Fails when the first answers come from the newest state, though a newer model was published."""
    head = _published(opened, (True, False))
    newest = opened.versions(head.id)[0]
    with _first(opened) as served:
        assert _lessons(served) == (2, newest.lessons)


def test_an_older_model_does_not_replace_that_of_the_state(opened: Store) -> None:
    """Fails when a whole model of version 1 is served where that of version 2 is damaged, but its state is whole."""
    head = _published(opened, (True, True))
    newest = opened.versions(head.id)[0]
    damage_blob(opened, head.id, 2, "model")
    with _first(opened) as served:
        assert _lessons(served) == (2, newest.lessons)


def test_the_model_at_hand_is_not_read_again(opened: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fails when a start reads a model whose state it has read, pinned or not."""
    head = _published(opened, (True, True))
    monkeypatch.setattr(SqlStore, "model", lambda *_: pytest.fail("a model was read"))
    assert newest_model(opened, head, held=2) is None
    opened.promote(head.id, 2)
    pinned = opened.head("shop")
    assert pinned is not None
    assert newest_model(opened, pinned, held=2) is None
