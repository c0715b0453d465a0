"""Rows of items and users as they are uploaded: one as a JSON object, many as JSON, JSON lines, CSV or Parquet."""

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from neuclust.errors import DataError, StateError
from neuclust.recommender.log.logged_slates import LoggedSlate, read_slates
from neuclust.recommender.options import Settings
from neuclust.recommender.tables.json_lines import read_json_lines
from neuclust.recommender.tables.tables import Table, read_table
from neuclust.recommender.tables.values import Value, plain_row, value_from_json, value_to_json
from neuclust.serve.api.problems import Refused
from neuclust.serve.api.strict import parsed
from neuclust.serve.events import (
    history_event,
    items_events,
    items_removed_event,
    users_events,
    users_removed_events,
)
from neuclust.serve.store.contract import Event

RESERVED = {"items": "item_id", "users": "user_id"}  # names of the id columns inside
TOGETHER = 1_000  # slates of another system in one event
JSON, LINES, CSV, PARQUET = "application/json", "application/x-ndjson", "text/csv", "application/vnd.apache.parquet"
KINDS = {JSON: "", LINES: "", "application/jsonl": "", CSV: ".csv", PARQUET: ".parquet"}
MOST_ROWS = 1_000_000
LONGEST_ID = 1_000


@dataclass(frozen=True, slots=True)
class Row:
    """An item or a user: its id and its values."""

    id: str
    values: dict[str, Value]


def read_row(table: str, id: str, values: Mapping[str, Any]) -> Row:
    """A row of a JSON object, refused where a value is of no plain kind or it names another id."""
    if RESERVED[table] in values:
        raise DataError(f"{RESERVED[table]}: expected features beside the id, got a column of this name; rename it")
    named = read_id(id, table)
    if "id" in values and read_id(values["id"], table) != named:
        got = f"got {values['id']!r:.100}; leave it out, or PUT to that id"
        raise DataError(f"id: expected {named!r:.100}, the id of the path, {got}")
    plain = {name: _value(value, name) for name, value in values.items() if name != "id"}
    return Row(named, plain_row(plain, table))


def read_id(id: Any, table: str) -> str:
    """An id as text."""
    text = str(id) if type(id) is int else id
    if not isinstance(text, str) or not 0 < len(text) <= LONGEST_ID:
        raise DataError(f"id: expected a text of 1 to {LONGEST_ID:,} characters for {table}, got {id!r:.100}")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise DataError(f"id: expected Unicode text, got {id!r:.100}, which has half a character") from None
    return text


def _value(value: Any, name: str) -> Any:
    """A JSON value; objects are dates, {"date": "2026-01-31"}."""
    if not isinstance(value, dict):
        return value
    try:
        return value_from_json(value)
    except StateError:
        wanted = 'a number, a text, a list or a date such as {"date": "2026-01-31"}'
        raise DataError(f"{name:.60}: expected {wanted}, got {value!r:.100}") from None


def read_rows(table: str, body: bytes, media: str, id_column: str | None) -> list[Row]:
    """The rows of an upload, refused as a whole where one is wrong."""
    kind = _kind(media)
    if KINDS[kind]:
        return _of_table(table, _from_file(table, body, KINDS[kind]), id_column)
    rows = _json_rows(body, lines=kind != JSON)
    if len(rows) > MOST_ROWS:
        raise DataError(f"{table}: expected at most {MOST_ROWS:,} rows at once, got {len(rows):,}; send them in parts")
    return [_named_row(table, row, at, id_column) for at, row in enumerate(rows)]


def _kind(media: str) -> str:
    kind = media.partition(";")[0].strip().lower() or JSON
    if kind not in KINDS:
        raise Refused(415, f"Content-Type: expected one of {', '.join(KINDS)}, got {kind!r:.100}")
    return kind


def _json_rows(body: bytes, lines: bool) -> list[Any]:
    if lines:
        return list(read_json_lines(body.splitlines(), _line).values())
    found = parsed(body)
    if not isinstance(found, list):
        raise Refused(400, "body: expected a list of objects, or one object per line as application/x-ndjson")
    return found


