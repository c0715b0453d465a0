"""Compiled scores of contexts that are mostly 0: only the entries that are not 0 are read.

A context x (d,) with q entries that are not 0 has the features φ = [1, Σx, x, m, Σx², x²] with the mask m = [x ≠ 0],
all but the first divided by q: p = 3 + 3d columns, of which a model reads a leading part. Rows x are (n, d), contiguous
and in double precision. A row's numbers depend on that row alone, never on its place: equal contexts have equal scores.
"""

import math
from dataclasses import dataclass

import numpy as np

from neuclust.kernels.jit import Floats, Integers, compiled


@compiled
def linear_values(x: Floats, weights: Floats) -> Floats:
    """wᵀφ for weights (p,): (n,)."""
    n, d = x.shape
    average, mask, squares = weights[2 : 2 + d], weights[2 + d : 2 + 2 * d], weights[3 + 2 * d :]
    out = np.empty(n)
    for i in range(n):
        q, first, second, total = 0, 0.0, 0.0, 0.0
        for j in range(d):
            value = x[i, j]
            if value != 0.0:
                q += 1
                first += value
                second += value * value
                total += value * (average[j] + value * squares[j]) + mask[j]
        out[i] = weights[0] + (weights[1] * first + weights[2 + 2 * d] * second + total) / max(q, 1)
    return out


@dataclass(frozen=True, slots=True)
class Supports:
    """Which columns of some contexts are alike: `label` (d,) numbers the sets of rows where a column is not 0 (−1: it
    is 0 everywhere), `level` (d,) is the only value of a column beside 0 (NaN: it has several), `first` (C,) has one
    column of every such set. What items of a category have of it is 0 or the same, so that few sets remain."""

    label: Integers
    level: Floats
    first: Integers

    @classmethod
    def of(cls, x: Floats) -> "Supports":
        """The supports of contexts x (n, d)."""
        codes, level = _column_codes(x)
        label = np.full(len(codes), -1)
        used = np.flatnonzero(codes)
        _, first, label[used] = np.unique(codes[used], return_index=True, return_inverse=True)
        return cls(label, level, used[first])


