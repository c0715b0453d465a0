"""The items and the users a recommender knows, by the ids their owner gave them."""

from collections.abc import Iterable, Mapping, Sequence
from numbers import Integral
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from neuclust.errors import DataError, StateError
from neuclust.recommender.items.functions import ItemFunctions
from neuclust.recommender.items.rows import UNKNOWN, Changes, Codes, Encode, Matrix, Rows
from neuclust.recommender.items.rows_state import Arrays, rows_from_state, rows_state, saved_array
from neuclust.recommender.tables.tables import closest
from neuclust.recommender.tables.values import Id, shown, text_of

PLAIN_IDS = frozenset({str, int})


class Catalogue:
    """Items by id. Each id has an int64 code that is never used for another, not even after the item was removed."""

    def __init__(self, dim: int, rows: Rows | None = None, alive: NDArray[np.bool_] | None = None) -> None:
        self.dim = dim  # d, columns of an encoded row
        self.rows = Rows(dim) if rows is None else rows
        self._alive = np.zeros(len(self.rows), dtype=bool) if alive is None else alive  # (N,) by code
        self._all: Codes | None = None
        self._groups: dict[str, Codes] = {}
        self.functions = ItemFunctions()

    def __len__(self) -> int:
        return len(self.all_codes())

    def add(self, ids: Sequence[Id], columns: Mapping[str, Sequence[Any]], encoded: Matrix) -> Changes:
        """Add items, or replace the values of known ones; columns not given are missing in these rows.

        `encoded` (n, d). An id that was removed comes back with its old code.
        """
        known = len(self.rows)
        codes = self.rows.put(ids, columns, encoded)
        there = np.zeros(len(self.rows), dtype=bool)
        there[:known] = self._alive
        flags = there[codes].tolist()
        there[codes] = True
        self._alive, self._all, self._groups = there, None, {}
        self.functions.put(codes, encoded)
        pairs = list(zip(self.rows.given(codes.tolist()), flags, strict=True))
        return Changes([each for each, was in pairs if not was], [each for each, was in pairs if was])

    def remove(self, ids: Iterable[Id]) -> list[Id]:
        """Take items out and drop their values; ids that are not there are refused before anything changes."""
        wanted = _listed(ids, "remove_items")
        codes, ignored = self.codes_of(wanted)
        if ignored:
            others = f" and {len(ignored) - 1} more" if len(ignored) > 1 else ""
            expected = "ids of items that are there, every one once"
            raise DataError(f"remove_items: expected {expected}, got {shown(ignored[0])}{others}; nothing was removed")
        self.rows.clear(codes)
        alive = self._alive.copy()
        alive[codes] = False
        self._alive, self._all, self._groups = alive, None, {}
        return self.rows.given(codes.tolist())

    def ids(self) -> list[Id]:
        """Ids of the items that are there, in the order of their codes."""
        return self.rows.given(self.all_codes().tolist())

    def id_of(self, code: int) -> Id:
        """The id of a code, also of an item that was removed."""
        if not 0 <= code < len(self.rows):
            raise DataError(f"items: expected a code from 0 to {len(self.rows) - 1}, got {code}")
        return self.rows.ids[code]

    def all_codes(self) -> Codes:
        """Codes of the items that are there, ascending, (n,); not to be changed."""
        if self._all is None:
            self._all = np.flatnonzero(self._alive).astype(np.int64, copy=False)
            self._all.flags.writeable = False
        return self._all

    def codes_of(self, ids: Iterable[Id]) -> tuple[Codes, list[Id]]:
        """Codes (m,) of the ids that are there, each at its first occurrence; and the other ids in the order given."""
        wanted = _listed(ids, "items")
        found = self.rows.codes_of(wanted)
        codes = np.fromiter(found, np.int64, len(wanted))
        if len(self._alive) == 0:
            return codes[:0], wanted
        kept = self._alive[codes] & (codes != UNKNOWN)
        if kept.all() and len(set(found)) == len(found):  # as nearly always
            return codes, []
        places = np.flatnonzero(kept)
        _, first = np.unique(codes[places], return_index=True)
        kept[:] = False
        kept[places[first]] = True
        return codes[kept], [wanted[place] for place in np.flatnonzero(~kept).tolist()]

    def profiles(self, codes: Codes) -> Matrix:
        """Encoded rows of codes (m,) -> (m, d)."""
        return self.rows.buffer.take(codes, axis=0)

    def raw(self, code: int) -> dict[str, Any]:
        """The values of one item as they were given."""
        self.id_of(code)
        return self.rows.raw(code)

    def groups(self, column: str) -> Codes:
        """Group numbers by code (N,): items of equal text in this column share one, missing values have their own."""
        if column not in self._groups:
            if column not in self.rows.columns:
                near = closest(column, self.rows.columns)
                raise DataError(f"at_most: expected a column of the items, got {column!r:.100}; {near}")
            self._groups[column] = _numbered(column, self.rows.columns[column])
        return self._groups[column]

    def reencoded(self, encode: Encode) -> Self:
        """The same items under a new schema: `encode` turns raw columns of n items into rows (n, d')."""
        rows = self.rows.reencoded(self.all_codes(), encode)
        return type(self)(rows.dim, rows, self._alive.copy())

    def copy(self) -> Self:
        """An independent copy, as cheap as copying lists of references and one matrix."""
        return type(self)(self.dim, self.rows.copy(), self._alive.copy())

    def to_state(self) -> tuple[dict[str, Any], Arrays]:
        state, arrays = rows_state(self.rows)
        return state, {**arrays, "alive": self._alive.astype(np.uint8)}

    @classmethod
    def from_state(cls, state: object, arrays: Mapping[str, NDArray[Any]]) -> Self:
        rows = rows_from_state(state, arrays, "items")
        alive = saved_array(arrays, "alive", np.uint8, (len(rows),), "items")
        if alive.size and alive.max() > 1:
            raise StateError(f"saved items: expected flags of 0 and 1, got {alive.max()}; was it saved so?")
        return cls(rows.dim, rows, alive.astype(bool))


