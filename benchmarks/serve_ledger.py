"""What clients were told, and what of it the service's database does not keep."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from neuclust.serve.events import decode
from neuclust.serve.fold.replay import replay
from neuclust.serve.store.contract import DECISION, FEEDBACK, ITEMS, Row, Store
from neuclust.serve.store.opening import open_store

PAGE = 2_000  # events read at once
MOST_TOLD = 20  # sentences of one kind


@dataclass
class Ledger:
    """Acknowledged decisions by request id, feedback by its id, and items; any thread may write."""

    decisions: dict[str, tuple[str, tuple[str, ...]]] = field(default_factory=dict)
    feedback: dict[str, str] = field(default_factory=dict)
    items: set[str] = field(default_factory=set)
    wrong: list[str] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def __len__(self) -> int:
        """Acknowledged decisions and feedback."""
        return len(self.decisions) + len(self.feedback)

    def decided(self, request: str, decision: str, items: Sequence[str]) -> None:
        """An answer; the same request must get the same one every time."""
        told = (decision, tuple(items))
        with self.lock:
            if self.decisions.setdefault(request, told) != told:
                self.wrong.append(f"request {request} got {told} after {self.decisions[request]}")

    def heard(self, feedback: str, decision: str) -> None:
        with self.lock:
            self.feedback[feedback] = decision

    def stocked(self, item: str) -> None:
        with self.lock:
            self.items.add(item)


def events(store: Store, id: int) -> Iterator[Row]:
    """The whole log."""
    after = 0
    while rows := store.read(id, after, PAGE):
        yield from rows
        after = rows[-1].seq


def faults(db: str, name: str, ledger: Ledger) -> tuple[list[str], dict[str, Any]]:
    """What does not hold, as sentences, and figures of the log."""
    store = open_store(db)
    try:
        head = store.head(name)
        if head is None:
            return [f"the recommender {name} is gone"], {"events": 0, "lessons": 0}
        rows = list(events(store, head.id))
        found = [*ledger.wrong, *_lost(rows, ledger), *_order(rows), *_learned(told_of(store, head.id), rows)]
        found += [f"replay: {each.problem or each.differences}" for each in replay(store, name) if not each.same]
        progress = store.progress(head.id)
        return found, {"events": len(rows), "lessons": 0 if progress is None else progress.lessons}
    finally:
        store.close()


def _lost(rows: Sequence[Row], ledger: Ledger) -> list[str]:
    """Acknowledged decisions, feedback and items that are not in the log, or there in another form or twice."""
    decisions = {row.request: row for row in rows if row.kind == DECISION}
    keys = Counter((row.kind, row.key) for row in rows if row.kind in (DECISION, FEEDBACK))
    items = {each["id"] for row in rows if row.kind == ITEMS and row.payload for each in decode(row.payload)["rows"]}
    found = [f"{kind} {key} is in the log {times} times" for (kind, key), times in keys.items() if times > 1]
    for request, (decision, slate) in ledger.decisions.items():
        row = decisions.get(request)
        if row is None or row.payload is None:
            found.append(f"decision {decision} of request {request} was acknowledged and is lost")
        elif (row.key, tuple(decode(row.payload)["choice"]["items"])) != (decision, slate):
            found.append(f"request {request} was answered by {decision}, the log says {row.key}")
    lost = [key for key in ledger.feedback if not keys[FEEDBACK, key]]
    found += [f"feedback {key} was acknowledged and is lost" for key in lost[:MOST_TOLD]]
    return [*found, *(f"item {item} was acknowledged and is lost" for item in sorted(ledger.items - items))]


def _order(rows: Sequence[Row]) -> list[str]:
    """Gaps in the sequence, and times that go back."""
    found = [f"event {row.seq} stands where {at} was expected" for at, row in enumerate(rows, 1) if row.seq != at]
    back = [later.seq for row, later in pairwise(rows) if later.time < row.time]
    return [*found[:MOST_TOLD], *(f"the time of event {seq} goes back" for seq in back[:MOST_TOLD])]


def told_of(store: Store, id: int) -> dict[int, Any]:
    """What the learner told of every event, by its place in the log."""
    found: dict[int, Any] = {}
    after = 0
    while page := store.told(id, after, PAGE):
        found |= {seq: decode(content) for seq, content in page.items()}
        after = max(page)
    return found


def _learned(told: Mapping[int, Any], rows: Sequence[Row]) -> list[str]:
    """Decisions that were learned twice, and feedback the learner has told nothing of."""
    lessons = [each for content in told.values() for each in content.get("lessons", ())]
    times = Counter(each["decision"] for each in lessons if not each["revised"])
    untold = [row.seq for row in rows if row.kind == FEEDBACK and row.seq not in told]
    twice = [f"decision {decision} was learned {count} times" for decision, count in times.items() if count > 1]
    return [*twice[:MOST_TOLD], *(f"the learner has told nothing of feedback {seq}" for seq in untold[:MOST_TOLD])]
