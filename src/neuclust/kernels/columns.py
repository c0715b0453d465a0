"""Scores of very many arms with few active columns: contexts are read by column and never materialised.

Arms run in blocks of fixed length, the last one padded: every arm goes through the same instructions in the same order,
so equal contexts have equal scores to the last bit. Numba's threads share the blocks of many arms.
"""

import math
from dataclasses import dataclass

import numpy as np

from neuclust.kernels.compiled import group_rows
from neuclust.kernels.jit import Floats, Integers, compiled, each, inlined, parallel

Contexts = tuple[Floats, Integers, Floats, float]  # the fields of `Columns`
Net = tuple[Floats, Floats, float]  # w0 (q, m), w1 (m,) and the scale

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

    @property
    def contexts(self) -> Contexts:
        """All of it, for compiled loops."""
        return self.profiles, self.active, self.query, self.rho

    def at(self, arms: Integers) -> Floats:
        """Contexts of the given arms, (k, q)."""
        return np.ascontiguousarray((self.profiles[self.active[:, None], arms] * self.query[:, None] / self.rho).T)


def forward_columns(x: Columns, w0: Floats, w1: Floats, scale: float) -> tuple[Floats, Integers, Integers]:
    """f of every arm (n,), the first arm of each activation region (R,), each arm's region (n,): w0 (q, m), w1 (m,)."""
    means, signs = np.empty(len(x)), np.empty((len(x), (len(w1) + WORD - 1) // WORD), np.int64)
    run = _forward_shared if len(x) >= SHARED else _forward
    run(x.contexts, (w0, w1, scale), means, signs)
    return means, *group_rows(signs)


def widths_columns(x: Columns, forms: Floats, region: Integers) -> Floats:
    """w = √(xᵀ Q x) with the form of each arm's region: forms (R, q, q)."""
    widths = np.empty(len(x))
    run = _widths_shared if len(x) >= SHARED else _widths
    run(x.contexts, forms, region, widths)
    return widths


@inlined
def _read(contexts: Contexts, first: int, block: Floats) -> None:
    """Contexts of the arms from `first` on into block (q, BLOCK); places behind the last arm stay zero."""
    profiles, active, query, rho = contexts
    size = min(BLOCK, profiles.shape[1] - first)
    for j in range(len(active)):
        line = profiles[active[j], first : first + size]
        for i in range(size):
            block[j, i] = line[i] * query[j] / rho
        for i in range(size, BLOCK):
            block[j, i] = 0.0


@inlined
def _forward_block(contexts: Contexts, net: Net, means: Floats, signs: Integers, first: int) -> None:
    w0, w1, scale = net
    x, hidden, total = np.empty((len(w0), BLOCK)), np.empty(BLOCK), np.zeros(BLOCK)
    word = np.zeros(BLOCK, np.int64)
    _read(contexts, first, x)
    size = min(BLOCK, len(means) - first)
    for k in range(len(w1)):
        hidden[:] = 0.0
        for j in range(len(x)):
            line, w = x[j], w0[j, k]
            for i in range(BLOCK):
                hidden[i] += w * line[i]
        out, bit = w1[k], np.int64(1) << np.int64(k % WORD)
        for i in range(BLOCK):
            total[i] += out * max(hidden[i], 0.0)
            word[i] |= bit if hidden[i] > 0.0 else np.int64(0)
        if k % WORD == WORD - 1 or k == len(w1) - 1:
            signs[first : first + size, k // WORD] = word[:size]
            word[:] = 0
    means[first : first + size] = scale * total[:size]


@compiled
def _forward(contexts: Contexts, net: Net, means: Floats, signs: Integers) -> None:
    for first in range(0, len(means), BLOCK):
        _forward_block(contexts, net, means, signs, first)


@inlined
def _widths_block(contexts: Contexts, forms: Floats, region: Integers, widths: Floats, first: int) -> None:
    q = len(contexts[1])
    x = np.empty((q, BLOCK))
    _read(contexts, first, x)
    for i in range(min(BLOCK, len(widths) - first)):
        form, total = forms[region[first + i]], 0.0
        for j in range(q):
            line = 0.0
            for k in range(q):
                line += form[j, k] * x[k, i]
            total += x[j, i] * line
        widths[first + i] = math.sqrt(total) if total > 0.0 else 0.0


@compiled
def _widths(contexts: Contexts, forms: Floats, region: Integers, widths: Floats) -> None:
    for first in range(0, len(widths), BLOCK):
        _widths_block(contexts, forms, region, widths, first)


@parallel
def _forward_shared(contexts: Contexts, net: Net, means: Floats, signs: Integers) -> None:
    for b in each((len(means) + BLOCK - 1) // BLOCK):
        _forward_block(contexts, net, means, signs, b * BLOCK)


@parallel
def _widths_shared(contexts: Contexts, forms: Floats, region: Integers, widths: Floats) -> None:
    for b in each((len(widths) + BLOCK - 1) // BLOCK):
        _widths_block(contexts, forms, region, widths, b * BLOCK)