class Users:
    """Users by id, encoded and raw. Of those that were removed nothing is kept."""

    def __init__(self, dim: int, rows: Rows | None = None) -> None:
        self.dim = dim  # d_u, columns of an encoded row
        self.rows = Rows(dim) if rows is None else rows

    def __len__(self) -> int:
        return len(self.rows)

    def add(self, ids: Sequence[Id], columns: Mapping[str, Sequence[Any]], encoded: Matrix) -> Changes:
        """Add users, or replace the values of known ones; columns not given are missing in these rows."""
        known, given = len(self.rows), self.rows.given
        codes = self.rows.put(ids, columns, encoded).tolist()
        return Changes(given(code for code in codes if code >= known), given(code for code in codes if code < known))

    def remove(self, ids: Iterable[Id]) -> list[Id]:
        """Take users out; ids that are not there are refused before anything changes. One pass over all users."""
        wanted = _listed(ids, "remove_users")
        codes = self.rows.codes_of(wanted)
        if UNKNOWN in codes or len(set(codes)) < len(codes):
            got = shown(wanted[codes.index(UNKNOWN)] if UNKNOWN in codes else wanted)
            expected = "expected ids of users that are there, every one once"
            raise DataError(f"remove_users: {expected}, got {got}; nobody was removed")
        given = self.rows.given(codes)
        if codes:
            self.rows = self.rows.without(np.array(codes, dtype=np.int64))
        return given

    def named(self, user: Id) -> Id:
        """The id of a user as it was first given; one never seen as it is."""
        code = self._code(user)
        return user if code is None else self.rows.ids[code]

    def row(self, user: Id) -> Matrix | None:
        """The encoded row (d_u,) of a user, a copy; None for one never seen."""
        code = self._code(user)
        return None if code is None else self.rows.buffer[code].copy()

    def raw(self, user: Id) -> dict[str, Any] | None:
        """The values of a user as they were given; None for one never seen."""
        code = self._code(user)
        return None if code is None else self.rows.raw(code)

    def ids(self) -> list[Id]:
        """Ids in the order in which they came."""
        return list(self.rows.ids)

    def encoded(self) -> Matrix:
        """All encoded rows, (M, d_u), a copy."""
        return self.rows.buffer[: len(self.rows)].copy()

    def reencoded(self, encode: Encode) -> Self:
        """The same users under a new schema: `encode` turns raw columns of M users into rows (M, d')."""
        rows = self.rows.reencoded(np.arange(len(self.rows)), encode)
        return type(self)(rows.dim, rows)

    def copy(self) -> Self:
        """An independent copy, as cheap as copying lists of references and one matrix."""
        return type(self)(self.dim, self.rows.copy())

    def to_state(self) -> tuple[dict[str, Any], Arrays]:
        return rows_state(self.rows)

    @classmethod
    def from_state(cls, state: object, arrays: Mapping[str, NDArray[Any]]) -> Self:
        rows = rows_from_state(state, arrays, "users")
        return cls(rows.dim, rows)

    def _code(self, user: Id) -> int | None:
        (wanted,) = _listed([user], "user")
        return self.rows.code(wanted)


def _listed(ids: Iterable[Id], what: str) -> list[Id]:
    """Ids as a list of text and Python's whole numbers; numbers of NumPy are taken, flags and fractions refused."""
    if isinstance(ids, str | bytes | Mapping) or not isinstance(ids, Iterable):
        raise DataError(f"{what}: expected a list of ids, got {shown(ids)}; put it into a list")
    try:
        wanted = list(ids)
    except TypeError:  # an array of no dimension
        raise DataError(f"{what}: expected a list of ids, got {shown(ids)}; put it into a list") from None
    if PLAIN_IDS.issuperset(map(type, wanted)):
        return wanted
    return [_plain_id(each, what) for each in wanted]


def _plain_id(value: object, what: str) -> Id:
    if isinstance(value, str):
        return str(value)
    if isinstance(value, Integral) and not isinstance(value, bool):
        return int(value)
    raise DataError(f"{what}: expected ids as text or whole numbers, got {shown(value)}; use the ids of the table")


def _numbered(column: str, values: Sequence[Any]) -> Codes:
    numbers: dict[str | None, int] = {}
    found = []
    for value in values:
        if isinstance(value, tuple):
            got = f"got a list or vector such as {value!r:.60}"
            wanted = f"expected a column with one value per item, {got} in {column!r:.100}"
            raise DataError(f"at_most: {wanted}; name another")
        found.append(numbers.setdefault(None if value is None else text_of(value), len(numbers)))
    groups = np.array(found, dtype=np.int64)
    groups.flags.writeable = False
    return groups
