"""Rows of a table by id: a code per id that no other id ever gets, raw values by column, encoded rows in one buffer."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from neuclust.errors import DataError
from neuclust.recommender.tables.ids import find
from neuclust.recommender.tables.tables import MOST_COLUMNS
from neuclust.recommender.tables.values import LONGEST_ID, Id, shown

Matrix = NDArray[np.float64]
Codes = NDArray[np.int64]
Encode = Callable[[Mapping[str, list[Any]]], Matrix]

MOST_BITS = 3322  # of a whole number of 1,000 digits
UNKNOWN = -1  # in the place of a code


@dataclass(frozen=True, slots=True)
class Changes:
    """What one call of `add` did: ids that are new or back, and ids that were there and have new values."""

    added: list[Id]
    changed: list[Id]


@dataclass
class Rows:
    """Codes 0, 1, … in the order in which ids came; row c of the buffer and entry c of a column belong to code c."""

    dim: int
    ids: list[Id] = field(default_factory=list)  # by code
    codes: dict[Id, int] = field(default_factory=dict)
    columns: dict[str, list[Any]] = field(default_factory=dict)  # raw values by code
    buffer: Matrix = field(init=False)  # (capacity, dim), capacity >= number of codes

    def __post_init__(self) -> None:
        self.buffer = np.zeros((max(len(self.ids), 16), self.dim))

    def __len__(self) -> int:
        return len(self.ids)

    def put(self, ids: Sequence[Id], columns: Mapping[str, Sequence[Any]], encoded: Matrix) -> Codes:
        """Add new ids and replace the values of known ones; the codes of all, (n,).

        Columns that the table has not are missing (None) in these rows, so that raw and encoded values agree.
        Everything is checked before anything changes.
        """
        self._check(ids, columns, encoded)
        known = len(self.ids)
        fresh = [each for each, code in zip(ids, self.codes_of(ids), strict=True) if code == UNKNOWN]
        self._grow(known + len(fresh))
        self.codes.update(zip(fresh, range(known, known + len(fresh)), strict=True))
        self.ids.extend(fresh)
        codes = np.array(self.codes_of(ids), dtype=np.int64)
        self.buffer[codes] = encoded
        for name in columns:
            self.columns.setdefault(name, [None] * known)
        places = codes.tolist()
        for name, kept in self.columns.items():
            kept.extend([None] * len(fresh))
            values = columns.get(name)
            for place, value in zip(places, [None] * len(places) if values is None else values, strict=True):
                kept[place] = value
        return codes

    def code(self, id: Id) -> int | None:
        """The code of an id, however it is written; None where it never came."""
        return find(self.codes, id)

    def codes_of(self, ids: Sequence[Id]) -> list[int]:
        """The codes of ids, `UNKNOWN` for those that never came."""
        get = self.codes.get
        found = [get(each, UNKNOWN) for each in ids]
        if UNKNOWN not in found:  # as nearly always: written as they were given
            return found
        return [UNKNOWN if (code := self.code(each)) is None else code for each in ids]

    def given(self, codes: Iterable[int]) -> list[Id]:
        """The ids of codes, as they were first given."""
        return [self.ids[code] for code in codes]

    def clear(self, codes: Codes) -> None:
        """Drop the values of rows; their ids keep their codes."""
        self.buffer[codes] = 0.0
        for kept in self.columns.values():
            for code in codes.tolist():
                kept[code] = None

    def without(self, codes: Codes) -> Self:
        """The same rows but these, under new codes in the old order; nothing of the others is kept."""
        left = np.delete(np.arange(len(self.ids)), codes)
        ids = [self.ids[place] for place in left.tolist()]
        new = type(self)(self.dim, ids, {each: code for code, each in enumerate(ids)}, self.only(left))
        new.buffer[: len(ids)] = self.buffer[left]
        return new

    def raw(self, code: int) -> dict[str, Any]:
        """The values of one row as they were given, by column."""
        return {name: values[code] for name, values in self.columns.items()}

    def only(self, codes: Codes) -> dict[str, list[Any]]:
        """The raw columns of some rows, in this order."""
        places = codes.tolist()
        return {name: [values[place] for place in places] for name, values in self.columns.items()}

    def reencoded(self, codes: Codes, encode: Encode) -> Self:
        """The same ids, codes and raw values; the rows of `codes` encoded anew (n, d'), the others 0."""
        encoded = np.asarray(encode(self.only(codes)), dtype=np.float64)
        if not self.columns and encoded.ndim == 2 and not len(encoded):
            encoded = np.zeros((len(codes), encoded.shape[1]))  # a table without columns does not tell its rows
        if encoded.ndim != 2 or len(encoded) != len(codes) or not np.isfinite(encoded).all():
            raise DataError(f"encoding: expected {len(codes)} rows of finite numbers, got shape {encoded.shape}")
        columns = {name: list(values) for name, values in self.columns.items()}
        new = type(self)(encoded.shape[1], list(self.ids), dict(self.codes), columns)
        new.buffer[codes] = encoded
        return new

    def copy(self) -> Self:
        """An independent copy; values themselves cannot change and are shared."""
        columns = {name: list(values) for name, values in self.columns.items()}
        new = type(self)(self.dim, list(self.ids), dict(self.codes), columns)
        new.buffer[: len(self.ids)] = self.buffer[: len(self.ids)]
        return new

    def _grow(self, count: int) -> None:
        if count > len(self.buffer):
            larger = np.zeros((max(count, 2 * len(self.buffer)), self.dim))
            larger[: len(self.buffer)] = self.buffer
            self.buffer = larger

    def _check(self, ids: Sequence[Id], columns: Mapping[str, Sequence[Any]], encoded: Matrix) -> None:
        check_ids(ids)
        if encoded.shape != (len(ids), self.dim) or not np.isfinite(encoded).all():
            expected = f"finite encoded rows of shape ({len(ids)}, {self.dim})"
            raise DataError(f"rows: expected {expected}, got shape {encoded.shape}; encode them with the same schema")
        if len(self.columns.keys() | columns.keys()) > MOST_COLUMNS:
            got = len(self.columns.keys() | columns.keys())
            raise DataError(f"columns: expected at most {MOST_COLUMNS} over all tables added, got {got}; drop some")
        for name, values in columns.items():
            if not isinstance(name, str):
                raise DataError(f"columns: expected names as text, got {name!r:.100}; rename the column")
            if len(values) != len(ids):
                raise DataError(f"column {name!r:.100}: expected {len(ids)} values, one per id, got {len(values)}")
            check_values(name, values)


def check_ids(ids: Sequence[Id]) -> None:
    """Refuse ids that are not text or whole numbers of a moderate length, or come twice."""
    for each in ids:
        if not _is_id(each):
            raise DataError(
                f"ids: expected text or whole numbers of at most {LONGEST_ID} characters, got {shown(each)}"
            )
    if len(set(ids)) != len(ids):
        last = {each: place for place, each in enumerate(ids)}
        twice = next(each for place, each in enumerate(ids) if last[each] != place)
        raise DataError(f"ids: expected every id once, got {shown(twice)} twice; keep one row of it")


def _is_id(value: object) -> bool:
    if type(value) is int:
        return value.bit_length() <= MOST_BITS
    return type(value) is str and len(value) <= LONGEST_ID


def check_values(name: str, values: Iterable[Any]) -> None:
    """Refuse what cannot be kept and saved: other than None, flags, finite numbers, text, dates and tuples of them."""
    for value in values:
        if not (all(map(_is_plain, value)) if type(value) is tuple else _is_plain(value)):
            expected = "missing, true or false, finite numbers, text, dates or tuples of them"
            raise DataError(f"column {name!r:.100}: expected {expected}, got {shown(value)}; convert it")


def _is_plain(value: object) -> bool:
    kind = type(value)
    if kind is str or value is None or kind is bool:
        return True
    if isinstance(value, float):
        return kind is float and math.isfinite(value)
    return value.bit_length() <= MOST_BITS if isinstance(value, int) else isinstance(value, date)