@compiled
def _column_codes(x: Floats) -> tuple[Integers, Floats]:
    """A 64-bit hash of the rows where a column is not 0 (0: nowhere), the sum of one number per row, and its only value
    beside 0. Two different sets have one hash with a chance of 2⁻⁶⁴."""
    n, d = x.shape
    codes, level = np.zeros(d, np.int64), np.zeros(d)
    for i in range(n):
        row = np.uint64(i + 1) * np.uint64(0x9E3779B97F4A7C15)  # SplitMix64
        row = (row ^ (row >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        row = (row ^ (row >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        code = np.int64(row ^ (row >> np.uint64(31)))
        for j in range(d):
            value = x[i, j]
            if value != 0.0:
                if codes[j] == 0:
                    level[j] = value
                elif level[j] != value:
                    level[j] = np.nan
                codes[j] += code
    return codes, level


def merged_widths(x: Floats, covariance: Floats, norms: Floats) -> Floats:
    """√(φᵀΣφ) with the leading columns of φ divided by norms (p',), Σ (p', p'): (n,).

    Columns that are multiples of each other on these rows are one: φ = Bᵀy/q with few entries of y that are not 0, so
    that yᵀ(BΣBᵀ)y takes tens of products per row in the place of p'²."""
    supports = Supports.of(x)
    varied = np.flatnonzero(np.isnan(supports.level))
    place, factor = _places(supports, varied)
    squared = len(norms) > 2 + 2 * x.shape[1]  # whether squares are among the leading columns
    size = 3 + len(supports.first) + (2 if squared else 1) * len(varied)
    merged = _merged(covariance, place[: len(norms)], factor[: len(norms)] / norms, size)
    return _merged_widths(x, supports.first, varied, merged, squared)


def _places(supports: Supports, varied: Integers) -> tuple[Integers, Floats]:
    """The entry of y = [q, Σx, Σx², one per support, varied x, varied x²] that each column of φ is a multiple of (p,),
    −1: it is 0, and the factor (p,)."""
    label, level, constant = supports.label, supports.level, ~np.isnan(supports.level)
    begin = 3 + len(supports.first)
    own = np.zeros(len(level), np.int64)
    own[varied] = begin + np.arange(len(varied))
    support = np.where(label < 0, -1, 3 + label)
    average, squares = np.where(constant, support, own), np.where(constant, support, own + len(varied))
    factors = np.where(constant, level, 1.0), np.ones(len(level)), np.where(constant, level * level, 1.0)
    place = np.concatenate([[0, 1], average, support, [2], squares])
    return place, np.concatenate([[1.0, 1.0], factors[0], factors[1], [1.0], factors[2]])


@compiled
def _merged(covariance: Floats, place: Integers, factor: Floats, size: int) -> Floats:
    """BΣBᵀ: the entries of Σ, times the factors of their row and column, added up by place."""
    out = np.zeros((size, size))
    for a in range(len(place)):
        if place[a] >= 0:
            for b in range(len(place)):
                if place[b] >= 0:
                    out[place[a], place[b]] += factor[a] * factor[b] * covariance[a, b]
    return out


@compiled
def _merged_widths(x: Floats, first: Integers, varied: Integers, merged: Floats, squared: bool) -> Floats:
    """√(yᵀMy)/q, y as in `_places`, without its squares unless `squared`."""
    n, d = x.shape
    where, value, out = np.empty(len(merged), np.int64), np.empty(len(merged)), np.empty(n)
    begin = 3 + len(first)
    for i in range(n):
        q, total, square = 0, 0.0, 0.0
        for j in range(d):
            if x[i, j] != 0.0:
                q += 1
                total += x[i, j]
                square += x[i, j] * x[i, j]
        q = max(q, 1)
        where[0], where[1], where[2] = 0, 1, 2
        value[0], value[1], value[2] = q, total, square
        count = 3 if squared else 2
        for c in range(len(first)):
            if x[i, first[c]] != 0.0:
                where[count], value[count] = 3 + c, 1.0
                count += 1
        for v in range(len(varied)):
            entry = x[i, varied[v]]
            if entry != 0.0:
                where[count], value[count] = begin + v, entry
                count += 1
                if squared:
                    where[count], value[count] = begin + len(varied) + v, entry * entry
                    count += 1
        form = 0.0
        for a in range(count):
            row, inner = merged[where[a]], 0.0
            for b in range(a):
                inner += row[where[b]] * value[b]
            form += value[a] * (2.0 * inner + row[where[a]] * value[a])
        out[i] = math.sqrt(max(form, 0.0)) / q
    return out


@compiled
def relu_values(x: Floats, hidden: Floats, outputs: Floats, longest: float) -> Floats:
    """v_0 + vᵀφ for every v of outputs (V, m + 1), φ = max(0, Wᵀ[x, Σx/q, 1]) shortened to `longest`, W = hidden
    (d + 2, m): (V, n)."""
    n, d = x.shape
    unit, out = np.empty(hidden.shape[1]), np.empty((len(outputs), n))
    for i in range(n):
        unit[:] = hidden[d + 1]
        q, total = 0, 0.0
        for j in range(d):
            entry = x[i, j]
            if entry != 0.0:
                q += 1
                total += entry
                for k in range(len(unit)):
                    unit[k] += entry * hidden[j, k]
        pooled, length = total / max(q, 1), 0.0
        for k in range(len(unit)):
            unit[k] = max(unit[k] + pooled * hidden[d, k], 0.0)
            length += unit[k] * unit[k]
        share = min(1.0, longest / max(math.sqrt(length), 1e-300))
        for v in range(len(outputs)):
            found = 0.0
            for k in range(len(unit)):
                found += outputs[v, k + 1] * unit[k]
            out[v, i] = outputs[v, 0] + share * found
    return out
