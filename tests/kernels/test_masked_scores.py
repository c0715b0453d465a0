"""Scores of contexts that are mostly 0 against their features written out, in float64."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from neuclust.kernels import jit
from neuclust.kernels.jit import Floats
from neuclust.kernels.scoring import masked_scores
from neuclust.kernels.scoring.masked_scores import MergedRows

pytestmark = pytest.mark.skipif(not jit.available, reason="Numba is not installed")

ROWS, COLUMNS, SEEDS = st.integers(1, 40), st.integers(1, 12), st.integers(0, 99)


def contexts(n: int, d: int, seed: int) -> tuple[Floats, np.random.Generator]:
    """Columns of 0 and one level with shared supports, columns of many values, one of zeros; both ends equal."""
    rng = np.random.default_rng(seed)
    x = np.where(rng.random((n, d)) < 0.4, rng.standard_normal(d), 0.0)
    varied = rng.random(d) < 0.3
    x[:, varied] *= rng.uniform(0.5, 2.0, (n, int(varied.sum())))
    if d > 2:
        x[:, 1] = 3.0 * x[:, 0]
        x[:, 2] = 0.0
        x[:, -1] = -0.7 * x[:, 0]
    x[-1] = x[0]
    return np.ascontiguousarray(x), rng


def features(x: Floats) -> Floats:
    """φ = [1, Σx/q, x/q, m/q, Σx²/q, x²/q], written out."""
    mask = (x != 0).astype(float)
    q = np.maximum(mask.sum(1, keepdims=True), 1)
    total, square = x.sum(1, keepdims=True), (x * x).sum(1, keepdims=True)
    return np.concatenate([np.ones((len(x), 1)), total / q, x / q, mask / q, square / q, x * x / q], 1)


@settings(deadline=None, max_examples=40)
@given(n=ROWS, d=COLUMNS, seed=SEEDS)
def test_linear_values(n: int, d: int, seed: int) -> None:
    x, rng = contexts(n, d, seed)
    weights = rng.standard_normal(3 + 3 * d)
    found = masked_scores.linear_values(MergedRows.of(x), weights)
    np.testing.assert_allclose(found, features(x) @ weights, rtol=1e-12, atol=1e-12)
    assert found[0] == found[-1]


@settings(deadline=None, max_examples=60)
@given(n=ROWS, d=COLUMNS, seed=SEEDS, squared=st.booleans())
def test_merged_widths_are_those_of_all_columns(n: int, d: int, seed: int, squared: bool) -> None:
    x, rng = contexts(n, d, seed)
    size = 3 + 3 * d if squared else 2 + 2 * d
    root, norms = rng.standard_normal((size, size)), rng.uniform(0.5, 2.0, size)
    phi = features(x)[:, :size] / norms
    found = masked_scores.merged_widths(MergedRows.of(x), root.T @ root, norms)
    np.testing.assert_allclose(found, np.linalg.norm(phi @ root.T, axis=1), rtol=1e-9, atol=1e-9)
    assert found[0] == found[-1]


def written_out(rows: MergedRows, n: int) -> Floats:
    """x (n, d) from what is kept of it."""
    y = np.zeros((n, rows.size + 1))  # the last one stands for columns of zeros, whose place is −1
    begin, end, index, value = rows.entries
    for i in range(n):
        entries = slice(begin[i], end[i])
        y[i, index[entries]] = value[entries]
    x: Floats = y[:, rows.place] * rows.factor
    return x


@settings(deadline=None, max_examples=60)
@given(n=ROWS, d=COLUMNS, seed=SEEDS)
def test_merged_rows_are_the_contexts(n: int, d: int, seed: int) -> None:
    x, _ = contexts(n, d, seed)
    rows = MergedRows.of(x)
    np.testing.assert_allclose(written_out(rows, n), x, rtol=1e-12)
    np.testing.assert_array_equal(rows.dense(), written_out(rows, n))
    np.testing.assert_allclose(rows.sums[:, 1], x.sum(1), rtol=1e-9, atol=1e-12)
    np.testing.assert_array_equal(rows.sums[:, 0], np.maximum((x != 0).sum(1), 1))


def test_columns_of_one_value_and_multiples_are_merged() -> None:
    x = np.array([[1.0, 3.0, 0.0, 2.0, 0.0, 0.2], [1.0, 3.0, 0.0, 5.0, 4.0, 0.5], [0.0, 0.0, 0.0, 0.0, 4.0, 0.0]])
    found = MergedRows.of(x)
    assert found.mask[0] == found.mask[1] == found.mask[3] == found.mask[5] != found.mask[4]
    assert found.place[2] == found.mask[2] == -1
    np.testing.assert_array_equal(found.factor[[0, 1, 4]], [1.0, 3.0, 4.0])
    assert found.place[3] == found.place[5] == 2  # 0.2 = 0.1 · 2, 0.5 = 0.1 · 5
    assert found.size == 3


def test_columns_that_are_multiples_in_the_leading_rows_alone_are_kept_apart() -> None:
    x = np.random.default_rng(0).uniform(1.0, 2.0, (100, 2))
    x[:, 1] = 3.0 * x[:, 0]
    assert MergedRows.of(x).size == 2  # the mask, and one column
    x[99, 1] *= 1.001
    rows = MergedRows.of(x)
    assert rows.size == 3
    np.testing.assert_array_equal(written_out(rows, 100), x)


@settings(deadline=None, max_examples=40)
@given(n=ROWS, d=COLUMNS, seed=SEEDS, longest=st.sampled_from([0.5, 1e3]))
def test_relu_values(n: int, d: int, seed: int, longest: float) -> None:
    x, rng = contexts(n, d, seed)
    hidden, outputs = rng.standard_normal((d + 2, 7)), rng.standard_normal((2, 8))
    pooled = features(x)[:, 1:2]
    units = np.maximum(np.concatenate([x, pooled, np.ones((n, 1))], 1) @ hidden, 0)
    lengths = np.linalg.norm(units, axis=1, keepdims=True)
    units = units * np.minimum(1.0, longest / np.maximum(lengths, 1e-300))
    found = masked_scores.relu_values(MergedRows.of(x), hidden, outputs, longest)
    np.testing.assert_allclose(found, outputs[:, :1] + outputs[:, 1:] @ units.T, rtol=1e-12, atol=1e-12)
