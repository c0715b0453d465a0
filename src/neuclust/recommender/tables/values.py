"""Plain values: what a cell of a table may hold, and how values of NumPy, pandas, Arrow and Python become it.

A plain value is None (missing), a bool, int, float, str, date or datetime (aware ones in UTC), a tuple of str (tags) or
a tuple of float (a vector). Numbers are finite and at most `LARGEST` in size, text can be written as UTF-8.
"""

import math
import uuid
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from enum import Enum
from numbers import Real
from typing import Any

import numpy as np

from neuclust.errors import DataError, StateError, brief

Value = bool | int | float | str | date | tuple[str, ...] | tuple[float, ...] | None
Id = str | int

LARGEST = 1e50  # the same as `core.LARGEST`
LONGEST = 10_000  # entries of a list in one cell
LONGEST_ID = 1_000  # characters
EXACT = 2**53  # up to which a float is one whole number and no other

_MISSING = {"NAType", "NaTType"}  # of pandas, which is not imported to ask for them
_AS_TEXT = {"Interval", "Period"}  # of pandas: categories made by `cut`
_ADVICE = {
    "bytes": "decode them to text", "bytearray": "decode them to text", "dict": "make each of its entries a column",
    "complex": "give its real part or its size", "timedelta": "give seconds as a number",
    "Timedelta": "give seconds as a number", "time": "give the hour as a number",
}  # fmt: skip
WANTED = "expected a number, true or false, text, a date, a list of tags or a vector"


class NotPlain(ValueError):
    """A value that no cell may hold; the text says what was expected, what came and what to do."""


class RowError(DataError):
    """A value that does not fit and its row (None: it came alone), which a reader of files tells by its line."""

    def __init__(self, head: str, said: str, row: int | None) -> None:
        super().__init__(f"{head}{'' if row is None else f', row {row}'}: {said}")
        self.head, self.said, self.row = head, said, row

    def told(self, place: Callable[[int], str]) -> str:
        """The sentence with the place of the row in its table."""
        return str(self) if self.row is None else f"{self.head}, {place(self.row)}: {self.said}"


def plain(value: Any) -> Value:
    """A value as a plain one; raises `NotPlain`."""
    kind = type(value)
    if value is None:
        return None
    if kind is bool:
        return value is True
    if kind is int or kind is float:
        return _number(value)
    if kind is str:
        return _text(value)
    if kind is list or kind is tuple:
        return _sequence(list(value), ordered=True)
    return _day(value) if kind is date else _converted(value)


def _number(value: float) -> Value:
    if -LARGEST <= value <= LARGEST:
        return value
    if value != value:
        return None
    size = "infinity" if isinstance(value, float) and math.isinf(value) else "a larger one"
    raise NotPlain(f"expected a finite number of at most {LARGEST:g} in size, got {size}; leave it out or scale it")


def _text(value: str) -> str:
    if value.isascii():
        return value
    try:
        value.encode()
    except UnicodeEncodeError:
        raise NotPlain(f"expected text that UTF-8 can write, got {value!a:.100}; replace its lone surrogates") from None
    return value


def _converted(value: Any) -> Value:
    """What is of no plain type itself."""
    name = type(value).__name__
    if isinstance(value, Enum):
        return plain(value.value)
    if name in _MISSING:
        return None
    if isinstance(value, np.generic):
        return _scalar(value)
    if isinstance(value, date):
        return _day(value)
    if isinstance(value, str):
        return _text(str.__str__(value))
    if isinstance(value, Decimal):
        return None if value.is_nan() else _number(float(value))
    if isinstance(value, Real):
        return _real(value)
    if isinstance(value, uuid.UUID) or name in _AS_TEXT:
        return _text(str(value))
    if getattr(value, "ndim", None) == 0 and callable(getattr(value, "item", None)):  # an array of one number
        return plain(value.item())
    entries = _entries(value)
    if entries is None:
        raise NotPlain(f"{WANTED}, got {kind_of(value)}" + (f"; {_ADVICE[name]}" if name in _ADVICE else ""))
    return _sequence(entries, ordered=not isinstance(value, set | frozenset))


