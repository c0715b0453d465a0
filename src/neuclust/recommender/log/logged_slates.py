"""Slates of another system, from a long table with one row per decision and item, completely checked."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from typing import Any, TypedDict

import numpy as np

from neuclust.errors import ConfigError, DataError, suggestion
from neuclust.recommender.feedback.messages import FeedbackConfig
from neuclust.recommender.feedback.rewards import Values
from neuclust.recommender.tables.columns import day_of
from neuclust.recommender.tables.ids import distinct
from neuclust.recommender.tables.tables import Table, closest, read_table
from neuclust.recommender.tables.values import Id, RowError, Value, plain_id, shown

NAME = "fit_log"


class LogColumns(TypedDict, total=False):
    """The names of a log's columns."""

    decision: str  # rows of one value are one slate; they may stand anywhere
    user: str | None  # ids; missing ones, or no such column: nobody known
    item: str
    slot: str | None  # numbers that order a slate; no such column: the order of the table
    reward: str  # in the range that was declared; missing: nobody saw the item
    context: Sequence[str]  # columns with what was known of the request
    time: str | None  # seconds or dates that order the decisions; None: the order of the table


@dataclass(frozen=True, slots=True)
class LoggedSlate:
    """One decision of the table, its items in slot order."""

    id: Id
    rows: tuple[int, ...]  # of the table
    items: tuple[Id, ...]
    values: Values  # (k,) in the user's units; NaN: unseen
    user: Id | None
    context: dict[str, Value]
    time: float | None


@dataclass(frozen=True)
class _Columns:
    """The columns of the table by their part; user, slot and time may be absent."""

    decision: list[Value]
    item: list[Value]
    reward: list[Value]
    user: list[Value] | None
    slot: list[Value] | None
    time: list[Value] | None
    context: dict[str, list[Value]] = field(default_factory=dict)


def read_slates(source: Any, names: LogColumns, config: FeedbackConfig, slate_size: int) -> list[LoggedSlate]:
    """The slates of a table of any kind, in the order in which they are to be learned."""
    table = read_table(source, NAME)
    if not len(table):
        return []
    columns = _columns(table, names)
    try:
        slates = _slates(columns, config, slate_size)
    except RowError as error:
        raise DataError(error.told(table.place)) from None
    return slates if columns.time is None else sorted(slates, key=lambda slate: slate.time or 0.0)


def _slates(columns: _Columns, config: FeedbackConfig, slate_size: int) -> list[LoggedSlate]:
    """The slates in the order of their first rows."""
    groups: dict[Id, list[int]] = {}
    for row, value in enumerate(columns.decision):
        groups.setdefault(_id(value, "decision", row), []).append(row)
    rewards = _rewards(columns, config)
    return [_slate(id, rows, columns, rewards, slate_size) for id, rows in groups.items()]


def _columns(table: Table, names: LogColumns) -> _Columns:
    for name in names:
        if name not in LogColumns.__optional_keys__:
            known = sorted(LogColumns.__optional_keys__)
            raise ConfigError(f"{NAME}: there is no {name!r:.100}; {suggestion(str(name)[:100], known)}")
    context = names.get("context", ())
    if isinstance(context, str) or not isinstance(context, Iterable):
        raise ConfigError(f"expected a list of column names, got {context!r:.100}", field="context")
    return _Columns(
        decision=_named(table, names.get("decision", "decision"), "decision"),
        item=_named(table, names.get("item", "item"), "item"),
        reward=_named(table, names.get("reward", "reward"), "reward"),
        user=_optional(table, "user", names.get("user", "user" if "user" in table.columns else None)),
        slot=_optional(table, "slot", names.get("slot", "slot" if "slot" in table.columns else None)),
        time=_optional(table, "time", names.get("time")),
        context={str(name): _named(table, name, "context") for name in context},
    )  # fmt: skip


def _optional(table: Table, part: str, name: Any) -> list[Value] | None:
    return None if name is None else _named(table, name, part)


def _named(table: Table, name: Any, part: str) -> list[Value]:
    if not isinstance(name, str) or name not in table.columns:
        near = closest(name if isinstance(name, str) else "", table.columns)
        raise DataError(f"{NAME}: expected a column with the {part}, and there is no {shown(name)}; {near}")
    return table.columns[name]


