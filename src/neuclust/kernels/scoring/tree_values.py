"""Compiled means over regression trees: every context goes down every tree."""

import numpy as np

from neuclust.kernels.jit import Floats, Integers, exact


@exact
def tree_values(x: Floats, roots: Integers, nodes: Integers, numbers: Floats) -> Floats:
    """The mean over T trees of the value of the leaf that a row ends in, for rows x (n, d): (n,).
    `nodes` (m, 3) has every node's feature j, below 0 in a leaf, and the rows of its two children, `numbers` (m, 2) its
    threshold and its value: from a root (T,) rows with x_j <= threshold go on to the first child, others to the second.
    """
    out = np.zeros(len(x))
    for root in roots:  # a tree at a time, which stays in the cache
        for row in range(len(x)):
            node = root
            while nodes[node, 0] >= 0:
                node = nodes[node, 1] if x[row, nodes[node, 0]] <= numbers[node, 0] else nodes[node, 2]
            out[row] += numbers[node, 1]
    return out / len(roots)


def plain_tree_values(x: Floats, roots: Integers, nodes: Integers, numbers: Floats) -> Floats:
    """The same where nothing is compiled: all rows go down all trees at once."""
    node = np.repeat(roots[:, None], len(x), axis=1)
    rows = np.arange(len(x))
    while (nodes[node, 0] >= 0).any():
        feature, first, second = np.moveaxis(nodes[node], 2, 0)
        inner = feature >= 0
        below = x[rows, np.where(inner, feature, 0)] <= numbers[node, 0]
        node = np.where(inner, np.where(below, first, second), node)
    values: Floats = numbers[node, 1].mean(0)
    return values
