"""A slow, plain model of the decisions of a recommender: it keeps every message and computes everything anew."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

from neuclust.recommender.feedback.messages import FeedbackConfig

NAN = math.nan


class Refused(Exception):
    """What the books refuse by a DataError."""


@dataclass
class Entry:
    number: int
    id: str
    time: float
    items: tuple[str, ...]
    said: list[dict[str, Any]] = field(default_factory=list)  # messages that were accepted while it was open
    looked: bool = False  # whether learn_after passed
    learned: tuple[list[float], float] | None = None
    closed_by: str = ""  # "message", "time"
    final: list[float] = field(default_factory=list)
    slate: float = NAN


def same(left: Any, right: Any) -> bool:
    """Equal lists of numbers, NaN equal to NaN."""
    return [repr(float(value)) for value in left] == [repr(float(value)) for value in right]


class NaiveDecisions:
    """The mean of a slate's rewards is its value; the range is that of the settings."""

    def __init__(self, config: FeedbackConfig, slate_size: int) -> None:
        self.config, self.slate_size = config, slate_size
        self.entries: dict[str, Entry] = {}
        self.closings: list[str] = []
        self.messages: list[tuple[Any, Any]] = []
        self.counts = dict.fromkeys(("closed", "learned", "revised", "duplicates", "late", "refused"), 0)

    # --- what is known ---

    def opened(self) -> list[Entry]:
        return [entry for entry in self.entries.values() if not entry.closed_by]

    def known(self, id: str) -> Entry | None:
        entry = self.entries.get(id)
        remembered = self.closings[-self.config.remember :]
        return entry if entry is not None and (not entry.closed_by or id in remembered) else None

    def shown(self, messages: list[dict[str, Any]]) -> set[str] | None:
        stated = [set(message["shown"]) for message in messages if message["shown"] is not None]
        return set().union(*stated) if stated else None

    def values(self, entry: Entry, messages: list[dict[str, Any]], rest: float) -> list[float]:
        found, seen = [], self.shown(messages)
        for item in entry.items:
            values = [message["items"][item] for message in messages if item in message["items"]]
            if seen is not None and item not in seen:
                found.append(NAN)
            elif not values:
                found.append(rest)
            else:
                found.append({"max": max(values), "sum": sum(values), "last": values[-1]}[self.config.combine])
        return found

    # --- calls ---

    def open(self, number: int, id: str, time: float, items: tuple[str, ...]) -> None:
        if self.known(id) is not None:
            raise Refused
        self.entries[id] = Entry(number, id, time, items)

    def due(self, now: float) -> list[Any]:
        waiting = [(self.deadline(entry), entry.number, entry) for entry in self.opened()]
        late = sorted((each for each in waiting if each[0] <= now), key=lambda each: each[:2])
        return [lesson for _, _, entry in late for lesson in self.settle(entry, now, self.config.unanswered)]

    def deadline(self, entry: Entry) -> float:
        learn_after = self.config.learn_after
        if learn_after is None or entry.looked:
            return entry.time + self.config.window
        return entry.time + min(learn_after, self.config.window)

    def settle(self, entry: Entry, now: float, unanswered: str) -> list[Any]:
        values = self.values(entry, entry.said, NAN if unanswered == "unseen" else 0.0)
        lessons = self.learn(entry, entry.said, values)
        entry.looked = True
        if now >= entry.time + self.config.window:
            self.close(entry, values, "time")
        return lessons

    def expire(self, older_than: float, now: float, unanswered: str | None) -> list[Any]:
        lessons = self.due(now)
        for entry in sorted(self.opened(), key=lambda entry: (entry.time, entry.number)):
            if now - entry.time >= older_than:
                lessons += self.settle(entry, math.inf, unanswered or self.config.unanswered)
        return lessons

    def feedback(self, id: str, message: dict[str, Any], now: float) -> tuple[str, list[Any]]:
        try:
            status, lessons = self.answer(id, message, now)
        except Refused:
            self.counts["refused"] += 1
            raise
        if status in ("duplicate", "late"):
            self.counts["duplicates" if status == "duplicate" else "late"] += 1
        return status, lessons

    def answer(self, id: str, message: dict[str, Any], now: float) -> tuple[str, list[Any]]:
        entry = self.known(id)
        if entry is None or not set(message["items"]) | set(message["shown"] or ()) <= set(entry.items):
            raise Refused
        if any(not 0 <= value <= 1 for value in message["items"].values()):
            raise Refused
        if message["slate"] is not None and not 0 <= message["slate"] <= len(entry.items):
            raise Refused
        if message["shown"] is not None and not set(message["items"]) <= set(message["shown"]):
            raise Refused
        if self.is_repeat(id, entry, message):
            return "duplicate", []
        if entry.closed_by:
            return self.answer_closed(entry, message), []
        self.check(entry, message)
        if now >= entry.time + self.config.window:
            lessons = self.settle(entry, now, self.config.unanswered)
            return self.answer_closed(entry, message), lessons
        return self.answer_open(entry, message, now)

    def identity(self, id: str, message: dict[str, Any]) -> tuple[Any, Any]:
        shown = None if message["shown"] is None else tuple(sorted(set(message["shown"])))
        body = (id, tuple(sorted(message["items"].items())), message["slate"], shown, message["partial"])
        return (body if message["feedback_id"] is None else message["feedback_id"]), body

    def is_repeat(self, id: str, entry: Entry, message: dict[str, Any]) -> bool:
        key, body = self.identity(id, message)
        own = [] if entry.closed_by else [self.identity(id, said) for said in entry.said]
        for known, earlier in [*self.messages[-self.config.remember :], *own]:
            if known == key:
                if earlier != body:
                    raise Refused
                return True
        return False

    def check(self, entry: Entry, message: dict[str, Any]) -> None:
        messages = [*entry.said, message]
        seen = self.shown(messages)
        named = {item for said in messages for item in said["items"]}
        if seen is not None and not named <= seen:
            raise Refused
        if any(value > 1 for value in self.values(entry, messages, 0.0)):
            raise Refused

    def answer_open(self, entry: Entry, message: dict[str, Any], now: float) -> tuple[str, list[Any]]:
        entry.said.append(message)
        self.messages.append(self.identity(entry.id, message))
        rest = NAN if message["partial"] and self.config.unanswered == "unseen" else 0.0
        values = self.values(entry, entry.said, rest)
        past = self.config.learn_after is not None and now >= entry.time + self.config.learn_after
        learns = not message["partial"] or past or entry.learned is not None
        lessons = self.learn(entry, entry.said, values) if learns else []
        if message["partial"]:
            return "open", lessons
        self.close(entry, values, "message")
        return "learned", lessons

    def answer_closed(self, entry: Entry, message: dict[str, Any]) -> str:
        seen = self.shown(entry.said)
        if message["shown"] is None and seen is not None and not set(message["items"]) <= seen:
            raise Refused
        agrees = message["slate"] is None or message["slate"] == entry.slate
        final = dict(zip(entry.items, entry.final, strict=True))
        if message["partial"]:
            agrees = agrees and all(final[item] == value for item, value in message["items"].items())
            agrees = agrees and not any(math.isnan(final[item]) for item in message["shown"] or ())
        else:
            alone = self.values(entry, [message], 0.0)
            closing = self.values(entry, entry.said[-1:], 0.0) if entry.closed_by == "message" else None
            agrees = agrees and (same(alone, entry.final) or (closing is not None and same(alone, closing)))
        if not agrees and entry.closed_by == "message":
            raise Refused
        self.messages.append(self.identity(entry.id, message))
        return "duplicate" if agrees else "late"

    def close(self, entry: Entry, values: list[float], by: str) -> None:
        entry.closed_by, entry.final = by, values
        entry.slate = self.stated(entry.said)
        self.closings.append(entry.id)
        self.counts["closed"] += 1

    def stated(self, messages: list[dict[str, Any]]) -> float:
        return next((said["slate"] for said in reversed(messages) if said["slate"] is not None), NAN)

    def learn(self, entry: Entry, messages: list[dict[str, Any]], values: list[float]) -> list[Any]:
        stated = self.stated(messages)
        total = sum(values) if math.isnan(stated) else stated
        now = (values, total / len(values))
        before = entry.learned
        if before is None and all(map(math.isnan, [*values, now[1]])):
            return []
        if before is not None and same([*before[0], before[1]], [*values, now[1]]):
            return []
        entry.learned = now
        self.counts["learned" if before is None else "revised"] += 1
        return [(entry.id, *now, before)]