# --- one decision ---------------------------------------------------------------------------------------------


def _slate(id: Id, rows: Sequence[int], columns: _Columns, rewards: Values, slate_size: int) -> LoggedSlate:
    if len(rows) > slate_size:
        wanted = f"expected at most {slate_size} items, the slate size"
        advice = "make the recommender with a larger slate_size"
        raise _refusal(id, rows[slate_size], f"{wanted}, got {len(rows)}; {advice}")
    ordered = _ordered(id, rows, columns.slot)
    items = tuple(_id(columns.item[row], "item", row) for row in ordered)
    if len(distinct(items)) < len(items):
        at = next(at for at in range(1, len(items)) if not distinct([items[at]]).isdisjoint(distinct(items[:at])))
        raise _refusal(id, ordered[at], f"expected every item once, got {items[at]!r:.100} again; keep one row of it")
    return LoggedSlate(
        id=id, rows=tuple(ordered), items=items, values=rewards[ordered],
        user=_user(id, rows, columns.user),
        context={name: _agreed(id, rows, values, name) for name, values in columns.context.items()},
        time=None if columns.time is None else min(_seconds(columns.time[row], row) for row in rows),
    )  # fmt: skip


def _ordered(id: Id, rows: Sequence[int], slots: list[Value] | None) -> list[int]:
    """The rows in the order of their slots."""
    if slots is None:
        return list(rows)
    for row in rows:
        if isinstance(slots[row], bool) or not isinstance(slots[row], int | float):
            raise _refusal(id, row, f"expected a number as the slot, got {_came(slots[row])}; count slots from 1")
    places: dict[Any, int] = {slots[row]: row for row in rows}
    if len(places) < len(rows):
        twice = next(row for row in rows if places[slots[row]] != row)
        last = places[slots[twice]]
        got = f"got {slots[last]!r:.100} twice"
        raise _refusal(id, last, f"expected every slot once, {got}; keep one of them")
    return [places[slot] for slot in sorted(places)]


def _user(id: Id, rows: Sequence[int], users: list[Value] | None) -> Id | None:
    found = None if users is None else _agreed(id, rows, users, "the user")
    return None if found is None else _id(found, "user", rows[0])


def _agreed(id: Id, rows: Sequence[int], values: list[Value], what: str) -> Value:
    """The value that all rows of a decision share."""
    first = values[rows[0]]
    for row in rows:
        if values[row] != first:
            got = f"got {_came(values[row])} after {_came(first)}"
            raise _refusal(id, row, f"expected one value of {what:.100} in all rows of the decision, {got}")
    return first


def _seconds(value: Value, row: int) -> float:
    """A number of seconds, a date, or ISO text of one, as seconds since 1970."""
    moment = day_of(value) if isinstance(value, str) else value
    if isinstance(moment, int | float) and not isinstance(moment, bool):
        return float(moment)
    if not isinstance(moment, date):
        raise RowError(NAME, f"expected seconds or a date as the time, got {_came(value)}", row)
    if not isinstance(moment, datetime):
        moment = datetime(moment.year, moment.month, moment.day)
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def _rewards(columns: _Columns, config: FeedbackConfig) -> Values:
    """Rewards (n,) in the user's units, NaN where they are missing; the first one outside the range is named."""
    found = np.full(len(columns.reward), math.nan)
    for row, value in enumerate(columns.reward):
        if value is None:
            continue
        if not isinstance(value, int | float) or not config.low <= value <= config.high:
            wanted = f"expected a reward from {config.low:g} to {config.high:g}, got {_came(value)}"
            raise _refusal(_id(columns.decision[row], "decision", row), row, f"{wanted}; declare another reward_range")
        found[row] = value
    return found


def _id(value: Value, part: str, row: int) -> Id:
    if type(value) is str and 0 < len(value) <= 100:  # nearly all
        return value
    try:
        return plain_id(value, part)
    except DataError as error:
        raise RowError(f"{NAME}: {part}", str(error).removeprefix(f"{part}: "), row) from None


def _came(value: object) -> str:
    return "a missing value" if value is None else shown(value)


def _refusal(id: Id, row: int, text: str) -> DataError:
    return RowError(f"{NAME}: decision {id!r:.100}", text, row)
