"""Means over trees against a walk down each, compiled and plain."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from neuclust.kernels import jit
from neuclust.kernels.jit import Floats, Integers
from neuclust.kernels.scoring.tree_values import plain_tree_values, tree_values

LOOPS = [plain_tree_values, *([tree_values] if jit.available else [])]
Table = list[tuple[int, int, int, float, float]]  # feature, children, threshold, value


def planted(table: Table, columns: int, depth: int, rng: np.random.Generator) -> int:
    """A random tree below the end of the table; the row of its root."""
    row = len(table)
    if depth == 0 or rng.random() < 0.2:
        table.append((-2, -1, -1, 0.0, float(rng.standard_normal())))
        return row
    table.append((0, 0, 0, 0.0, 0.0))
    first, second = planted(table, columns, depth - 1, rng), planted(table, columns, depth - 1, rng)
    table[row] = (int(rng.integers(columns)), first, second, float(rng.integers(3)), 9.0)
    return row


def walked(x: Floats, root: int, nodes: Integers, numbers: Floats) -> float:
    node = root
    while nodes[node, 0] >= 0:
        node = nodes[node, 1] if x[nodes[node, 0]] <= numbers[node, 0] else nodes[node, 2]
    return float(numbers[node, 1])


@pytest.mark.parametrize("values", LOOPS)
@settings(deadline=None, max_examples=40)
@given(trees=st.integers(1, 6), rows=st.integers(0, 9), columns=st.integers(1, 4), seed=st.integers(0, 999))
def test_values_are_means_over_the_leaves(values: object, trees: int, rows: int, columns: int, seed: int) -> None:
    rng, table = np.random.default_rng(seed), Table()
    roots = np.array([planted(table, columns, 4, rng) for _ in range(trees)])
    nodes, numbers = np.array([row[:3] for row in table]), np.array([row[3:] for row in table])
    x = rng.integers(4, size=(rows, columns)).astype(float)  # some are equal to a threshold
    assert callable(values)
    found = values(x, roots, nodes, numbers)
    expected = [np.mean([walked(row, root, nodes, numbers) for root in roots]) for row in x]
    np.testing.assert_allclose(found, np.array(expected).reshape(rows), rtol=1e-12, atol=1e-12)
