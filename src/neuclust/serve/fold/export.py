"""The log of a recommender in the format that a `Recommender` writes (docs/logs.md), for evaluation and warm starts."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from neuclust.recommender.log.events import decided_event, start_event, stocked_event
from neuclust.recommender.reader import told_request
from neuclust.serve.configuration import Configuration
from neuclust.serve.events import choice_of, decode
from neuclust.serve.fold.blobs import read_state
from neuclust.serve.store.contract import (
    CONFIG,
    DECISION,
    ERASURE,
    FEEDBACK,
    ITEMS,
    ITEMS_REMOVED,
    USERS,
    USERS_REMOVED,
    Head,
    Row,
    Store,
)

BATCH = 500  # events read at a time
TABLES = {ITEMS: "items", USERS: "users", ITEMS_REMOVED: "items", USERS_REMOVED: "users", ERASURE: "users"}
REMOVED = {"items": "removed", "users": "users-removed"}
REFUSED = "refused"

Entry = dict[str, Any]


def exported(store: Store, head: Head, after: int = 0) -> Iterator[Entry]:
    """Events after a place in the log, up to the last one that was learned; each has its `seq`.

    From the beginning, or from where events are kept on, a `start` with all items and users comes first. What was
    refused is left out.
    """
    progress = store.progress(head.id)
    until = 0 if progress is None else min(progress.seq, head.seq)
    export = _Export(head.name)
    if after <= head.base:
        yield from export.begun(store, head)
        after = head.base
    else:
        export.remember(store, head, after)
    for row, told in _told_rows(store, head.id, after, until):
        if row.payload is not None:
            for entry in export.entries(row, told):
                yield {**entry, "seq": row.seq}


def _told_rows(store: Store, id: int, after: int, until: int) -> Iterator[tuple[Row, Mapping[str, Any]]]:
    """Events with what was told of them, {} where nothing was."""
    while after < until and (rows := store.read(id, after, BATCH, until=until)):
        told = store.told(id, after, BATCH)
        for row in rows:
            yield row, decode(told[row.seq]) if row.seq in told else {}
        after = rows[-1].seq


@dataclass
class _Export:
    """Which items and users are there, so that what is removed was there."""

    run: str
    there: dict[str, set[str]] = field(default_factory=lambda: {"items": set(), "users": set()})

    def begun(self, store: Store, head: Head) -> Iterator[Entry]:
        """The start, with the configuration by which the schema was fixed, and what the base holds."""
        if head.base == 0:
            yield {**start_event(_first_configuration(store, head).read, self.run), "seq": 0}
            return
        version = next(each for each in store.versions(head.id) if each.state and each.seq == head.base)
        shop = read_state(store.state(head.id, version.version) or b"").shop
        yield {**start_event(shop.settings, self.run), "seq": head.base}
        for table, ids, rows in (
            ("items", shop.stock.catalogue.ids(), shop.stock.catalogue.rows),
            ("users", shop.stock.users.ids(), shop.stock.users.rows),
        ):
            self.there[table].update(map(str, ids))
            yield from ({**stocked_event(table, id, rows), "seq": head.base} for id in ids)

    def remember(self, store: Store, head: Head, until: int) -> None:
        """What is there after an earlier event."""
        for _ in self.begun(store, head):
            pass
        for row, told in _told_rows(store, head.id, head.base, until):
            if row.kind in TABLES and row.payload is not None:
                for _ in self.entries(row, told):
                    pass

    def entries(self, row: Row, told: Mapping[str, Any]) -> Iterator[Entry]:
        """What the log has in the place of an event: its lessons, before and after it."""
        before, own = _lessons(row, told)
        yield from before
        if told.get("status") != REFUSED:
            content = decode(row.payload)
            if row.kind in TABLES:
                yield from self._table(row.kind, content)
            elif row.kind == DECISION:
                choice = replace(choice_of(content), time=row.time)
                yield decided_event(choice, told_request(choice), self.run)
            elif row.kind == FEEDBACK:
                yield _feedback(row, content, str(told.get("status")))
            yield from ({**entry, "run": self.run} for entry in told.get("events", ()))
        yield from own

    def _table(self, kind: str, content: Mapping[str, Any]) -> Iterator[Entry]:
        table = TABLES[kind]
        there = self.there[table]
        if kind in (ITEMS, USERS):
            for row in content["rows"]:
                there.add(row["id"])
                yield {"event": table, "id": row["id"], "values": row["values"]}
            return
        ids = [content["id"]] if kind == ERASURE else dict.fromkeys(content["ids"])
        gone = [id for id in ids if id in there]
        there.difference_update(gone)
        if gone:
            yield {"event": REMOVED[table], "ids": gone}


def _first_configuration(store: Store, head: Head) -> Configuration:
    """The configuration when the schema was fixed, or the newest one where it was not."""
    rows = store.read(head.id, 0, BATCH, [CONFIG], until=head.frozen or None)
    return Configuration.from_json(decode(rows[-1].payload))


def _lessons(row: Row, told: Mapping[str, Any]) -> tuple[Sequence[Entry], Sequence[Entry]]:
    """What was due before an event, and the lesson of a feedback itself."""
    lessons = [{"event": "learned", **lesson} for lesson in told.get("lessons", ())]
    closes = row.kind == FEEDBACK and told.get("status") in ("learned", "open") and lessons
    if closes and lessons[-1]["decision"] == decode(row.payload)["decision"]:
        return lessons[:-1], lessons[-1:]
    return lessons, ()


def _feedback(row: Row, content: Mapping[str, Any], status: str) -> Entry:
    said = {name: content[name] for name in ("slate", "shown", "partial") if name in content}
    items = [[item, float(value)] for item, value in content["items"].items()]
    own = {} if row.key is None else {"feedback_id": row.key}
    return {
        "event": "feedback", "decision": content["decision"], "time": row.time, "items": items, "status": status,
        **said, **own,
    }  # fmt: skip
