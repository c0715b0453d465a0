"""Events of the log: how each kind is written and read. Payloads are canonical JSON: same content, same bytes."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from neuclust.errors import DataError, StateError, brief
from neuclust.recommender.choices import Choice
from neuclust.recommender.tables.values import Value, value_from_json, value_to_json
from neuclust.serve.configuration import Configuration
from neuclust.serve.store.contract import (
    CONFIG,
    DECISION,
    ERASURE,
    EXPIRY,
    FEEDBACK,
    FREEZE,
    HISTORY,
    ITEMS,
    ITEMS_REMOVED,
    USERS,
    USERS_REMOVED,
    Event,
    Row,
)

MOST_ROWS = 1_000  # items in one event
ONCE = "1"  # the key of the freeze: there is one
ARMS = ("live", "holdout", "shadow", "fallback")
DETAILS = ("slate", "shown", "partial")  # of feedback

Values = Mapping[str, Value]  # of one item or user, by column


def encode(content: Mapping[str, Any]) -> bytes:
    """A payload: UTF-8 JSON with sorted keys and no spaces; NaN, infinities and lone surrogates are refused."""
    try:
        text = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
        return text.encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise DataError(f"event: expected finite numbers, flags and texts, got others ({error!s:.100})") from None


def decode(payload: bytes | None) -> dict[str, Any]:
    """What `encode` wrote."""
    if payload is None:
        raise StateError("event: expected its content, which was erased; go on from the newest state")
    try:
        content = json.loads(payload, parse_constant=_no_number)
    except (ValueError, RecursionError) as error:
        raise StateError(f"event: expected JSON, got other bytes ({error!s:.100}); is the database damaged?") from None
    if not isinstance(content, dict):
        raise StateError(f"event: expected a JSON object, got {brief(content)}; is the database damaged?")
    return content


def _no_number(text: str) -> float:
    raise ValueError(f"{text}, which is no JSON number")


# --- settings and tables --------------------------------------------------------------------------------------


def config_event(configuration: Configuration) -> Event:
    """The whole configuration after a change."""
    return Event(CONFIG, encode(configuration.to_json()))


def items_events(items: Mapping[str, Values]) -> Iterator[Event]:
    """Items with all their values, up to 1,000 in an event."""
    rows = [_row(id, values) for id, values in items.items()]
    for start in range(0, len(rows), MOST_ROWS):
        yield Event(ITEMS, encode({"rows": rows[start : start + MOST_ROWS]}))


def users_events(users: Mapping[str, Values]) -> Iterator[Event]:
    """Users with all their values, one in an event, so that each can be erased."""
    for id, values in users.items():
        yield Event(USERS, encode({"rows": [_row(id, values)]}), user=id)


def items_removed_event(ids: Sequence[str]) -> Event:
    """Items that are taken out."""
    return Event(ITEMS_REMOVED, encode({"ids": list(ids)}))


def users_removed_events(ids: Sequence[str]) -> Iterator[Event]:
    """Users that are taken out, one in an event."""
    for id in ids:
        yield Event(USERS_REMOVED, encode({"ids": [id]}), user=id)


def freeze_event(row: Values, user: str | None = None) -> Event:
    """What the first request says, by column, and who asked; there is one such event in a log."""
    return Event(FREEZE, encode({"row": _json(row)}), key=ONCE, user=user)


def rows_of(content: Mapping[str, Any], id_column: str) -> list[dict[str, Value]]:
    """The rows of an items or users event, each with its id in a column."""
    try:
        return [{**_values(row["values"]), id_column: row["id"]} for row in content["rows"]]
    except (KeyError, TypeError, AttributeError) as error:
        raise StateError(f"event: expected rows of id and values, got others ({error!s:.100}); damaged?") from None


def row_of(content: Mapping[str, Any]) -> dict[str, Value]:
    """The row of a freeze event."""
    return _values(content["row"])


def _row(id: str, values: Values) -> dict[str, Any]:
    return {"id": id, "values": _json(values)}


def _json(values: Values) -> dict[str, Any]:
    return {name: value_to_json(value) for name, value in values.items()}


def _values(saved: Mapping[str, Any]) -> dict[str, Value]:
    return {name: value_from_json(value) for name, value in saved.items()}


# --- decisions and what came back -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Asked:
    """What the store keeps of a request: its id, and the digest of its body."""

    request: str | None = None
    digest: bytes | None = None


def decision_event(choice: Choice, asked: Asked, **entries: Any) -> Event:
    """A slate that is shown; `entries` has at least arm, version and expires_at. Request ids are in the store alone."""
    return decision_parts(choice, asked, **entries)[0]


def decision_parts(choice: Choice, asked: Asked, **entries: Any) -> tuple[Event, dict[str, Any]]:
    """The event of a slate, and its content as it is read back."""
    request = None if choice.request is None else replace(choice.request, request_id=None)
    means, bonuses = choice.logged()
    kept = replace(choice, request_id=None, request=request, means=means, bonuses=bonuses)
    content = {"choice": kept.to_json(), **entries}
    user = None if choice.user is None else str(choice.user)
    return Event(DECISION, encode(content), choice.id, asked.request, asked.digest, user), content


def choice_of(content: Mapping[str, Any]) -> Choice:
    """The choice of a decision event."""
    return Choice.from_json(content["choice"])


def feedback_event(
    key: str, decision: str, items: Mapping[str, float], details: Mapping[str, Any], user: str | None, digest: bytes
) -> Event:
    """What came back for a decision; `details` may have slate, shown and partial."""
    said = {name: details[name] for name in DETAILS if details.get(name) is not None}
    content = encode({"decision": decision, "items": dict(items), **said})
    return Event(FEEDBACK, content, key, digest=digest, user=user, about=decision)


def expiry_event() -> Event:
    """Windows that ended by its time."""
    return Event(EXPIRY, encode({}))


def history_event(rows: Sequence[Values], columns: Mapping[str, Any], user: str | None = None) -> Event:
    """Decisions of another system, a long table; `columns` as `Recommender.fit_log` takes them."""
    return Event(HISTORY, encode({"rows": [_json(row) for row in rows], "columns": dict(columns)}), user=user)


def history_of(content: Mapping[str, Any]) -> tuple[list[dict[str, Value]], dict[str, Any]]:
    """The rows and the names of the columns of a history event."""
    return [_values(row) for row in content["rows"]], dict(content["columns"])


def erasure_event(key: str, user: str) -> Event:
    """Everything of a user is to be deleted."""
    return Event(ERASURE, encode({"id": user}), key=key, user=user)


def is_erased(row: Row) -> bool:
    """Whether the content of an event was deleted."""
    return row.payload is None
