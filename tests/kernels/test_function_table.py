"""Functions of items kept sparse: the same numbers, whatever comes and goes, and contexts made of them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from neuclust.kernels import jit
from neuclust.kernels.jit import Floats, Integers
from neuclust.kernels.scoring.function_table import FunctionTable
from neuclust.kernels.scoring.masked_scores import MergedRows

SEEDS = st.integers(0, 999)


def functions(n: int, seed: int) -> tuple[Floats, np.random.Generator]:
    """A constant, two categories as indicators (one of them of another level), two numbers, one of them missing for
    some, and a function that is 0 everywhere."""
    rng = np.random.default_rng(seed)
    kind, brand = rng.integers(0, 3, n), rng.integers(0, 4, n)
    numbers = rng.standard_normal((n, 2))
    numbers[rng.random(n) < 0.3, 1] = 0.0
    return np.column_stack([np.ones(n), np.eye(3)[kind], 0.7 * np.eye(4)[brand], numbers, np.zeros(n)]), rng


@settings(deadline=None, max_examples=40)
@given(n=st.integers(1, 30), seed=SEEDS)
def test_a_table_holds_the_functions_it_was_made_of(n: int, seed: int) -> None:
    values, rng = functions(n, seed)
    rows = rng.permutation(n)[: rng.integers(0, n + 1)]
    np.testing.assert_array_equal(FunctionTable.of(values).dense(rows), values[rows])


def test_no_items_make_a_table() -> None:
    table = FunctionTable.of(np.zeros((0, 4)))
    assert table.dense(np.zeros(0, np.int64)).shape == (0, 4)
    assert not table.put(np.array([0]), np.ones((1, 4)))


@settings(deadline=None, max_examples=60)
@given(seed=SEEDS)
def test_rows_are_replaced_or_the_table_says_that_it_cannot(seed: int) -> None:
    values, rng = functions(20, seed)
    table = FunctionTable.of(values[:16])
    rows = rng.permutation(20)[:5]
    new, _ = functions(5, seed + 1)
    new[:, rng.random(values.shape[1]) < 0.1] = rng.standard_normal()  # sometimes what no row was like
    before = table.dense(np.arange(16))
    fits = table.put(rows, new)
    known = rows < 16
    if fits:
        np.testing.assert_array_equal(table.dense(rows), new)
        assert table.largest >= np.abs(new).max()
        before[rows[known]] = new[known]
    np.testing.assert_array_equal(table.dense(np.arange(16)), before)


@pytest.mark.parametrize(
    ("row", "why"),
    [
        ([1.0, 2.0, 0.5], "a second value of a function that had one"),
        ([0.0, 1.0, 0.5], "two functions that were 0 together no longer are"),
        ([1.0, 1.0, 0.0], "the same the other way round"),
    ],
)
def test_rows_unlike_all_before_are_refused_and_change_nothing(row: list[float], why: str) -> None:
    values = np.array([[1.0, 1.0, 0.2], [1.0, 0.0, 0.4], [1.0, 1.0, 0.3]])
    table = FunctionTable.of(values)
    assert table.put(np.array([1]), np.array([[1.0, 1.0, 0.9]]))
    assert not table.put(np.array([1]), np.array([row])), why
    np.testing.assert_array_equal(table.dense(np.arange(3)), [values[0], [1.0, 1.0, 0.9], values[2]])


@pytest.mark.skipif(not jit.available, reason="Numba is not installed")
@settings(deadline=None, max_examples=60)
@given(seed=SEEDS)
def test_contexts_made_of_functions_are_the_products(seed: int) -> None:
    values, rng = functions(25, seed)
    index: Integers = np.concatenate([np.arange(values.shape[1]), rng.integers(0, values.shape[1], 12)])
    weights = np.where(rng.random(len(index)) < 0.3, 0.0, rng.standard_normal(len(index)))
    rows = rng.permutation(25)[:15]
    merged = MergedRows.crossed(FunctionTable.of(values), rows, index, weights)
    x = values[rows][:, index] * weights
    np.testing.assert_allclose(merged.dense(), x, rtol=1e-14)
    np.testing.assert_array_equal(merged.sums[:, 0], np.maximum((x != 0).sum(1), 1))
    np.testing.assert_allclose(merged.sums[:, 1:], np.stack([x.sum(1), (x * x).sum(1)], 1), rtol=1e-12, atol=1e-12)


@pytest.mark.skipif(not jit.available, reason="Numba is not installed")
def test_functions_that_no_column_has_leave_no_trace() -> None:
    """Rows that differ in such functions alone must have equal scores to the last digit."""
    values = np.array([[1.0, 1.0, 0.0, 0.3], [1.0, 0.0, 1.0, 0.3]])
    merged = MergedRows.crossed(FunctionTable.of(values), np.arange(2), np.array([0, 3, 1]), np.array([2.0, 1.0, 0.0]))
    begin, end, index, value = merged.entries
    first, second = (slice(begin[at], end[at]) for at in range(2))
    np.testing.assert_array_equal(index[first], index[second])
    np.testing.assert_array_equal(value[first], value[second])
