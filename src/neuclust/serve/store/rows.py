"""Rows of the log: made from events under the recommender's lock, and read back with their hashes checked."""

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from neuclust.errors import DataError
from neuclust.serve.store.chain import SALT, chained, is_whole, payload_hash
from neuclust.serve.store.contract import FREEZE, KINDS, TABLE_KINDS, Appended, Damaged, Event, Row
from neuclust.serve.store.database import Values, check_text


@dataclass(frozen=True, slots=True)
class Tail:
    """The end of a log, from which the next event is chained."""

    seq: int
    time: float
    hash: bytes
    tables: int
    frozen: int


@dataclass(frozen=True, slots=True)
class Taken:
    """The rows that hold keys, by kind and key, and request ids."""

    keys: Mapping[tuple[str, str], Row]
    requests: Mapping[str, Row]

    @classmethod
    def of(cls, rows: Iterable[Row]) -> "Taken":
        rows = list(rows)
        return cls(
            {(row.kind, row.key): row for row in rows if row.key is not None},
            {row.request: row for row in rows if row.request is not None},
        )


@dataclass(frozen=True, slots=True)
class Placed:
    """What a group became: values to insert, an answer to each event, and the log's new end."""

    values: list[Values]
    answers: list[Appended]
    tail: Tail


def placed(id: int, tail: Tail, events: Sequence[Event], taken: Taken, now: float) -> Placed:
    """Give each event its place, or the row that holds its key or its request."""
    keys, requests = dict(taken.keys), dict(taken.requests)
    salts = os.urandom(SALT * len(events))
    time = max(tail.time, now)
    values: list[Values] = []
    answers: list[Appended] = []
    for index, event in enumerate(events):
        earlier = _holder(event, keys, requests)
        if earlier is not None:
            answers.append(Appended(earlier.seq, earlier.time, earlier))
            continue
        salt = salts[SALT * index : SALT * (index + 1)]
        row = _row(tail, event, time, salt)
        tail = _after(tail, row)
        if event.key is not None:
            keys[event.kind, event.key] = row
        if event.request is not None:
            requests[event.request] = row
        values.append(stored(id, row, salt))
        answers.append(Appended(row.seq, row.time))
    return Placed(values, answers, tail)


def stored(id: int, row: Row, salt: bytes | None) -> Values:
    """A row as the columns of the table hold it."""
    return (
        id, row.seq, row.kind, row.time, row.payload, row.key, row.request, row.digest, row.user, row.hash,
        row.content, row.before, row.about, salt,
    )  # fmt: skip


def checked_row(values: Sequence[Any]) -> Row:
    """A row from the columns of the table after the recommender's; `Damaged` where it is not what was written."""
    row, salt = Row(*values[:-1]), values[-1]
    if not is_whole(row, salt):
        raise Damaged(
            f"expected event {row.seq} of the log as it was written, got another content; restore the last backup"
        )
    return row


def check_events(events: Iterable[Event]) -> None:
    """Refuse what no database could hold, before anything is written."""
    for event in events:
        if event.kind not in KINDS:
            raise DataError(
                f"expected one of {', '.join(KINDS)}, got {event.kind!r:.50}; name one of them", field="kind"
            )
        check_text(event.key, "key")
        check_text(event.request, "request")
        check_text(event.user, "user")
        check_text(event.about, "about")


def check_gaps(rows: Sequence[Row], after: int, last: int, most: int) -> None:
    """Refuse rows that are not the ones after a place, up to `last` or the most that were asked for."""
    expected = min(most, max(0, last - after))
    if [row.seq for row in rows] != list(range(after + 1, after + 1 + expected)):
        raise Damaged(
            f"expected the events {after + 1} to {after + expected} of the log, got {len(rows)} of them; "
            "restore the last backup"
        )
    for row, following in pairwise(rows):
        if following.before != row.hash:
            raise Damaged(
                f"expected event {following.seq} of the log to follow the one before it, got another hash; "
                "restore the last backup"
            )


def _holder(event: Event, keys: Mapping[tuple[str, str], Row], requests: Mapping[str, Row]) -> Row | None:
    """The row that has an event's key, or else its request."""
    found = None if event.key is None else keys.get((event.kind, event.key))
    return requests.get(event.request) if found is None and event.request is not None else found


def _row(tail: Tail, event: Event, time: float, salt: bytes) -> Row:
    content = payload_hash(salt, event.payload, event.user, event.request, event.digest)
    seq = tail.seq + 1
    hash = chained(tail.hash, seq, event.kind, time, event.key, content)
    return Row(
        seq, event.kind, time, event.payload, event.key, event.request, event.digest, event.user, hash, content,
        before=tail.hash, about=event.about,
    )  # fmt: skip


def _after(tail: Tail, row: Row) -> Tail:
    tail = replace(tail, seq=row.seq, time=row.time, hash=row.hash)
    if row.kind in TABLE_KINDS:
        tail = replace(tail, tables=row.seq)
    return replace(tail, frozen=row.seq) if row.kind == FREEZE else tail
