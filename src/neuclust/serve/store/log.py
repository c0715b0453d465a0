"""Statements of the log, over either kind of database."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from neuclust.serve.store.contract import Appended, Event, Row
from neuclust.serve.store.database import Database, Session
from neuclust.serve.store.rows import Tail, Taken, check_events, check_gaps, checked_row, placed
from neuclust.serve.store.tables import EVENT, EVENT_OF_E

# in the order of ids, so that two groups of several recommenders cannot wait for each other
_TAILS = "SELECT id, seq, time, hash, tables, frozen, {now} FROM recommenders WHERE id {among} ORDER BY id {lock}"
# the very expressions of the two indexes
BY_KEY = f"SELECT {EVENT} FROM events WHERE (CAST(recommender AS TEXT) || ' ' || kind || ' ' || key) {{among}}"
BY_REQUEST = f"SELECT {EVENT} FROM events WHERE (CAST(recommender AS TEXT) || ' ' || request) {{among}}"
_SET_TAIL = "UPDATE recommenders SET seq = ?, time = ?, hash = ?, tables = ?, frozen = ? WHERE id = ?"
_ALL = 2**62  # a number of rows, or a place in the log, that none reaches


@dataclass(frozen=True)
class SqlLog:
    """Fulfils `contract.Log`."""

    database: Database

    def append(self, groups: Mapping[int, Sequence[Event]]) -> dict[int, list[Appended]]:
        for events in groups.values():
            check_events(events)
        return self.database.write(lambda session: _appended(session, groups)) if groups else {}

    def read(
        self, id: int, after: int, most: int, kinds: Sequence[str] | None = None, until: int | None = None
    ) -> list[Row]:
        last = _ALL if until is None else until
        if kinds is None:
            return self.database.read(lambda session: _all_after(session, id, after, most, last))
        return self.database.read(lambda session: _of_kinds(session, id, after, most, last, list(dict.fromkeys(kinds))))

    def find(self, id: int, kind: str, keys: Sequence[str]) -> dict[str, Row]:
        names = [f"{id} {kind} {key}" for key in keys]
        rows = self.database.read(lambda session: session.rows(BY_KEY, (names,)))
        return {key: row for key, row in ((row.key, row) for row in map(checked_row, rows)) if key is not None}

    def find_request(self, id: int, request: str) -> Row | None:
        rows = self.database.read(lambda session: session.rows(BY_REQUEST, ([f"{id} {request}"],)))
        return checked_row(rows[0]) if rows else None

    def find_about(self, id: int, key: str, most: int) -> list[Row]:
        statement = f"SELECT {EVENT} FROM events WHERE recommender = ? AND about = ? ORDER BY seq LIMIT ?"
        return [
            checked_row(row) for row in self.database.read(lambda session: session.rows(statement, (id, key, most)))
        ]

    def latest(self, id: int, kind: str, most: int, before: int | None = None) -> list[Row]:
        statement = (
            f"SELECT {EVENT} FROM events WHERE recommender = ? AND kind = ? AND seq < ? ORDER BY seq DESC LIMIT ?"
        )
        values = (id, kind, _ALL if before is None else before, most)
        return [checked_row(row) for row in self.database.read(lambda session: session.rows(statement, values))]


# --- appending ------------------------------------------------------------------------------------------------


def _appended(session: Session, groups: Mapping[int, Sequence[Event]]) -> dict[int, list[Appended]]:
    """Each group behind the end of its log; the recommenders' rows stay locked until the transaction ends."""
    answers: dict[int, list[Appended]] = {id: [] for id in groups}
    rows, tails = [], []
    for id, *end, now in session.rows(_TAILS, (sorted(groups),)):
        if not groups[id]:
            continue
        group = placed(id, Tail(*end), groups[id], taken(session, id, groups[id]), now)
        answers[id] = group.answers
        rows += group.values
        tail = group.tail
        tails.append((tail.seq, tail.time, tail.hash, tail.tables, tail.frozen, id))
    if rows:
        session.insert("events", rows)
        for values in tails:
            session.run(_SET_TAIL, values)
    return answers


def taken(session: Session, id: int, events: Iterable[Event]) -> Taken:
    """The rows that hold keys or requests of these events already."""
    keys = [f"{id} {event.kind} {event.key}" for event in events if event.key is not None]
    requests = [f"{id} {event.request}" for event in events if event.request is not None]
    found = session.rows(BY_KEY, (keys,)) if keys else []
    if requests:
        found += session.rows(BY_REQUEST, (requests,))
    return Taken.of(map(checked_row, found))


# --- reading --------------------------------------------------------------------------------------------------


def _all_after(session: Session, id: int, after: int, most: int, last: int) -> list[Row]:
    """Every event after a place, none left out."""
    ends = session.rows("SELECT seq, dropped FROM recommenders WHERE id = ?", (id,))
    if not ends:
        return []
    statement = f"SELECT {EVENT} FROM events WHERE recommender = ? AND seq > ? AND seq <= ? ORDER BY seq LIMIT ?"
    rows = [checked_row(row) for row in session.rows(statement, (id, after, last, most))]
    check_gaps(rows, max(after, ends[0][1]), min(ends[0][0], last), most)
    return rows


def _of_kinds(session: Session, id: int, after: int, most: int, last: int, kinds: list[str]) -> list[Row]:
    """The first events of each kind after a place by the index of kinds, then the first of them all."""
    if not kinds:
        return []
    one = (
        "SELECT seq FROM (SELECT seq FROM events WHERE recommender = ? AND kind = ? AND seq > ? AND seq <= ? "
        "ORDER BY seq LIMIT ?) AS of_a_kind"
    )
    places = " UNION ALL ".join([one] * len(kinds))
    statement = (
        f"SELECT {EVENT_OF_E} FROM events AS e "
        f"JOIN (SELECT seq FROM ({places}) AS places ORDER BY seq LIMIT ?) AS first ON e.seq = first.seq "
        "WHERE e.recommender = ? ORDER BY e.seq"
    )
    values = [value for kind in kinds for value in (id, kind, after, last, most)]
    return [checked_row(row) for row in session.rows(statement, (*values, most, id))]
