"""Faults that `benchmarks.store_kills` plants into a store to see whether it reports them."""

from __future__ import annotations

import queue
import random
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from neuclust.serve.store import log
from neuclust.serve.store.chain import START
from neuclust.serve.store.contract import Appended, Event
from neuclust.serve.store.database import Database, Result, Session, Values, Work
from neuclust.serve.store.rows import Tail, placed
from neuclust.serve.store.sql import SqlStore

FAULTS = ("early-ack", "no-dedup", "identity")
Groups = Mapping[int, Sequence[Event]]
Answers = dict[int, list[Appended]]


def with_fault(store: SqlStore, fault: str | None) -> SqlStore:
    """The store with a fault, or as it is."""
    if fault == "early-ack":
        return EarlyAcknowledgement(store.database)
    if fault == "no-dedup":
        return SqlStore(NoDuplicates(store.database))
    return IdentityColumn(store.database) if fault == "identity" else store


class EarlyAcknowledgement(SqlStore):
    """Answers before anything is written; another thread writes."""

    def append(self, groups: Groups) -> Answers:
        waiting = _writer(self)
        waiting.put(groups)
        return {id: [Appended(0, 0.0) for _ in events] for id, events in groups.items()}


_queues: dict[int, queue.Queue[Groups]] = {}


def _writer(store: SqlStore) -> queue.Queue[Groups]:
    """The queue of a store; its thread starts with it."""
    if id(store) not in _queues:
        waiting: queue.Queue[Groups] = queue.Queue()
        _queues[id(store)] = waiting
        database = store.database

        def write() -> None:
            while True:
                SqlStore(database).append(waiting.get())

        threading.Thread(target=write, daemon=True).start()
    return _queues[id(store)]


class IdentityColumn(SqlStore):
    """Takes sequence numbers before the transaction that inserts the events, as an identity column does."""

    def append(self, groups: Groups) -> Answers:
        answers = {}
        for id, events in groups.items():
            taken = self.database.read(partial(log.taken, id=id, events=events))
            first = self.database.write(partial(_reserved, id=id, count=len(events)))
            time.sleep(random.random() * 0.01)
            group = placed(id, Tail(first, 0.0, START, 0, 0), events, taken, time.time())
            self.database.write(partial(_inserted, rows=group.values))
            answers[id] = group.answers
        return answers


def _reserved(session: Session, id: int, count: int) -> int:
    session.run("UPDATE recommenders SET seq = seq + ? WHERE id = ?", (count, id))
    return int(session.rows("SELECT seq FROM recommenders WHERE id = ?", (id,))[0][0]) - count


def _inserted(session: Session, rows: list[Values]) -> None:
    session.insert("events", rows)


@dataclass(frozen=True)
class NoDuplicates:
    """A database without the unique indexes, whose sessions find no key."""

    inner: Database

    @property
    def address(self) -> str:
        return self.inner.address

    @property
    def shared(self) -> bool:
        return self.inner.shared

    def write(self, work: Work[Result]) -> Result:
        def blind(session: Session) -> Result:
            for index in ("events_by_key", "events_by_request"):
                session.run(f"DROP INDEX IF EXISTS {index}")
            return work(BlindSession(session))

        return self.inner.write(blind)

    def read(self, work: Work[Result]) -> Result:
        return self.inner.read(work)

    def settle(self) -> None:
        self.inner.settle()

    def tidy(self) -> None:
        self.inner.tidy()

    def close(self) -> None:
        self.inner.close()


@dataclass(frozen=True)
class BlindSession:
    """Finds no event by its key or request."""

    inner: Session

    def rows(self, statement: str, values: Values = ()) -> list[tuple[Any, ...]]:
        return [] if statement in (log.BY_KEY, log.BY_REQUEST) else self.inner.rows(statement, values)

    def stream(self, statement: str, values: Values = (), at_once: int = 1000) -> Iterable[tuple[Any, ...]]:
        return self.inner.stream(statement, values, at_once)

    def run(self, statement: str, values: Values = ()) -> int:
        return self.inner.run(statement, values)

    def many(self, statement: str, values: Iterable[Values]) -> None:
        self.inner.many(statement, values)

    def insert(self, table: str, rows: Iterable[Values]) -> None:
        self.inner.insert(table, rows)
