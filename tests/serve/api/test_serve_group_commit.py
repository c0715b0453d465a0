"""Group commit: each caller is told what became of its own events, and a wrong one fails alone."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from pathlib import Path

import pytest

from neuclust.errors import DataError
from neuclust.serve.api.group_commit import MOST_WAITING, GroupCommit, Written
from neuclust.serve.api.problems import Overloaded, Refused
from neuclust.serve.store.contract import FEEDBACK, ITEMS, Appended, Event, Store, StoreError
from neuclust.serve.store.opening import open_store


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return open_store(f"sqlite:{tmp_path / 'a.db'}")


def _submitted(writer: GroupCommit, id: int, events: Sequence[Event]) -> Future[Written]:
    done: Future[Written] = Future()
    writer.submit(id, events, done.set_result)
    return done


def test_callers_in_one_group_get_their_own_results(store: Store) -> None:
    """Fails when results of one caller reach another, or a repeat within a group is appended twice."""
    head = store.create("a", b"{}")
    writer = GroupCommit(store)
    messages = [Event(FEEDBACK, b"{}", key=f"k{at % 40}") for at in range(50)]
    waiting = [_submitted(writer, head.id, [message]) for message in messages]
    results = [each.result(60) for each in waiting]
    writer.close()
    found = [result[0] for result in results if isinstance(result, list)]
    assert len(found) == 50
    assert [each.earlier is not None for each in found] == [False] * 40 + [True] * 10
    assert [each.seq for each in found[:40]] == list(range(2, 42))
    store.close()


def test_tables_that_were_written_are_known_before_anybody_is_told(store: Store) -> None:
    """Fails when slates could be chosen by tables older than what was acknowledged, as after an erasure."""
    head = store.create("a", b"{}")
    writer = GroupCommit(store)
    _submitted(writer, head.id, [Event(FEEDBACK, b"{}", key="k")]).result(60)
    assert writer.tables == {}
    seen: list[int] = []
    told = threading.Event()

    def tell(written: Written) -> None:
        seen.append(writer.tables[head.id])
        told.set()

    writer.submit(head.id, [Event(FEEDBACK, b"{}", key="l"), Event(ITEMS, b"{}")], tell)
    assert told.wait(60)
    assert seen == [4]
    writer.close()
    store.close()


def test_a_wrong_text_is_refused_alone(store: Store) -> None:
    """Fails when a text that no database keeps spoils the group it would be written with."""
    head = store.create("a", b"{}")
    writer = GroupCommit(store)
    with pytest.raises(DataError):
        writer.submit(head.id, [Event(FEEDBACK, b"{}", key="a\0b")], lambda _: None)
    assert isinstance(_submitted(writer, head.id, [Event(FEEDBACK, b"{}", key="a")]).result(60), list)
    gone = _submitted(writer, 999, [Event(FEEDBACK, b"{}", key="a")]).result(60)
    assert isinstance(gone, Refused)
    assert gone.status == 404
    writer.close()
    store.close()


class _Failing:
    """A store whose disk is full until it is mended."""

    def __init__(self, store: Store) -> None:
        self.store, self.full, self.entered, self.go_on = store, True, threading.Event(), threading.Event()

    def append(self, groups: Mapping[int, Sequence[Event]]) -> dict[int, list[Appended]]:
        self.entered.set()
        self.go_on.wait(60)
        if self.full:
            raise StoreError("the disk is full")
        return self.store.append(groups)


def test_a_full_disk_is_told_and_mended(store: Store) -> None:
    """Fails when an event that was not written is acknowledged, what waits has no bound, or writing stays off."""
    head = store.create("a", b"{}")
    failing = _Failing(store)
    writer = GroupCommit(failing)  # type: ignore[arg-type]
    first = _submitted(writer, head.id, [Event(FEEDBACK, b"{}", key="first")])
    failing.entered.wait(60)
    with pytest.raises(Overloaded):
        writer.submit(head.id, [Event(FEEDBACK, b"{}")] * MOST_WAITING, lambda _: None)
    failing.go_on.set()
    assert isinstance(first.result(60), StoreError)
    assert writer.failing
    failing.full = False
    assert isinstance(_submitted(writer, head.id, [Event(FEEDBACK, b"{}", key="first")]).result(60), list)
    assert not writer.failing
    writer.close()
    assert [row.key for row in store.read(head.id, 1, 10)] == ["first"]
    store.close()
