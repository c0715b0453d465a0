"""Learners that are killed, stopped and doubled: nothing is learned twice or lost, a fenced one writes nothing."""

from __future__ import annotations

import os
import signal
import time
import traceback
from collections.abc import Callable
from functools import partial

import pytest
from patience import HANG_SECONDS
from simulated_service import stored, visits
from stores import stop_outside_transactions

from neuclust.randomness import stream
from neuclust.serve.events import decode
from neuclust.serve.fold.fold import Fold
from neuclust.serve.fold.replay import replay
from neuclust.serve.learner.lease import Lease
from neuclust.serve.learner.loop import Loop
from neuclust.serve.learner.process import LearnerProcess, run_learner
from neuclust.serve.learner.publishing import Pace
from neuclust.serve.store.contract import Fenced, Progress, Store

EAGER = Pace(publish=0.0, share=0.0, state=0.02, progress=0.03, summary=0.0, slice=0.01)
SECONDS = 0.2  # of leases: a killed learner is replaced soon
KILLS = 5
SQLITE = pytest.mark.parametrize("store_address", ["sqlite"], indirect=True)  # where the kind makes no difference


def forked(address: str) -> int:
    """A learner in a process that is like this one, but starts at once."""
    child = os.fork()
    if child:
        return child
    try:
        run_learner(address, pace=EAGER, seconds=SECONDS)
    except BaseException:
        traceback.print_exc()
        os._exit(1)
    os._exit(0)


def until(true: Callable[[], bool]) -> None:
    deadline = time.monotonic() + HANG_SECONDS
    while not true():
        assert time.monotonic() < deadline, "it did not come to an end"
        time.sleep(0.01)


def caught_up(store: Store) -> bool:
    (head,) = store.heads()
    progress = store.progress(head.id)
    return progress is not None and progress.seq >= head.seq


def published(store: Store) -> bool:
    """Whether there is a version of the last event: the learner then has nothing more to write."""
    (head,) = store.heads()
    versions = store.versions(head.id)
    return caught_up(store) and bool(versions) and versions[0].seq >= head.seq


def check_everything(store: Store) -> None:
    """Every version, state and told row is what the log gives, told rows are complete, and events were folded once."""
    (result,), (head,) = replay(store), store.heads()
    assert result.same, result
    assert result.compared >= 1
    fold = Fold.begin()
    told = {row.seq: fold.apply(row) for row in store.read(head.id, 0, 100_000)}
    kept = store.told(head.id, 0, 100_000)
    assert {seq: decode(content) for seq, content in kept.items()} == {seq: each for seq, each in told.items() if each}
    newest = store.versions(head.id)[0]
    assert newest.lessons <= fold.lessons


def kill_often(store: Store, address: str, kills: int, count: int) -> int:
    """Kill learners at random moments while they catch up; how many were killed midway."""
    service, rng, midway = stored(store), stream(3, "kills"), 0
    (head,) = store.heads()
    for at in range(kills):
        before = _applied(store, head.id)
        visits(service, count, seed=at)
        child = forked(address)
        until(partial(_is_beyond, store, head.id, before))
        time.sleep(float(rng.uniform(0.0, 0.1)))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        midway += not caught_up(store)
    visits(service, count, seed=kills)
    child = forked(address)
    until(lambda: caught_up(store))
    os.kill(child, signal.SIGTERM)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    return midway


def _is_beyond(store: Store, id: int, seq: int) -> bool:
    return _applied(store, id) > seq


def _applied(store: Store, id: int) -> int:
    progress = store.progress(id)
    return 0 if progress is None else progress.seq


def test_killed_learners_lose_and_repeat_nothing(store: Store, store_address: str) -> None:
    """Fails when a learner that is killed while it catches up leaves a model that the log does not give."""
    assert kill_often(store, store_address, KILLS, 25) >= 3
    check_everything(store)


def test_a_learner_that_ends_after_any_event_loses_and_repeats_nothing(store: Store) -> None:
    """Fails when a version is there without what was told of the events before it, wherever the learner ended."""
    visits(stored(store), 30)
    pace = Pace(publish=0.0, share=0.0, state=0.0, progress=1e9, heartbeat=1e9, slice=0.0)  # an event in each turn
    (head,) = store.heads()
    for turns in (25, 1, 3, 7):
        loop = Loop(store, Lease(store), pace)
        for _ in range(turns):
            loop.turn()
        assert loop.followers[head.id].fold.seq < head.seq
        loop.followers.clear()  # as if it were killed: no state is left
        loop.finish()
    last = Loop(store, Lease(store), EAGER)
    until(lambda: last.turn() > 0.0)
    last.finish()
    check_everything(store)


@pytest.mark.soak
def test_many_killed_learners_lose_and_repeat_nothing(store: Store, store_address: str) -> None:
    """Fails when one of sixty killed learners leaves a model that the log does not give."""
    assert kill_often(store, store_address, 60, 20) >= 30
    check_everything(store)


def test_a_learner_that_was_stopped_is_fenced(store: Store, store_address: str) -> None:
    """Fails when a learner that slept while another took over still writes, or does not learn again later."""
    service = stored(store)
    visits(service, 10)
    first = forked(store_address)
    until(lambda: published(store))
    time.sleep(SECONDS / 2)
    stop_outside_transactions(first, store)
    visits(service, 10, seed=1)
    second = forked(store_address)
    until(lambda: caught_up(store))
    os.kill(first, signal.SIGCONT)
    visits(service, 10, seed=2)
    until(lambda: caught_up(store))
    for child in (first, second):
        os.kill(child, signal.SIGTERM)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    check_everything(store)


def test_a_fenced_learner_writes_nothing(store: Store) -> None:
    """Fails when any write of a learner whose lease another has reaches the database."""
    service = stored(store)
    visits(service, 5)
    slow = Loop(store, Lease(store, SECONDS), EAGER)
    slow.turn()
    slow.lease._end.set()  # as if it slept: nothing is renewed
    old = slow.lease.token
    assert old is not None
    time.sleep(1.5 * SECONDS)
    other = store.lease("another", 60)
    assert other is not None
    assert other > old
    visits(service, 5, seed=1)
    (head,) = store.heads()
    before = (store.versions(head.id), store.progress(head.id), store.told(head.id, 0, 1_000))
    for _ in range(5):
        slow.turn()
    assert (store.versions(head.id), store.progress(head.id), store.told(head.id, 0, 1_000)) == before
    assert slow.followers == {}
    with pytest.raises(Fenced):
        store.advance(head.id, old, Progress(1, 1, 1.0), {})


@SQLITE
def test_the_child_of_a_service_learns_and_ends_with_it(store: Store, store_address: str) -> None:
    """Fails when the child does not learn, or outlives its parent's pipe."""
    visits(stored(store), 5)
    child = LearnerProcess(store_address, SECONDS)
    child.start()
    until(lambda: published(store))
    process = child._child
    assert process is not None
    assert process.stdin is not None
    process.stdin.close()
    assert process.wait(HANG_SECONDS) == 0
    assert not child.alive
    check_everything(store)


@pytest.mark.soak
def test_a_child_that_is_ended_leaves_a_state(store: Store, store_address: str) -> None:
    """Fails when the next learner has to fold again what was folded by one that was ended in good order."""
    visits(stored(store), 5)
    child = LearnerProcess(store_address, SECONDS)
    child.start()
    until(lambda: caught_up(store))
    child.stop()
    (head,) = store.heads()
    newest = store.versions(head.id)[0]
    assert (newest.state, newest.seq) == (True, head.seq)