def _line(line: bytes, at: int) -> Any:
    try:
        return parsed(line)
    except Refused as error:
        raise Refused(400, f"line {at}: {error}") from None


def _named_row(table: str, row: Any, at: int, id_column: str | None) -> Row:
    if not isinstance(row, dict):
        raise DataError(f"{table}: expected an object for every row, got {row!r:.100} as number {at + 1}")
    name = _id_column(table, row, id_column)
    values = {column: value for column, value in row.items() if column != name}
    try:
        return read_row(table, row[name], values)
    except DataError as error:
        raise DataError(f"{table}: row {at + 1}: {error}") from None


def _id_column(table: str, columns: Mapping[str, Any], given: str | None) -> str:
    """The column with the ids: the one named, else `id`, else `item_id` or `user_id`."""
    for name in (given,) if given else ("id", RESERVED[table]):
        if name in columns:
            return str(name)
    raise DataError(f"{table}: expected a column {given or 'id'!r:.100} with the ids, got {', '.join(columns)[:200]}")


def _from_file(table: str, body: bytes, ending: str) -> Table:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"{table}{ending}"
        path.write_bytes(body)
        try:
            return read_table(path, table)
        except DataError as error:
            raise DataError(str(error).replace(str(path), "the upload")) from None


def _of_table(table: str, read: Table, id_column: str | None) -> list[Row]:
    if not len(read):
        return []
    name = _id_column(table, read.columns, id_column)
    ids = [read_id(id, table) for id in read.columns[name]]
    columns = {column: values for column, values in read.columns.items() if column != name}
    if RESERVED[table] in columns:
        raise DataError(f"{RESERVED[table]}: expected features beside the ids, got a column of this name; rename it")
    return [Row(id, {column: values[at] for column, values in columns.items()}) for at, id in enumerate(ids)]


def events_of(table: str, rows: Sequence[Row]) -> Iterator[Event]:
    """The events that put rows."""
    values = {row.id: row.values for row in rows}
    return items_events(values) if table == "items" else users_events(values)


def content_of(rows: Sequence[Row]) -> dict[str, Any]:
    """Rows as an event holds them."""
    return {"rows": [{"id": row.id, "values": {k: value_to_json(v) for k, v in row.values.items()}} for row in rows]}


def removal_of(table: str, id: str) -> Event:
    """The event that takes an item or a user out."""
    return items_removed_event([id]) if table == "items" else next(users_removed_events([id]))


# --- slates of another system ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class History:
    """Slates of another system as events, their number, and the context columns of the first one."""

    events: list[Event]
    slates: int
    context: dict[str, Value]


def read_history(body: bytes, media: str, columns: Mapping[str, Any], settings: Settings) -> History:
    """A warm start, refused as a whole where a row is wrong. The slates of a user are together: they can be erased."""
    kind = _kind(media)
    source: Any = _from_file("history", body, KINDS[kind]).columns if KINDS[kind] else _json_rows(body, kind != JSON)
    table = read_table(source, "history")
    names: Any = dict(columns)
    ids = {names.get(part, part) for part in ("user", "item")} & table.columns.keys()
    texts = {name: [_as_id(value) if name in ids else value for value in vs] for name, vs in table.columns.items()}
    slates = read_slates(texts, names, settings.feedback, settings.slate_size)  # refuses
    by_user: dict[str | None, list[LoggedSlate]] = {}
    for slate in slates:
        by_user.setdefault(None if slate.user is None else str(slate.user), []).append(slate)
    events = []
    for user, theirs in by_user.items():
        for start in range(0, len(theirs), TOGETHER):
            places = [at for slate in theirs[start : start + TOGETHER] for at in slate.rows]
            rows = [{name: values[at] for name, values in texts.items() if values[at] is not None} for at in places]
            events.append(history_event(rows, names, user))
    return History(events, len(slates), dict(slates[0].context) if slates else {})


def _as_id(value: Value) -> Value:
    return str(value) if type(value) is int else value
