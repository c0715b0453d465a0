"""A service without HTTP for tests: chooses slates by tables and models and writes the events an API would write."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from neuclust.randomness import stream
from neuclust.recommender.choices import Choice
from neuclust.recommender.chooser import Chooser, Place, offer
from neuclust.recommender.requests import read_request
from neuclust.serve import events
from neuclust.serve.configuration import Configuration
from neuclust.serve.fold.blobs import ServedModel
from neuclust.serve.fold.fold import Fold
from neuclust.serve.fold.tables import Tables
from neuclust.serve.store.chain import START, chained, payload_hash
from neuclust.serve.store.contract import Event, Row, Store

Append = Callable[[list[Event]], list[Row]]
ITEMS: dict[str, dict[str, Any]] = {
    f"s{i}": {"price": 3.0 + 7 * i % 19, "category": "abc"[i % 3], "tags": ("new", "sale")[: i % 3]} for i in range(24)
}
USERS: dict[str, dict[str, Any]] = {f"u{i}": {"age": 20 + 5 * i, "segment": ["gold", "tin"][i % 2]} for i in range(10)}
SMALL = {  # settings that make neural policies quick
    "neuclust": {"arms.training.steps": 3},
}


class WrittenLog:
    """Rows in memory, with times that are given and a chain of hashes."""

    def __init__(self) -> None:
        self.rows: list[Row] = []
        self.now = 1_000.0

    def append(self, given: list[Event]) -> list[Row]:
        return [self._row(event) for event in given]

    def _row(self, event: Event) -> Row:
        seq, before = len(self.rows) + 1, self.rows[-1].hash if self.rows else START
        salt = hashlib.sha256(str(seq).encode()).digest()[:16]
        content = payload_hash(salt, event.payload, event.user, event.request, event.digest)
        hashed = chained(before, seq, event.kind, self.now, event.key, content)
        told = (event.payload, event.key, event.request, event.digest, event.user)
        row = Row(seq, event.kind, self.now, *told, hashed, content, before)
        self.rows.append(row)
        return row


@dataclass
class Service:
    """One recommender behind a log. `refresh` serves what a fold of the log has learned."""

    append: Append
    clock: Callable[[], float]
    tables: Tables = field(default_factory=Tables.begin)
    model: ServedModel | None = None
    version: int = 0
    made: list[Choice] = field(default_factory=list)

    def write(self, given: Iterable[Event]) -> list[Row]:
        """Append events and follow them."""
        rows = self.append(list(given))
        for row in rows:
            if row.seq > self.tables.seq:
                self.tables.apply(row)
        return rows

    def stock(self, items: Mapping[str, Any] = ITEMS, users: Mapping[str, Any] = USERS) -> None:
        self.write(events.items_events(items))
        self.write(events.users_events(users))

    def refresh(self, blob: bytes) -> None:
        """Serve another version."""
        self.model = ServedModel.from_bytes(blob)
        if self.model is not None:
            self.tables.use(self.model.schema)
            self.version += 1

    def decide(self, user: str | None, key: str | None = None, arm: str = "live", **details: Any) -> Choice:
        """A slate, logged."""
        configuration = self.tables.configuration
        request = read_request(user, details, configuration.slate_size)
        if self.tables.schema is None:
            self.tables.check_freeze(request.row)
            self.write([events.freeze_event(request.row, user)])
        choice = self._chosen(request, key or f"d{len(self.made) + 1}")
        self.made.append(choice)
        entries = {"arm": arm, "version": self.version, "expires_at": choice.time + configuration.window}
        self.write([events.decision_event(choice, events.Asked(), **entries)])
        return choice

    def _chosen(self, request: Any, id: str) -> Choice:
        stock, frozen = self.tables.stock, self.tables.frozen
        if self.model is not None:
            schema, learner, t, lessons = self.model.schema, self.model.learner, self.model.t, self.model.lessons
        else:
            assert frozen is not None
            schema, learner, t, lessons = frozen.schema, frozen.learner, 1, 0
        chooser = Chooser(schema, stock.catalogue, stock.users, learner)
        found, draw = (
            offer(request, stock.catalogue),
            int.from_bytes(hashlib.sha256(id.encode()).digest()[:8], "little"),
        )
        (made,) = chooser.choose([request], [found], [chooser.user_row(request)], [Place(t, draw)])
        name = self.tables.configuration.policy
        return replace(made.choice(id, request, self.clock(), name, lessons), request=request)

    def hear(self, choice: Choice | str, items: Mapping[str, float], key: str, **details: Any) -> Row:
        """Feedback, logged."""
        id, user = (choice, None) if isinstance(choice, str) else (choice.id, choice.user)
        owner = None if user is None else str(user)
        (row,) = self.write([events.feedback_event(key, id, items, details, owner, b"digest")])
        return row


def begun(policy: str = "linucb", **options: Any) -> tuple[Service, WrittenLog]:
    """A service whose log is in memory, with items and users."""
    log = WrittenLog()
    service = Service(log.append, lambda: log.now)
    given: dict[str, Any] = {
        "slate_size": 3, "policy": policy, "settings": SMALL.get(policy), "remember": 30, "window": 100.0,
    }  # fmt: skip
    service.write([events.config_event(Configuration.from_json({**given, **options}))])
    service.stock()
    return service, log


KINDS = 19


def play(service: Service, log: WrittenLog, steps: Iterable[tuple[int, int]]) -> None:
    """Write a log of everything that may happen: each step is a kind of event and a number by which it is made."""
    fold, done = Fold.begin(), 0
    for at, (kind, number) in enumerate(steps):
        log.now += (number % 7) * 3.0
        rng = stream(number, "service", at)
        made = [choice for choice in service.made if choice.items]
        last = made[-1 - number % min(len(made), 5)] if made else None
        clicks = {} if last is None else {str(item): 1.0 for item in last.items if rng.random() < 0.4}
        if kind % KINDS == 0:
            while done < len(log.rows):
                fold.apply(log.rows[done])
                done += 1
            service.refresh(fold.model())
        else:
            _step(service, log, kind % KINDS, number, at, last, clicks)


def _step(
    service: Service, log: WrittenLog, kind: int, number: int, at: int, last: Choice | None, clicks: dict[str, float]
) -> None:  # fmt: skip
    user, item = f"u{number % 12}", f"s{number % 26}"
    if kind == 1:
        service.write(events.items_events({item: {"price": float(number % 50), "category": "abcd"[number % 4]}}))
    elif kind == 2:
        service.write([events.items_removed_event([item])])
    elif kind == 3:
        service.write(events.users_events({user: {"age": number % 90, "segment": "gold"}}))
    elif kind == 4:
        service.write(events.users_removed_events([user]))
    elif kind == 5:
        log.now += 60.0 * (number % 3)
        service.write([events.expiry_event()])
    elif kind == 6:
        service.write([events.config_event(_changed(service.tables.configuration, number))])
    elif kind == 7 and service.tables.schema is not None:
        service.write([events.history_event(_history(at, number), {"context": ["hour"]}, None)])
    elif kind == 8:
        service.write([events.erasure_event(f"e{at}", user)])
    elif kind in (9, 10) and last is not None:
        service.hear(last, clicks, f"f{at}", partial=kind == 9)
    elif kind == 11 and last is not None:
        service.hear(last, clicks, f"f{at}", slate=float(number % 4), shown=number % 4)
    elif kind == 12:
        service.hear(f"unknown-{number}", {item: 1.0}, f"f{at}")
    elif kind == 13 and last is not None:
        service.hear(last, {"not-shown": 1.0}, f"f{at}")
    else:
        context = {"hour": float(number % 24), "device": "xyz"[number % 3]}
        service.decide([None, user][number % 4 > 0], f"d{at}", context=context, eligible=_eligible(number))


def _eligible(number: int) -> list[str] | None:
    return [f"s{i}" for i in range(number % 24)] if number % 5 == 2 else None


def _changed(before: Configuration, number: int) -> Configuration:
    changes: list[dict[str, Any]] = [
        {"exploration": 0.2}, {"exploration": {"share": 0.3, "pool": 5, "anywhere": 0.5}}, {"exploration": None},
        {"window": 50.0 + number % 100}, {"learn_after": 20.0}, {"learn_after": None}, {"unanswered": "unseen"},
        {"mode": "holdout"}, {"policy": "popular"},
    ]  # fmt: skip
    return replace(before, **changes[number % len(changes)])


def _history(at: int, number: int) -> list[dict[str, Any]]:
    return [
        {"decision": f"h{at}-{slate}", "user": f"u{slate}", "item": f"s{(number + slot) % 24}", "slot": slot,
         "reward": float((number + slot + slate) % 2), "hour": float(number % 24)}
        for slate in range(2) for slot in range(3)
    ]  # fmt: skip


# --- on a store -----------------------------------------------------------------------------------------------


def stored(store: Store, name: str = "shop", policy: str = "linucb", **options: Any) -> Service:
    """A service whose log is in a store, with items and users."""
    given = {"slate_size": 3, "policy": policy, "remember": 1_000, "window": 3600.0, "exploration": 0.3, **options}
    head = store.create(name, events.config_event(Configuration.from_json(given)).payload)

    def append(made: list[Event]) -> list[Row]:
        found = store.append({head.id: made})[head.id]
        return store.read(head.id, found[0].seq - 1, len(found)) if found else []

    service = Service(append, time.time)
    for row in store.read(head.id, 0, 1):
        service.tables.apply(row)
    service.stock()
    return service


def visits(service: Service, count: int, seed: int = 0) -> list[Choice]:
    """Decisions with feedback for most of them: whole, partial, repeated and refused."""
    made = []
    for at in range(count):
        rng = stream(seed, "visits", at)
        user = f"u{rng.integers(12)}"
        choice = service.decide(user, f"{seed}-{at}", context={"hour": float(rng.integers(24))})
        clicks = {str(item): 1.0 for item in choice.items if rng.random() < 0.3}
        if at % 5:
            service.hear(choice, clicks, f"f{seed}-{at}", partial=at % 7 == 3)
        if at % 11 == 10:
            service.hear(choice, {"nothing": 1.0}, f"g{seed}-{at}")
        made.append(choice)
    return made
