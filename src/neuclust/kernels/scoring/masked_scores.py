"""Compiled scores of contexts that are mostly 0, by the few functions of an arm that their columns are multiples of.

A context x (d,) with q entries that are not 0 has the features φ = [1, Σx, x, m, Σx², x²] with the mask m = [x ≠ 0],
all but the first divided by q: p = 3 + 3d columns, of which a model reads a leading part. Columns made of an item's
category are 0 or one value, and products of an item's column with a user's are multiples of that column: `MergedRows`
finds both, and scores read about ten numbers per arm in the place of d. A row's numbers do not depend on its place:
equal contexts have equal scores.
"""

import math
from dataclasses import dataclass

import numpy as np

from neuclust.kernels.jit import Floats, Integers, compiled
from neuclust.kernels.rows import EntrySpans
from neuclust.kernels.scoring.function_table import FunctionTable, row_codes

PROPOSED = 64  # rows by which columns are proposed to be multiples of each other, before all rows are read
ALIKE = 1e-13  # relative difference up to which an entry counts as a multiple: some hundred roundings


@dataclass(frozen=True, slots=True)
class MergedRows:
    """Contexts x (n, d) as y (n, s), sparse: one indicator per set of rows in which columns are not 0, then one column
    of every class of columns that are multiples of each other and have several values beside 0.
    x_j = factor_j · y[place_j], and the mask of column j is y[mask_j]; −1: column j is 0 everywhere."""

    place: Integers  # (d,)
    mask: Integers  # (d,)
    factor: Floats  # (d,)
    indicators: int  # entries of y that are 0 or 1, the leading ones
    size: int  # s
    entries: EntrySpans  # row i has entries begin[i] … end[i] − 1
    sums: Floats  # (n, 3): q, Σx and Σx²

    @classmethod
    def of(cls, x: Floats) -> "MergedRows":
        """Contexts x (n, d), contiguous and in double precision."""
        codes, level, begin, filled = _column_codes(x, row_codes(len(x)).view(np.int64))
        used = np.flatnonzero(codes)
        mask = np.full(len(codes), -1)
        _, first, mask[used] = np.unique(codes[used], return_index=True, return_inverse=True)
        place, factor = mask.copy(), np.where(mask < 0, 0.0, level)
        varied = np.flatnonzero(np.isnan(level))
        owner, ratio = _multiples(x, varied, mask[varied], begin[varied])
        chosen, place[varied] = np.unique(owner, return_inverse=True)
        place[varied] += len(first)
        factor[varied] = ratio
        shares = _shares(place, mask, factor, len(first) + len(chosen))
        columns = np.concatenate([used[first], varied[chosen]])
        starts, index, value, sums = _rows(x, columns, len(first), shares, int(filled[columns].sum()))
        return cls(place, mask, factor, len(first), len(columns), (starts[:-1], starts[1:], index, value), sums)

    @classmethod
    def crossed(cls, table: FunctionTable, rows: Integers, index: Integers, weights: Floats) -> "MergedRows":
        """Contexts x_c = a_{i_c} · w_c of rows (n,) of a table of functions a; index i (d,), weights w (d,)."""
        used = weights != 0
        place, mask = np.where(used, table.place[index], -1), np.where(used, table.mask[index], -1)
        factor = weights * table.level[index]
        read = np.zeros(table.size, np.bool_)
        read[place[place >= 0]] = read[mask[mask >= 0]] = True
        entries, shares = table.entries(rows, read), _shares(place, mask, factor, table.size)
        sums = _sums(entries, shares)
        return cls(place, mask, factor, table.indicators, table.size, entries, sums)

    def dense(self) -> Floats:
        """x (n, d)."""
        begin, end, index, value = self.entries
        y = np.zeros((len(self.sums), self.size + 1))  # the last column stands for columns of zeros
        row = np.repeat(np.arange(len(begin)), end - begin)
        entry = begin[row] + np.arange(len(row)) - np.repeat(np.cumsum(end - begin) - (end - begin), end - begin)
        y[row, index[entry]] = value[entry]
        x: Floats = y[:, self.place] * self.factor
        return x

    def added(self, by_column: Floats, place: Integers, factor: Floats) -> Floats:
        """Σ_j factor_j · by_column_j of the columns that have each place, by_column (d, …) -> (s, …)."""
        return _added(by_column.reshape(len(place), -1), place, factor, self.size).reshape(-1, *by_column.shape[1:])


@compiled
def _added(by_column: Floats, place: Integers, factor: Floats, size: int) -> Floats:
    """Rows of by_column (d, m) times their factors, added up by place: (size, m)."""
    out = np.zeros((size, by_column.shape[1]))
    for j in range(len(place)):
        if place[j] >= 0:
            for k in range(by_column.shape[1]):
                out[place[j], k] += factor[j] * by_column[j, k]
    return out


