"""Scores of very many arms with few active columns: contexts are read by column and never written down.

Arms run side by side in blocks of fixed length, the last one filled up: every arm goes through the same instructions
in the same order, so equal contexts have equal scores to the last bit wherever they stand. From 100,000 arms on the
blocks are shared among the threads Numba has (NUMBA_NUM_THREADS), which changes no number.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from neuclust.kernels.jit import compiled, each, exact, inlined, parallel

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

BLOCK = 256
WORD = 62  # signs packed into one integer
SHARED = 100_000  # arms from which threads pay


@dataclass(frozen=True, slots=True)
class Columns:
    """x ⊙ a / ρ on active columns: profiles by column (d, n), active (q,), a there (q,), and ρ."""

    profiles: Floats
    active: Integers
    query: Floats
    rho: float

    def __len__(self) -> int:
        return int(self.profiles.shape[1])

    def at(self, arms: Integers) -> Floats:
        """Contexts of the given arms, (k, q)."""
        return np.ascontiguousarray((self.profiles[self.active[:, None], arms] * self.query[:, None] / self.rho).T)


def forward_columns(x: Columns, w0: Floats, w1: Floats, scale: float) -> tuple[Floats, Integers, Integers]:
    """f of every arm (n,), the first arm of each activation region (R,) and every arm's region (n,).

    For a bias-free net with one hidden layer: w0 (q, m), w1 (m,).
    """
    n, words = len(x), (len(w1) + WORD - 1) // WORD
    means, signs = np.empty(n), np.empty((words, n), np.int64)
    run = _forward_shared if n >= SHARED else _forward
    run(x.profiles, x.active, x.query, x.rho, w0, w1, scale, means, signs)
    return means, *_grouped(signs)


def widths_columns(x: Columns, forms: Floats, region: Integers) -> Floats:
    """w = √(xᵀ Q x) with the form of each arm's region: forms (R, q, q)."""
    widths = np.empty(len(x))
    run = _widths_shared if len(x) >= SHARED else _widths
    run(x.profiles, x.active, x.query, x.rho, forms, region, widths)
    return widths


@inlined
def _read(profiles: Floats, active: Integers, query: Floats, rho: float, first: int, block: Floats) -> None:
    """Contexts of the arms from `first` on into block (q, BLOCK); places behind the last arm stay zero."""
    size = min(BLOCK, profiles.shape[1] - first)
    for j in range(len(active)):
        line = profiles[active[j], first : first + size]
        for i in range(size):
            block[j, i] = line[i] * query[j] / rho
        for i in range(size, BLOCK):
            block[j, i] = 0.0


@inlined
def _forward_block(
    profiles: Floats,
    active: Integers,
    query: Floats,
    rho: float,
    w0: Floats,
    w1: Floats,
    scale: float,
    means: Floats,
    signs: Integers,
    first: int,
) -> None:
    x, hidden, total = np.empty((len(active), BLOCK)), np.empty(BLOCK), np.zeros(BLOCK)
    word = np.zeros(BLOCK, np.int64)
    _read(profiles, active, query, rho, first, x)
    size = min(BLOCK, len(means) - first)
    for k in range(len(w1)):
        hidden[:] = 0.0
        for j in range(len(active)):
            line, w = x[j], w0[j, k]
            for i in range(BLOCK):
                hidden[i] += w * line[i]
        out, bit = w1[k], np.int64(1) << np.int64(k % WORD)
        for i in range(BLOCK):
            total[i] += out * max(hidden[i], 0.0)
            word[i] |= bit if hidden[i] > 0.0 else np.int64(0)
        if k % WORD == WORD - 1 or k == len(w1) - 1:
            signs[k // WORD, first : first + size] = word[:size]
            word[:] = 0
    means[first : first + size] = scale * total[:size]


@inlined
def _widths_block(
    profiles: Floats,
    active: Integers,
    query: Floats,
    rho: float,
    forms: Floats,
    region: Integers,
    widths: Floats,
    first: int,
) -> None:
    q = len(active)
    x = np.empty((q, BLOCK))
    _read(profiles, active, query, rho, first, x)
    for i in range(min(BLOCK, len(widths) - first)):
        form, total = forms[region[first + i]], 0.0
        for j in range(q):
            line = 0.0
            for k in range(q):
                line += form[j, k] * x[k, i]
            total += x[j, i] * line
        widths[first + i] = math.sqrt(total) if total > 0.0 else 0.0


@compiled
def _forward(
    profiles: Floats, active: Integers, query: Floats, rho: float, w0: Floats, w1: Floats, scale: float,
    means: Floats, signs: Integers,
) -> None:  # fmt: skip
    for b in range((len(means) + BLOCK - 1) // BLOCK):
        _forward_block(profiles, active, query, rho, w0, w1, scale, means, signs, b * BLOCK)


@parallel
def _forward_shared(
    profiles: Floats, active: Integers, query: Floats, rho: float, w0: Floats, w1: Floats, scale: float,
    means: Floats, signs: Integers,
) -> None:  # fmt: skip
    for b in each((len(means) + BLOCK - 1) // BLOCK):
        _forward_block(profiles, active, query, rho, w0, w1, scale, means, signs, b * BLOCK)


@compiled
def _widths(
    profiles: Floats, active: Integers, query: Floats, rho: float, forms: Floats, region: Integers, widths: Floats
) -> None:
    for b in range((len(widths) + BLOCK - 1) // BLOCK):
        _widths_block(profiles, active, query, rho, forms, region, widths, b * BLOCK)


@parallel
def _widths_shared(
    profiles: Floats, active: Integers, query: Floats, rho: float, forms: Floats, region: Integers, widths: Floats
) -> None:
    for b in each((len(widths) + BLOCK - 1) // BLOCK):
        _widths_block(profiles, active, query, rho, forms, region, widths, b * BLOCK)


@exact
def _grouped(signs: Integers) -> tuple[Integers, Integers]:
    """Equal columns of signs (words, n) once: first place of each (R,), and its number for every column (n,)."""
    words, n = signs.shape
    slots, count = 1024, 0
    table, first, group = np.full(slots, -1, np.int64), np.empty(n, np.int64), np.empty(n, np.int64)
    for i in range(n):
        if 2 * count >= slots:
            slots *= 4
            table = np.full(slots, -1, np.int64)
            for known in range(count):
                slot = _hash(signs, first[known]) & (slots - 1)
                while table[slot] >= 0:
                    slot = (slot + 1) & (slots - 1)
                table[slot] = known
        slot = _hash(signs, i) & (slots - 1)
        while True:
            known = table[slot]
            if known < 0:
                table[slot], first[count], group[i] = count, i, count
                count += 1
                break
            same = True
            for w in range(words):
                if signs[w, first[known]] != signs[w, i]:
                    same = False
                    break
            if same:
                group[i] = known
                break
            slot = (slot + 1) & (slots - 1)
    return first[:count].copy(), group


@inlined
def _hash(signs: Integers, i: int) -> np.int64:
    code = np.uint64(0x9E3779B97F4A7C15)
    for w in range(signs.shape[0]):
        code = (code ^ np.uint64(signs[w, i])) * np.uint64(0xBF58476D1CE4E5B9)
        code ^= code >> np.uint64(29)
    return np.int64(code >> np.uint64(1))