def _scalar(value: Any) -> Value:
    """A scalar of NumPy."""
    if isinstance(value, np.str_):
        return _text(str(value))
    if isinstance(value, np.bool_):
        return bool(value)
    if isinstance(value, np.integer) and not isinstance(value, np.timedelta64):
        return int(value)
    if isinstance(value, np.floating):
        return _number(float(value))
    if isinstance(value, np.datetime64):
        if np.isnat(value):
            return None
        moment = value.astype("datetime64[us]").item()
        if isinstance(moment, date):
            return _day(moment)
        raise NotPlain("expected a date of the years 1 to 9999, got an earlier or later one; leave it out")
    raise NotPlain(f"{WANTED}, got a NumPy {type(value).__name__}")


def _real(value: Any) -> Value:
    try:
        return _number(int(value) if isinstance(value, int) else float(value))
    except (OverflowError, ValueError, TypeError):
        raise NotPlain(f"expected a finite number, got {kind_of(value)} that no float can hold") from None


def _day(value: date) -> date:
    """The same date or datetime as the standard library's own, in UTC where it has a time zone."""
    if type(value) is date:
        return value
    if not isinstance(value, datetime):
        return date(value.year, value.month, value.day)
    v = value
    moment = datetime(v.year, v.month, v.day, v.hour, v.minute, v.second, v.microsecond, v.tzinfo, fold=v.fold)
    try:
        return moment if moment.utcoffset() is None else moment.astimezone(UTC)
    except (OverflowError, ValueError):
        raise NotPlain("expected a date of the years 1 to 9999 in UTC, got an earlier or later one") from None


def _entries(value: Any) -> list[Any] | None:
    """The entries of a list, set or array in a cell; None where it is none."""
    if isinstance(value, list | tuple | set | frozenset):
        return list(value)
    for method in ("tolist", "to_pylist", "to_list"):  # arrays of NumPy, pandas and torch; of Arrow; of Polars
        listed = getattr(value, method, None)
        if callable(listed) and not isinstance(value, type):
            found = listed()
            return found if isinstance(found, list) else None
    return None


def _sequence(entries: list[Any], ordered: bool) -> Value:
    """Numbers of a list as a vector, everything else as tags: the texts without the missing ones."""
    if len(entries) > LONGEST:
        raise NotPlain(f"expected at most {LONGEST} entries in a list, got {len(entries)}; shorten it")
    kinds = set(map(type, entries))
    if ordered and kinds == {float} and _moderate(entries):  # embeddings: many
        return tuple(entries)
    if kinds == {str}:
        tags = [_text(entry) for entry in entries]
        return tuple(tags if ordered else sorted(tags))
    if any(_entries(entry) is not None for entry in entries):
        raise NotPlain("expected a list of tags or numbers, got lists within a list; flatten it")
    values = [plain(entry) for entry in entries]
    if ordered and values and all(isinstance(entry, int | float | None) for entry in values):
        if None in values:
            at = values.index(None)
            raise NotPlain(f"expected a vector of finite numbers, got none at entry {at}; fill it or drop the vector")
        return tuple(float(entry) for entry in values if isinstance(entry, int | float))
    tags = [text_of(entry) for entry in values if entry is not None]
    return tuple(tags if ordered else sorted(tags))


def _moderate(numbers: list[float]) -> bool:
    """Whether all are finite and within `LARGEST`; the sum shows NaN, which comparisons may not."""
    return math.isfinite(sum(numbers)) and min(numbers) >= -LARGEST and max(numbers) <= LARGEST


def text_of(value: Value) -> str:
    """The text by which values are compared as levels and tags: 1, 1.0 and "1" are the same."""
    if isinstance(value, str):
        return value
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return value.isoformat() if isinstance(value, date) else str(value)


