"""Compiled loops for selection on the CPU, each with an equal library version in regions.py, ranking.py or widths.py.

A row's numbers depend on that row alone, never on its place in a block, so equal contexts have equal scores.
"""

import math

import numpy as np

from neuclust.kernels.jit import Floats, Integers, compiled, exact


def group_rows(rows: Integers) -> tuple[Integers, Integers]:
    """Equal rows (n, width) once: first position of each distinct row (u,), and its number for every row (n,)."""
    return _grouped(rows.ravel(), None, None, *rows.shape)


def group_sparse_rows(starts: Integers, index: Integers, values: Integers) -> tuple[Integers, Integers]:
    """The same for sparse rows: row i has entries starts[i] … starts[i + 1] − 1, in columns `index`."""
    return _grouped(values, index, starts, len(starts) - 1, 0)


@exact
def _grouped(
    values: Integers, index: Integers | None, starts: Integers | None, n: int, width: int
) -> tuple[Integers, Integers]:
    """Both by a hash table; what is None is left out where the loop is compiled."""
    slots = 1
    while slots < 2 * n:
        slots *= 2
    table = np.full(slots, -1, np.int64)
    first, group = np.empty(n, np.int64), np.empty(n, np.int64)
    count = 0
    for i in range(n):
        start, size = i * width, width
        if starts is not None:
            start, size = starts[i], starts[i + 1] - starts[i]
        code = np.uint64(0x9E3779B97F4A7C15)
        for e in range(start, start + size):
            code = (code ^ np.uint64(values[e])) * np.uint64(0xBF58476D1CE4E5B9)
            code ^= code >> np.uint64(29)
            if index is not None:
                code = (code ^ np.uint64(index[e])) * np.uint64(0x94D049BB133111EB)
                code ^= code >> np.uint64(31)
        slot = np.int64(code & np.uint64(slots - 1))
        known, same = table[slot], False
        while known >= 0:
            other, same = first[known] * width, True
            if starts is not None:
                other = starts[first[known]]
                same = starts[first[known] + 1] - other == size
            for e in range(size if same else 0):
                same = values[other + e] == values[start + e]
                if index is not None:
                    same &= index[other + e] == index[start + e]
                if not same:
                    break
            if same:
                break
            slot = (slot + 1) & (slots - 1)
            known = table[slot]
        if not same:
            known = count
            table[slot], first[known] = known, i
            count += 1
        group[i] = known
    return first[:count].copy(), group


@compiled
def forward_patterns(x: Floats, w0: Floats, w1: Floats, bias: bool, scale: float) -> tuple[Floats, Integers]:
    """f and the packed signs of the hidden layer, 62 to a word: x (n, q), w0 (q, m), w1 (m or m + 1)."""
    n, q = x.shape
    width = w0.shape[1]
    means = np.empty(n)
    words = np.zeros((n, (width + 61) // 62), np.int64)
    hidden = np.empty(width)
    for i in range(n):
        hidden[:] = 0.0
        for j in range(q):
            v = x[i, j]
            if v != 0.0:
                for k in range(width):
                    hidden[k] += v * w0[j, k]
        total = w1[width] if bias else 0.0
        for k in range(width):
            total += max(hidden[k], 0.0) * w1[k]
        means[i] = scale * total
        for k in range(width):
            if hidden[k] > 0.0:
                words[i, k // 62] |= np.int64(1) << np.int64(k % 62)
    return means, words


@compiled
def region_widths(x: Floats, forms: Floats, region: Integers) -> Floats:
    """w = √(xᵀ Q x) with the form of each row's region: x (n, q), forms (R, q, q)."""
    n, q = x.shape
    widths = np.empty(n)
    for i in range(n):
        form = forms[region[i]]
        total = 0.0
        for j in range(q):
            v = x[i, j]
            if v != 0.0:
                for k in range(q):
                    total += v * form[j, k] * x[i, k]
        widths[i] = math.sqrt(total) if total > 0.0 else 0.0
    return widths


@exact
def submatrix(matrix: Floats, index: Integers) -> Floats:
    """Rows and columns `index` (a,) of a square matrix: (a, a)."""
    size = len(index)
    out = np.empty((size, size))
    for i in range(size):
        row = matrix[index[i]]
        for j in range(size):
            out[i, j] = row[index[j]]
    return out


@compiled
def add_products(matrix: Floats, index: Integers, features: Floats) -> None:
    """matrix[index, index] += ĜᵀĜ for features (K, a), in place."""
    for i in range(len(index)):
        row = matrix[index[i]]
        for k in range(len(features)):
            v = features[k, i]
            if v != 0.0:
                for j in range(len(index)):
                    row[index[j]] += v * features[k, j]


@compiled
def project(matrix: Floats, index: Integers, features: Floats) -> Floats:
    """Ĝ M for features (K, a) on coordinates `index` (a,): (K, p); rows of M whose feature is zero are not read."""
    count, size = len(features), matrix.shape[1]
    out = np.zeros((count, size))
    for i in range(len(index)):
        row = matrix[index[i]]
        for k in range(count):
            v = features[k, i]
            if v != 0.0:
                line = out[k]
                for j in range(size):
                    line[j] += v * row[j]
    return out


@exact
def group_table(labels: Integers, groups: int) -> Integers:
    """Members of every group as rows, ascending, (groups, largest), padded with −1."""
    sizes = np.zeros(groups, np.int64)
    for label in labels:
        sizes[label] += 1
    table = np.full((groups, sizes.max() if groups else 0), -1, np.int64)
    sizes[:] = 0
    for i in range(len(labels)):
        table[labels[i], sizes[labels[i]]] = i
        sizes[labels[i]] += 1
    return table


@exact
def top_of_groups(scores: Floats, rank: Integers, labels: Integers, groups: int, k: int) -> Integers:
    """The k best positions of every group by (−score, rank), best first: (groups, k); −1 where there are fewer."""
    best = np.full((groups, k), -1, np.int64)
    for i in range(len(scores)):
        row = best[labels[i]]
        last = row[k - 1]
        if last >= 0 and (scores[i] < scores[last] or (scores[i] == scores[last] and rank[i] > rank[last])):
            continue
        place = k - 1
        while place > 0:
            above = row[place - 1]
            if above >= 0 and (scores[above] > scores[i] or (scores[above] == scores[i] and rank[above] < rank[i])):
                break
            row[place] = above
            place -= 1
        row[place] = i
    return best