@compiled
def _column_codes(x: Floats, row_code: Integers) -> tuple[Integers, Floats, Integers, Integers]:
    """Of every column: a 64-bit hash of the rows where it is not 0 (0: nowhere), the sum of their codes (n,); its
    only value beside 0 (NaN: it has several); its first row; and the number of its rows. Two different sets have one
    hash with a chance of 2⁻⁶⁴."""
    n, d = x.shape
    codes, level = np.zeros(d, np.int64), np.zeros(d)
    begin, filled = np.zeros(d, np.int64), np.zeros(d, np.int64)
    for i in range(n):
        for j in range(d):
            value = x[i, j]
            if value != 0.0:
                if codes[j] == 0:
                    level[j], begin[j] = value, i
                elif level[j] != value:
                    level[j] = np.nan
                codes[j] += row_code[i]
                filled[j] += 1
    return codes, level, begin, filled


@compiled
def _multiples(x: Floats, varied: Integers, support: Integers, begin: Integers) -> tuple[Integers, Floats]:
    """For the columns `varied` (v,) with their supports (v,) and first rows (v,): which of them each is a multiple of,
    itself or one before it (v,), and the factor (v,). Proposed by the leading rows, and kept where all rows agree."""
    owner, ratio = np.arange(len(varied)), np.ones(len(varied))
    for a in range(len(varied)):
        for b in range(a):
            if owner[b] == b and support[b] == support[a]:
                found = x[begin[a], varied[a]] / x[begin[a], varied[b]]
                if _agree(x, varied[a], varied[b], found, begin[a], min(len(x), begin[a] + PROPOSED)):
                    owner[a], ratio[a] = b, found
                    break
    merged = np.flatnonzero(owner != np.arange(len(varied)))
    column, other, factor = varied[merged], varied[owner[merged]], ratio[merged]
    excess = np.zeros(len(merged))
    for i in range(len(x)):
        for a in range(len(merged)):  # no branches: they would be taken at random
            value = x[i, column[a]]
            excess[a] = max(excess[a], abs(value - factor[a] * x[i, other[a]]) - ALIKE * abs(value))
    for a in range(len(merged)):
        if excess[a] > 0.0:
            owner[merged[a]], ratio[merged[a]] = merged[a], 1.0
    return owner, ratio


@compiled
def _agree(x: Floats, column: int, other: int, factor: float, first: int, last: int) -> bool:
    """Whether column = factor · other in the rows from first to last − 1."""
    excess = 0.0
    for i in range(first, last):
        excess = max(excess, abs(x[i, column] - factor * x[i, other]) - ALIKE * abs(x[i, column]))
    return excess <= 0.0


def _shares(place: Integers, mask: Integers, factor: Floats, size: int) -> Floats:
    """What an entry y of each place adds to q (its indicator alone), to Σx, times y, and to Σx², times y²: (s, 3)."""
    used = place >= 0
    weights = (mask, np.ones(len(mask))), (place, factor), (place, factor**2)
    return np.stack([np.bincount(at[used], weight[used], size) for at, weight in weights], 1)


@compiled
def _rows(
    x: Floats, columns: Integers, indicators: int, shares: Floats, entries: int
) -> tuple[Integers, Integers, Floats, Floats]:
    """The sparse rows of y, of which `columns` (s,) are the columns of x, in all so many entries; and the sums."""
    n, size = len(x), len(columns)
    starts, sums = np.zeros(n + 1, np.int64), np.zeros((n, 3))
    index, value = np.empty(entries + 1, np.int64), np.empty(entries + 1)  # the last place is written in vain
    count = 0
    for i in range(n):
        q, first, second = 0.0, 0.0, 0.0
        for c in range(size):  # no branches: they would be taken at random
            entry = x[i, columns[c]]
            filled = entry != 0.0
            index[count], value[count] = c, filled if c < indicators else entry
            q += shares[c, 0] * filled
            first += shares[c, 1] * value[count]
            second += shares[c, 2] * value[count] * value[count]
            count += filled
        sums[i, 0], sums[i, 1], sums[i, 2] = max(q, 1.0), first, second
        starts[i + 1] = count
    return starts, index[:entries], value[:entries], sums


@compiled
def _sums(entries: EntrySpans, shares: Floats) -> Floats:
    """q, at least 1, Σx and Σx² of every row, (n, 3)."""
    begin, end, index, value = entries
    sums = np.empty((len(begin), 3))
    for i in range(len(begin)):
        q, first, second = 0.0, 0.0, 0.0
        for e in range(begin[i], end[i]):
            c, entry = index[e], value[e]
            q += shares[c, 0]
            first += shares[c, 1] * entry
            second += shares[c, 2] * entry * entry
        sums[i, 0], sums[i, 1], sums[i, 2] = max(q, 1.0), first, second
    return sums


def linear_values(rows: MergedRows, weights: Floats) -> Floats:
    """wᵀφ for weights (p,): (n,)."""
    d = len(rows.place)
    slopes = rows.added(weights[2 : 2 + d], rows.place, rows.factor)
    slopes += rows.added(weights[2 + d : 2 + 2 * d], rows.mask, np.ones(d))
    squares = rows.added(weights[3 + 2 * d :], rows.place, rows.factor**2)
    return _linear_values(rows.entries, rows.sums, slopes, squares, weights[[0, 1, 2 + 2 * d]])