def plain_column(
    values: Sequence[Any], table: str, column: str, place: Callable[[int], str] = "row {}".format
) -> list[Value]:
    """A column of plain values; the first one that cannot be is named by its column and the place of its row."""
    try:
        return [plain(value) for value in values]
    except NotPlain:
        pass
    for row, value in enumerate(values):
        try:
            plain(value)
        except NotPlain as error:
            raise DataError(f"{table}: column {column!r:.100}, {place(row)}: {error}") from None
    raise DataError(f"{table}: column {column!r:.100}: {WANTED} in each row, got values that change when read")


def plain_row(row: Any, table: str) -> dict[str, Value]:
    """One row given as a mapping (a request's context, a user's features), checked and with plain values."""
    if not isinstance(row, Mapping):
        raise DataError(f"{table}: expected a dictionary of column names and values, got {kind_of(row)}")
    found: dict[str, Value] = {}
    for name, value in row.items():
        check_name(name, table)
        try:
            found[str(name)] = plain(value)
        except NotPlain as error:
            raise DataError(f"{table}: {name!r:.100}: {error}") from None
    return found


def shown(value: object) -> str:
    """A value in a sentence, at most 100 characters; its type where it cannot be written."""
    return brief(value)


def kind_of(value: object) -> str:
    """The type of a value in a sentence: `a list`, `an int`."""
    name = f"{type(value).__name__:.100}"
    return f"{'an' if name[:1].lower() in tuple('aeiou') else 'a'} {name}"


def check_name(name: Any, table: str) -> None:
    """Refuse what is no name of a column."""
    if isinstance(name, str) and 0 < len(name) <= LONGEST_ID:
        try:
            name.encode()
        except UnicodeEncodeError:
            raise DataError(f"{table}: expected column names that UTF-8 can write, got {name!a:.100}") from None
        return
    wanted = f"text of 1 to {LONGEST_ID} characters as the name of a column"
    raise DataError(f"{table}: expected {wanted}, got {shown(name)}; rename the column")


def plain_id(value: Any, where: str) -> Id:
    """An id as a str or int; `where` begins the sentence of a refusal."""
    kind = type(value)
    if kind is int and -LARGEST <= value <= LARGEST:
        return int(value)
    try:
        found = plain(value)
    except NotPlain as error:
        raise DataError(f"{where}: expected text or a whole number as an id; {error}") from None
    if isinstance(found, float) and found.is_integer() and abs(found) <= EXACT:
        return int(found)
    if isinstance(found, bool) or not isinstance(found, str | int):
        came = "a missing value" if found is None else f"{found!r:.100}"
        raise DataError(f"{where}: expected text or a whole number as an id, got {came}; give every row its own id")
    if isinstance(found, str) and not 0 < len(found) <= LONGEST_ID:
        came = f"a text of {len(found):,}" if found else "an empty text; give every row its own id"
        raise DataError(f"{where}: expected an id of 1 to {LONGEST_ID} characters, got {came}")
    return found


# --- saving ---------------------------------------------------------------------------------------------------


def value_to_json(value: Value) -> Any:
    """A plain value as JSON: dates as {"date": text} or {"datetime": text}, tuples as lists."""
    if isinstance(value, datetime):
        return {"datetime": value.isoformat()}
    if isinstance(value, date):
        return {"date": value.isoformat()}
    return list(value) if isinstance(value, tuple) else value


def value_from_json(saved: Any) -> Value:
    """What `value_to_json` wrote."""
    try:
        if isinstance(saved, dict) and len(saved) == 1:
            (kind, text), *_ = saved.items()
            return {"datetime": datetime.fromisoformat, "date": date.fromisoformat}[kind](text)
        return plain(saved)
    except (NotPlain, KeyError, ValueError, TypeError):
        raise StateError(f"saved values: expected a plain value, got {saved!r:.100}; the save is damaged") from None
