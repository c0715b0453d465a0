"""Contexts as sparse rows: masked, equal ones once, and one pass of a one-hidden-layer net over them.

Rows are (starts, index, value): row i has entries starts[i] … starts[i + 1] − 1, columns ascending, no zeros.
"""

from dataclasses import dataclass

import numpy as np

from neuclust.kernels.compiled import group_sparse_rows
from neuclust.kernels.jit import Floats, Integers, compiled, exact

Entries = tuple[Integers, Integers, Floats]  # starts, index, value
EntrySpans = tuple[Integers, Integers, Integers, Floats]  # begin, end, index, value


@dataclass(frozen=True, slots=True)
class Rows:
    """n sparse rows of `width` columns."""

    starts: Integers  # (n + 1,)
    index: Integers  # (entries,)
    value: Floats  # (entries,)
    width: int

    def __len__(self) -> int:
        return len(self.starts) - 1

    @property
    def entries(self) -> Entries:
        """Everything but the width, for compiled loops."""
        return self.starts, self.index, self.value

    def dense(self, chosen: Integers) -> Floats:
        """The chosen rows with their zeros, (k, width)."""
        rows, out = taken(self, chosen), np.zeros((len(chosen), self.width))
        out[np.repeat(np.arange(len(chosen)), np.diff(rows.starts)), rows.index] = rows.value
        return out


def sparse_rows(dense: Floats) -> Rows:
    """The non-zero entries of dense rows (n, width)."""
    n, width = dense.shape
    place = np.flatnonzero(dense)
    starts = np.searchsorted(place, width * np.arange(n + 1))
    return Rows(starts, place % max(width, 1), dense.ravel()[place], width)


def no_rows(width: int) -> Rows:
    """No rows."""
    return Rows(np.zeros(1, np.int64), np.zeros(0, np.int64), np.zeros(0), width)


def joined(above: Rows, below: Rows) -> Rows:
    """All rows of both."""
    starts = np.concatenate([above.starts, above.starts[-1] + below.starts[1:]])
    index, value = np.concatenate([above.index, below.index]), np.concatenate([above.value, below.value])
    return Rows(starts, index, value, above.width)


def masked(rows: Rows, columns: Integers, query: Floats, rho: float) -> Rows:
    """x ⊙ a / ρ on the active columns (q,), numbered 0 … q − 1, given a there."""
    slot = np.full(rows.width, -1, np.int64)
    slot[columns] = np.arange(len(columns))
    return Rows(*_masked(rows.entries, slot, query, rho), len(columns))


def distinct(rows: Rows) -> tuple[Rows, Integers]:
    """Equal rows once, in the order they first appear, and for every row the number of its distinct one (n,)."""
    first, group = group_sparse_rows(rows.starts, rows.index, rows.value.view(np.int64))
    return taken(rows, first), group


def taken(rows: Rows, chosen: Integers) -> Rows:
    """The chosen rows."""
    return Rows(*_taken(rows.entries, chosen), rows.width)


@exact
def _masked(rows: Entries, slot: Integers, query: Floats, rho: float) -> Entries:
    starts, index, value = rows
    n = len(starts) - 1
    kept = np.zeros(n + 1, np.int64)
    columns, products = np.empty(len(index), np.int64), np.empty(len(index))
    count = 0
    for i in range(n):
        for e in range(starts[i], starts[i + 1]):
            j = slot[index[e]]
            if j >= 0:
                product = value[e] * query[j] / rho
                if product != 0.0:  # two tiny factors can vanish
                    columns[count], products[count] = j, product
                    count += 1
        kept[i + 1] = count
    return kept, columns[:count], products[:count]


@exact
def _taken(rows: Entries, chosen: Integers) -> Entries:
    starts, index, value = rows
    kept = np.zeros(len(chosen) + 1, np.int64)
    for i in range(len(chosen)):
        kept[i + 1] = kept[i] + starts[chosen[i] + 1] - starts[chosen[i]]
    columns, entries = np.empty(kept[-1], np.int64), np.empty(kept[-1])
    for i in range(len(chosen)):
        for e in range(starts[chosen[i]], starts[chosen[i] + 1]):
            place = kept[i] + e - starts[chosen[i]]
            columns[place], entries[place] = index[e], value[e]
    return kept, columns, entries


def linear_beliefs(rows: Rows, theta: Floats, inverse: Floats) -> tuple[Floats, Floats]:
    """xᵀθ and xᵀMx of every row, for θ (width,) and M (width, width): (n,) each."""
    return entry_beliefs((rows.starts[:-1], rows.starts[1:], rows.index, rows.value), theta, inverse)


@compiled
def entry_beliefs(entries: EntrySpans, theta: Floats, inverse: Floats) -> tuple[Floats, Floats]:
    """The same of rows whose entries begin and end anywhere, (n,) each, among all entries."""
    begin, end, index, value = entries
    n = len(begin)
    means, squares = np.empty(n), np.empty(n)
    for i in range(n):
        mean, square = 0.0, 0.0
        for e in range(begin[i], end[i]):
            v, line = value[e], inverse[index[e]]
            mean += v * theta[index[e]]
            total = 0.0
            for f in range(begin[i], end[i]):
                total += value[f] * line[index[f]]
            square += v * total
        means[i], squares[i] = mean, square
    return means, squares


def forward_norms(rows: Rows, w0: Floats, w1: Floats, scale: float, bias: bool = False) -> tuple[Floats, Floats]:
    """f and ‖g‖² of every row: w0 (width, m), w1 (m,) or, with biases, (m + 1,)."""
    return _forward_norms(rows.entries, w0, w1, scale, bias)


@compiled
def _forward_norms(rows: Entries, w0: Floats, w1: Floats, scale: float, bias: bool) -> tuple[Floats, Floats]:
    starts, index, value = rows
    n, width = len(starts) - 1, w0.shape[1]
    means, norms = np.empty(n), np.empty(n)
    hidden = np.empty(width)
    for i in range(n):
        hidden[:] = 0.0
        length = 0.0
        for e in range(starts[i], starts[i + 1]):
            j, v = index[e], value[e]
            length += v * v
            for k in range(width):
                hidden[k] += v * w0[j, k]
        total, delta, square = (w1[width], 0.0, 1.0) if bias else (0.0, 0.0, 0.0)
        for k in range(width):
            h, w = max(hidden[k], 0.0), w1[k]
            total += h * w
            square += h * h
            delta += w * w if hidden[k] > 0.0 else 0.0
        means[i] = scale * total
        norms[i] = scale * scale * (delta * length + square)
    return means, norms
