"""Means over trees against a walk down each, compiled and plain."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from neuclust.kernels import jit
from neuclust.kernels.jit import Floats
from neuclust.kernels.scoring.tree_values import LANES, Trees, plain_tree_values, tree_values

LOOPS = [plain_tree_values, *([tree_values] if jit.available else [])]
Node = tuple[int, int, float, float]  # feature, first child, threshold, value; the second child is the next one


def planted(table: list[Node], place: int, columns: int, depth: int, rng: np.random.Generator) -> None:
    """A random tree whose root is the row `place`; what lies below it goes to the end of the table."""
    if depth == 0 or rng.random() < 0.2:
        table[place] = (0, place, np.inf, float(rng.standard_normal()))
        return
    first = len(table)
    table[place] = (int(rng.integers(columns)), first, float(rng.integers(3)), 9.0)
    table += [table[place]] * 2
    for child in (first, first + 1):
        planted(table, child, columns, depth - 1, rng)


def walked(x: Floats, root: int, table: list[Node]) -> float:
    node = root
    while table[node][1] != node:
        feature, first, threshold, _ = table[node]
        node = first if x[feature] <= threshold else first + 1
    return table[node][3]


@pytest.mark.parametrize("values", LOOPS)
@settings(deadline=None, max_examples=40)
@given(
    trees=st.integers(1, 6),
    rows=st.sampled_from([0, 1, LANES - 1, LANES, 2 * LANES + 3]),
    columns=st.integers(1, 4),
    seed=st.integers(0, 999),
)
def test_values_are_means_over_the_leaves(
    values: Callable[..., Floats], trees: int, rows: int, columns: int, seed: int
) -> None:
    rng, table, roots = np.random.default_rng(seed), list[Node](), []
    for _ in range(trees):
        roots.append(len(table))
        table.append((0, 0, 0.0, 0.0))
        planted(table, roots[-1], columns, 4, rng)
    feature, first, threshold, value = (np.array(column) for column in zip(*table, strict=True))
    x = rng.integers(4, size=(rows, columns)).astype(float)  # some are equal to a threshold
    found = values(x, *Trees(np.array(roots), feature, first, threshold, value))
    expected = [np.mean([walked(row, root, table) for root in roots]) for row in x]
    np.testing.assert_allclose(found, np.array(expected).reshape(rows), rtol=1e-12, atol=1e-12)
