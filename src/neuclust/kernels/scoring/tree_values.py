"""Means over regression trees: every context goes down every tree, several at a time without a branch."""

from typing import NamedTuple

import numpy as np

from neuclust.kernels.jit import Floats, Integers, compiled

LANES = 16  # contexts that go down a tree together, so that the processor waits for all of their nodes at once


class Trees(NamedTuple):
    """T trees in one table of m nodes. From node i a row x goes on to node `first[i]` where x_j <= `threshold[i]`,
    j = `feature[i]`, else to the next one; a leaf's threshold is infinite, and it leads to itself."""

    roots: Integers  # (T,)
    feature: Integers  # (m,)
    first: Integers  # (m,)
    threshold: Floats  # (m,)
    value: Floats  # (m,)


@compiled
def tree_values(
    x: Floats, roots: Integers, feature: Integers, first: Integers, threshold: Floats, value: Floats
) -> Floats:
    """The mean over the trees of the value of the leaf that a row ends in, for rows x (n, d): (n,)."""
    n = len(x)
    out, node = np.zeros(n), np.empty(LANES, np.int64)
    for root in roots:  # a tree at a time, which stays in the cache
        for start in range(0, n, LANES):
            lanes = min(LANES, n - start)
            node[:] = root
            moved = 1
            while moved:
                moved = 0
                for lane in range(lanes):
                    at = node[lane]
                    to = first[at] + (x[start + lane, feature[at]] > threshold[at])
                    moved |= to ^ at
                    node[lane] = to
            for lane in range(lanes):
                out[start + lane] += value[node[lane]]
    return out / len(roots)


def plain_tree_values(
    x: Floats, roots: Integers, feature: Integers, first: Integers, threshold: Floats, value: Floats
) -> Floats:
    """The same where nothing is compiled."""
    node, rows, before = np.repeat(roots[:, None], len(x), axis=1), np.arange(len(x)), np.full(0, -1)
    while not np.array_equal(node, before):
        before, node = node, first[node] + (x[rows, feature[node]] > threshold[node])
    values: Floats = value[node].mean(0)
    return values