@compiled
def _linear_values(entries: EntrySpans, sums: Floats, slopes: Floats, squares: Floats, shared: Floats) -> Floats:
    begin, end, index, value = entries
    out = np.empty(len(sums))
    for i in range(len(sums)):
        total = shared[1] * sums[i, 1] + shared[2] * sums[i, 2]
        for e in range(begin[i], end[i]):
            total += value[e] * (slopes[index[e]] + value[e] * squares[index[e]])
        out[i] = shared[0] + total / sums[i, 0]
    return out


def merged_widths(rows: MergedRows, covariance: Floats, norms: Floats) -> Floats:
    """√(φᵀΣφ) with the leading columns of φ divided by norms (p',), Σ (p', p'): (n,).

    φ = Bᵀy'/q with y' = [q, Σx, Σx², y, squares of y's columns that are no indicators], of which few entries are not 0,
    so that y'ᵀ(BΣBᵀ)y' takes tens of products per row in the place of p'²."""
    d, varied = len(rows.place), rows.size - rows.indicators
    squared = len(norms) > 2 + 2 * d  # whether squares are among the leading columns
    own = rows.place >= rows.indicators
    average, mask = np.where(rows.place < 0, -1, 3 + rows.place), np.where(rows.mask < 0, -1, 3 + rows.mask)
    place = np.concatenate([[0, 1], average, mask, [2], np.where(own, average + varied, average)])
    factor = np.concatenate([[1.0, 1.0], rows.factor, np.ones(d), [1.0], rows.factor**2])
    size = 3 + rows.size + (varied if squared else 0)
    merged = added_by_place(covariance, place[: len(norms)], factor[: len(norms)] / norms, size)
    return _merged_widths(rows.entries, rows.sums, merged, rows.indicators, varied if squared else 0)


@compiled
def added_by_place(covariance: Floats, place: Integers, factor: Floats, size: int) -> Floats:
    """BΣBᵀ (size, size): entries of Σ, times the factors of their row and column, added up by place; −1: left out."""
    out, used = np.zeros((size, size)), np.flatnonzero((place >= 0) & (factor != 0.0))
    for a in used:
        row = out[place[a]]
        for b in used:
            row[place[b]] += factor[a] * factor[b] * covariance[a, b]
    return out


@compiled
def _merged_widths(entries: EntrySpans, sums: Floats, merged: Floats, indicators: int, squares: int) -> Floats:
    """√(y'ᵀMy')/q, y' as in `merged_widths` with so many squares."""
    begin, end, index, value = entries
    where, number, out = np.empty(len(merged), np.int64), np.empty(len(merged)), np.empty(len(sums))
    where[0], where[1], where[2] = 0, 1, 2
    for i in range(len(sums)):
        number[0], number[1], number[2] = sums[i, 0], sums[i, 1], sums[i, 2]
        count = 3
        for e in range(begin[i], end[i]):
            where[count], number[count] = 3 + index[e], value[e]
            count += 1
            if squares > 0 and index[e] >= indicators:
                where[count], number[count] = 3 + index[e] + squares, value[e] * value[e]
                count += 1
        form = 0.0
        for a in range(count):
            row, inner = merged[where[a]], 0.0
            for b in range(a):
                inner += row[where[b]] * number[b]
            form += number[a] * (2.0 * inner + row[where[a]] * number[a])
        out[i] = math.sqrt(max(form, 0.0)) / sums[i, 0]
    return out


def relu_values(rows: MergedRows, hidden: Floats, outputs: Floats, longest: float) -> Floats:
    """v_0 + vᵀφ for every v of outputs (V, m + 1), φ = max(0, Wᵀ[x, Σx/q, 1]) shortened to `longest`, W = hidden
    (d + 2, m): (V, n)."""
    d = len(rows.place)
    merged = rows.added(hidden[:d], rows.place, rows.factor)
    return _relu_values(rows.entries, rows.sums, merged, hidden[d:], outputs, longest)


@compiled
def _relu_values(
    entries: EntrySpans, sums: Floats, merged: Floats, shared: Floats, outputs: Floats,
    longest: float,
) -> Floats:  # fmt: skip
    begin, end, index, value = entries
    unit, out = np.empty(merged.shape[1]), np.empty((len(outputs), len(sums)))
    for i in range(len(sums)):
        pooled, length = sums[i, 1] / sums[i, 0], 0.0
        for k in range(len(unit)):
            unit[k] = shared[1, k] + pooled * shared[0, k]
        for e in range(begin[i], end[i]):
            entry, row = value[e], merged[index[e]]
            for k in range(len(unit)):
                unit[k] += entry * row[k]
        for k in range(len(unit)):
            unit[k] = max(unit[k], 0.0)
            length += unit[k] * unit[k]
        share = min(1.0, longest / max(math.sqrt(length), 1e-300))
        for v in range(len(outputs)):
            found = 0.0
            for k in range(len(unit)):
                found += outputs[v, k + 1] * unit[k]
            out[v, i] = outputs[v, 0] + share * found
    return out
