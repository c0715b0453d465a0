"""Functions of items, kept sparse for as long as the items stay: what requests for many of them read.

A context whose columns are functions a_i(item) times numbers of the request needs no row of its own: models read the
entries of a that are not 0, of which an item with categories has about ten. Made by library calls alone; loops that
read it are compiled.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from neuclust.kernels.jit import Floats, Integers, exact
from neuclust.kernels.rows import EntrySpans

Flags = NDArray[np.bool_]

SPARE = 1.25  # rows that a table can hold, times those it was made of


@dataclass(slots=True)
class FunctionTable:
    """a (N, p) as y (N, s), sparse: one indicator per set of rows in which functions are not 0, then the functions that
    have several values beside 0. a_i = level_i · y[place_i], and whether it is not 0 is y[mask_i]; −1: 0 everywhere.
    Row r has `counts[r]` entries of `index` and `value` from r · `room` on. What is learned of all rows (places, masks,
    levels) holds for each of them: `put` tells where it would not hold for a new one."""

    place: Integers  # (p,)
    mask: Integers  # (p,)
    level: Floats  # (p,) 1 where a function has several values
    columns: Integers  # (s,) the function that an entry of y is made of
    indicators: int  # entries of y that are 0 or 1, the leading ones
    room: int
    counts: Integers  # (capacity,)
    index: Integers  # (capacity · room,)
    value: Floats  # (capacity · room,)
    largest: float  # max |a|

    @classmethod
    def of(cls, functions: Floats) -> "FunctionTable":
        """Functions (N, p) of all rows."""
        filled = functions != 0
        codes = filled.T.astype(np.uint64) @ row_codes(len(functions))
        used = np.flatnonzero(filled.any(0))
        mask = np.full(functions.shape[1], -1)
        _, first, mask[used] = np.unique(codes[used], return_index=True, return_inverse=True)
        top = functions.max(0, initial=-np.inf, where=filled)
        one = top == functions.min(0, initial=np.inf, where=filled)
        varied = used[~one[used]]
        place, level = mask.copy(), np.where(one, top, 1.0)
        place[varied] = len(first) + np.arange(len(varied))
        level[mask < 0] = 0.0
        columns = np.concatenate([used[first], varied])
        room = max(1, int(filled[:, columns].sum(1).max(initial=0)))
        capacity = int(SPARE * len(functions)) + 1
        table = cls(
            place, mask, level, columns, len(first), room, np.zeros(capacity, np.int64),
            np.zeros(capacity * room, np.int64), np.zeros(capacity * room), float(np.abs(functions).max(initial=0.0)),
        )  # fmt: skip
        table._write(np.arange(len(functions)), functions)
        return table

    @property
    def size(self) -> int:
        """s."""
        return len(self.columns)

    def put(self, rows: Integers, functions: Floats) -> bool:
        """Set rows (n,), every one once, to functions (n, p); False, with nothing set, where the table has no room
        for them or they do not fit what it knows of each function: then it has to be made anew."""
        filled, known = functions != 0, self.mask >= 0
        owner = np.zeros_like(self.mask)
        owner[known] = self.columns[self.mask[known]]  # the function that tells whether this one is not 0
        one = known & (self.place < self.indicators)
        fits = (filled == filled[:, owner] & known).all() and (
            filled[:, one] * self.level[one] == functions[:, one]
        ).all()
        if not fits or rows.max(initial=0) >= len(self.counts):
            return False
        if filled[:, self.columns].sum(1).max(initial=0) > self.room:
            return False
        self.largest = max(self.largest, float(np.abs(functions).max(initial=0.0)))
        self._write(rows, functions)
        return True

    def _write(self, rows: Integers, functions: Floats) -> None:
        y = functions[:, self.columns]
        y[:, : self.indicators] = y[:, : self.indicators] != 0
        at, column = np.nonzero(y)
        counts = np.bincount(at, minlength=len(rows))
        place = rows[at] * self.room + np.arange(len(at)) - np.repeat(np.cumsum(counts) - counts, counts)
        self.counts[rows], self.index[place], self.value[place] = counts, column, y[at, column]

    def entries(self, rows: Integers, read: Flags) -> EntrySpans:
        """The entries of rows (n,) that are read (s,): where each row's begin and end, (n,) each, their indices and
        values. Others are left out, since rows that differ in these alone must have equal sums to the last digit."""
        begin = rows * self.room
        entries = begin, begin + self.counts[rows], self.index, self.value
        return entries if read.all() else _kept(entries, read)

    def dense(self, rows: Integers) -> Floats:
        """Functions of rows (n,) with their zeros, (n, p)."""
        counts = self.counts[rows]
        at = np.repeat(np.arange(len(rows)), counts)
        entry = rows[at] * self.room + np.arange(len(at)) - np.repeat(np.cumsum(counts) - counts, counts)
        y = np.zeros((len(rows), self.size + 1))  # the last column stands for functions that are 0 everywhere
        y[at, self.index[entry]] = self.value[entry]
        functions: Floats = y[:, self.place] * self.level
        return functions


@exact
def _kept(entries: EntrySpans, read: Flags) -> EntrySpans:
    begin, end, index, value = entries
    starts, total = np.zeros(len(begin) + 1, np.int64), 0
    for i in range(len(begin)):
        total += end[i] - begin[i]
    columns, numbers, count = np.empty(total, np.int64), np.empty(total), 0
    for i in range(len(begin)):
        for e in range(begin[i], end[i]):
            if read[index[e]]:
                columns[count], numbers[count] = index[e], value[e]
                count += 1
        starts[i + 1] = count
    return starts[:-1], starts[1:], columns, numbers


def row_codes(count: int) -> NDArray[np.uint64]:
    """One number of 64 bits per row (SplitMix64): sums of them tell sets of rows apart, but for a chance of 2⁻⁶⁴."""
    row = np.arange(1, count + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    row = (row ^ (row >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    row = (row ^ (row >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return row ^ (row >> np.uint64(31))
