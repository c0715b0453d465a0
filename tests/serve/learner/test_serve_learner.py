"""The learner on both stores: versions, progress, damaged states, recommenders that fail, leases."""

from __future__ import annotations

import time

import pytest
from simulated_service import Service, stored, visits
from stores import damage_blob

from neuclust.serve import events
from neuclust.serve.fold.blobs import ServedModel
from neuclust.serve.fold.fold import Fold
from neuclust.serve.fold.recovery import followed, newest_model
from neuclust.serve.fold.replay import replay
from neuclust.serve.learner.lease import Lease
from neuclust.serve.learner.loop import Loop
from neuclust.serve.learner.publishing import Pace
from neuclust.serve.store.contract import Head, Store

QUICK = Pace(publish=0.0, share=0.0, state=0.0, progress=0.0, summary=0.0, heartbeat=60.0)
SQLITE = pytest.mark.parametrize("store_address", ["sqlite"], indirect=True)  # where the kind makes no difference


def drained(loop: Loop, most: int = 1_000) -> None:
    """Turns until nothing is left to do."""
    for _ in range(most):
        if loop.turn() > 0.0:
            return
    raise AssertionError("the learner did not come to an end")


def head_of(store: Store, name: str = "shop") -> Head:
    head = store.head(name)
    assert head is not None
    return head


def through(store: Store, head: Head) -> Fold:
    """The log folded in one go."""
    fold = Fold.begin()
    for row in store.read(head.id, 0, 100_000):
        fold.apply(row)
    return fold


@pytest.fixture
def service(store: Store) -> Service:
    return stored(store)


def test_a_version_is_the_fold_of_the_log(store: Store, service: Service) -> None:
    """Fails when models, states, progress or what is told of events do not follow from the log."""
    visits(service, 30)
    loop = Loop(store, Lease(store), QUICK)
    drained(loop)
    visits(service, 10, seed=1)
    drained(loop)
    head, fold = head_of(store), through(store, head_of(store))
    newest = store.versions(head.id)[0]
    assert (newest.seq, newest.lessons) == (head.seq, fold.lessons)
    assert store.model(head.id, newest.version) == fold.model()
    assert store.state(head.id, newest.version) == fold.state()
    progress = store.progress(head.id)
    assert progress is not None
    assert (progress.seq, progress.lessons) == (head.seq, fold.lessons)
    assert progress.told["counts"]["refused"] == 2  # visits 10 and 21
    assert progress.told["popular"] == fold.at.popularity.top(fold.shop.stock.catalogue)
    assert len(progress.told["popular"]) > 3
    (result,) = replay(store)
    assert result.same
    assert result.compared >= 2
    assert result.told == len(store.latest(head.id, "feedback", 1_000)) == 34  # nothing else was due
    loop.lease.release()


@SQLITE
def test_old_models_and_states_are_dropped_but_not_the_pinned_one(store: Store, service: Service) -> None:
    """Fails when more than the last models and states are kept, or the pinned model goes."""
    loop = Loop(store, Lease(store), QUICK)
    for seed in range(9):
        visits(service, 2, seed=seed)
        drained(loop)
        if seed == 1:
            store.promote(head_of(store).id, 2)
    head = head_of(store)
    versions = store.versions(head.id)
    assert [each.version for each in versions if each.model] == [*range(len(versions), len(versions) - 5, -1), 2]
    assert len([each for each in versions if each.state]) == 3
    found = newest_model(store, head)
    assert found is not None
    assert found[0] == 2
    loop.lease.release()


def test_a_damaged_state_is_found_and_the_one_before_it_used(store: Store, service: Service) -> None:
    """Fails when a learner goes on from a damaged state, stops at it, or gets another model than the log gives."""
    loop = Loop(store, Lease(store), QUICK)
    for seed in range(3):
        visits(service, 5, seed=seed)
        drained(loop)
    loop.finish()
    head = head_of(store)
    damage_blob(store, head.id, store.versions(head.id)[0].version, "state")
    loop = Loop(store, Lease(store), QUICK)
    visits(service, 5, seed=7)
    drained(loop)
    head = head_of(store)
    progress = store.progress(head.id)
    assert progress is not None
    assert "state of version" in progress.told["learner"]["damaged"][0]
    newest = store.versions(head.id)[0]
    assert store.state(head.id, newest.version) == through(store, head).state()
    loop.lease.release()


def test_without_a_whole_state_after_an_erasure_the_others_go_on(store: Store, service: Service) -> None:
    """Fails when a log whose beginning is gone is folded without its base, or stops the other recommenders."""
    loop = Loop(store, Lease(store), QUICK)
    visits(service, 5)
    service.write([events.erasure_event("e1", "u3")])
    drained(loop)
    loop.finish()
    head = head_of(store)
    assert head.base > 0
    for version in store.versions(head.id):
        if version.state:
            damage_blob(store, head.id, version.version, "state")
    other = stored(store, "other")
    visits(other, 3)
    loop = Loop(store, Lease(store), QUICK)
    drained(loop)
    progress, fine = store.progress(head.id), store.progress(head_of(store, "other").id)
    assert progress is not None
    assert "expected a state of event" in progress.told["problem"]
    assert fine is not None
    assert fine.seq == head_of(store, "other").seq
    assert "problem" not in fine.told
    loop.lease.release()


@SQLITE
def test_a_recommender_that_fails_is_reported_and_tried_again(store: Store, service: Service) -> None:
    """Fails when a log that cannot be folded stops the others, or is not tried again."""
    bad = store.create("bad", b'{"slate_size": "many"}')
    visits(service, 3)
    loop = Loop(store, Lease(store), QUICK)
    drained(loop)
    progress, fine = store.progress(bad.id), store.progress(head_of(store).id)
    assert progress is not None
    assert "slate_size" in progress.told["problem"]
    assert fine is not None
    assert fine.seq == head_of(store).seq
    loop.failures[bad.id].until = 0.0
    loop.turn()
    assert loop.failures[bad.id].wait == 4.0
    loop.lease.release()


@SQLITE
def test_windows_that_end_become_events(store: Store) -> None:
    """Fails when a decision without feedback is not learned though its window ended and nothing else happens."""
    service = stored(store, window=0.2)
    visits(service, 4, seed=3)
    service.decide("u1", "last")
    loop = Loop(store, Lease(store), QUICK)
    drained(loop)
    time.sleep(0.25)
    deadline = time.monotonic() + 10
    while loop.followers[head_of(store).id].fold.shop.decisions.counts.open and time.monotonic() < deadline:
        loop.turn()
    fold = through(store, head_of(store))
    assert fold.shop.decisions.counts.open == 0
    assert store.latest(head_of(store).id, "expiry", 10)
    loop.lease.release()


@SQLITE
def test_tables_follow_and_serve_what_was_learned(store: Store, service: Service) -> None:
    """Fails when an API process that starts later has other tables or another model than the log gives."""
    loop = Loop(store, Lease(store), QUICK)
    visits(service, 10)
    drained(loop)
    service.write(events.items_events({"new": {"price": 1.0, "category": "a"}}))
    head = head_of(store)
    tables = followed(store, head)
    assert tables.stock.catalogue.ids() == service.tables.stock.catalogue.ids()
    assert tables.seq == head.tables
    found = newest_model(store, head)
    assert found is not None
    blob = store.model(head.id, found[0])
    assert blob is not None
    model = ServedModel.from_bytes(blob)
    assert model is not None
    assert model.lessons == found[1].lessons == through(store, head).lessons
    loop.lease.release()
