"""Group commit: events of many requests are written in one transaction, and each is acknowledged after it."""

import queue
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from neuclust.errors import NeuclustError
from neuclust.serve.api.problems import Overloaded, Refused
from neuclust.serve.store.contract import TABLE_KINDS, Appended, Event, Store, StoreError
from neuclust.serve.store.database import check_text

MOST_EVENTS = 2_000  # in one transaction
MOST_BYTES = 8 << 20  # of payloads in one transaction
MOST_WAITING = 20_000  # events that were not written yet

Written = list[Appended] | Exception


@dataclass(frozen=True, slots=True)
class Waiting:
    """Events of one caller, and who is told what became of them."""

    id: int
    events: Sequence[Event]
    tell: Callable[[Written], None]

    @property
    def size(self) -> int:
        return sum(len(event.payload) for event in self.events)


class GroupCommit:
    """Writes what waits, all of it at once, in a thread of its own."""

    def __init__(self, store: Store) -> None:
        self.store, self.failing = store, ""  # why the last transaction failed
        self.tables: dict[int, int] = {}  # the last table event of each recommender that was written here
        self._queue: queue.SimpleQueue[Waiting | None] = queue.SimpleQueue()
        self._waiting, self._lock = 0, threading.Lock()
        self._thread = threading.Thread(target=self._run, name="group commit", daemon=True)
        self._thread.start()

    def submit(self, id: int, events: Sequence[Event], tell: Callable[[Written], None]) -> None:
        """Have events appended; `tell` is called in the writing thread once they are durable, or were not written."""
        for event in events:  # what the store refuses must not fail the others of its group
            for field, text in (("id", event.key), ("request_id", event.request), ("user", event.user)):
                if text is not None:
                    check_text(text, field)
        with self._lock:
            if self._waiting + len(events) > MOST_WAITING and self._waiting:
                raise Overloaded(f"expected at most {MOST_WAITING:,} events that wait to be written, got more")
            self._waiting += len(events)
        self._queue.put(Waiting(id, events, tell))

    def close(self) -> None:
        """Write what waits and end."""
        self._queue.put(None)
        self._thread.join()

    def _run(self) -> None:
        left: Waiting | None = None
        while True:
            first = left or self._queue.get()
            if first is None:
                return
            group, left, ended = self._collected(first)
            self._write(group)
            if ended:
                return

    def _collected(self, first: Waiting) -> tuple[list[Waiting], Waiting | None, bool]:
        """All that waits now, up to a size; one that did not fit; and whether the end was asked for."""
        group, events, size = [first], len(first.events), first.size
        while True:
            try:
                found = self._queue.get_nowait()
            except queue.Empty:
                return group, None, False
            if found is None:
                return group, None, True
            events, size = events + len(found.events), size + found.size
            if events > MOST_EVENTS or size > MOST_BYTES:
                return group, found, False
            group.append(found)

    def _write(self, group: Sequence[Waiting]) -> None:
        by_id: dict[int, list[Event]] = {}
        places = []
        for each in group:
            events = by_id.setdefault(each.id, [])
            places.append((len(events), len(events) + len(each.events)))
            events.extend(each.events)
        try:
            written = self.store.append(by_id)
            self.failing = ""
            self._note_tables(by_id, written)
        except Exception as error:  # nothing was written, and every caller is told so
            self.failing = str(error)
            self._told(group, [_failure(error)] * len(group))
            return
        gone = Refused(404, "expected a recommender that is there, but it was deleted")
        self._told(
            group,
            [
                written[each.id][first:last] if len(written.get(each.id, ())) >= last else gone
                for each, (first, last) in zip(group, places, strict=True)
            ],
        )

    def _note_tables(self, by_id: Mapping[int, Sequence[Event]], written: Mapping[int, Sequence[Appended]]) -> None:
        """Before anybody is told, so that whoever was told is served by these tables."""
        for id, events in by_id.items():
            for event, appended in zip(events, written.get(id, ()), strict=False):
                if event.kind in TABLE_KINDS:
                    self.tables[id] = max(appended.seq, self.tables.get(id, 0))

    def _told(self, group: Sequence[Waiting], results: Sequence[Written]) -> None:
        with self._lock:
            self._waiting -= sum(len(each.events) for each in group)
        for each, result in zip(group, results, strict=True):
            each.tell(result)


def _failure(error: Exception) -> Exception:
    if isinstance(error, NeuclustError):
        return error
    return StoreError(f"expected to write to the database, got {type(error).__name__} {error!s:.200}; nothing was kept")
