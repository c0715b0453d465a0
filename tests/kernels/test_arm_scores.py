"""Compiled scores of many contexts against plain products in float64, around the size of a tile."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from neuclust.kernels import jit
from neuclust.kernels.jit import Floats
from neuclust.kernels.scoring import arm_scores
from neuclust.kernels.scoring.arm_scores import LANES

pytestmark = pytest.mark.skipif(not jit.available, reason="Numba is not installed")

SIZES = st.sampled_from([1, 2, LANES - 1, LANES, LANES + 1, 3 * LANES + 7])
DIMENSIONS = st.integers(1, 9)  # columns are taken four at a time


def rows(n: int, d: int, seed: int) -> tuple[Floats, np.random.Generator]:
    """n contexts, the last of them equal to the first."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((n, d))
    x[-1] = x[0]
    return x, rng


@settings(deadline=None, max_examples=30)
@given(n=SIZES, d=DIMENSIONS, seed=st.integers(0, 99))
def test_quadratic_forms(n: int, d: int, seed: int) -> None:
    x, rng = rows(n, d, seed)
    slopes, squares = rng.standard_normal(d), rng.standard_normal((d, d))
    found = arm_scores.quadratic_forms(x, 0.3, slopes, squares)
    expected = [0.3 + row @ slopes + row @ np.tril(squares) @ row for row in x]
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)
    assert found[0] == found[-1]  # wherever an equal context stands


@settings(deadline=None, max_examples=30)
@given(n=SIZES, d=DIMENSIONS, count=st.integers(1, 5), seed=st.integers(0, 99))
def test_affine_beliefs_of_groups(n: int, d: int, count: int, seed: int) -> None:
    x, rng = rows(n, d, seed)
    labels = rng.integers(count, size=n)
    labels[-1] = labels[0]
    means, roots = rng.standard_normal((count, d + 1)), np.tril(rng.standard_normal((count, d + 1, d + 1)))
    starts = np.concatenate([[0], np.cumsum(np.bincount(labels, minlength=count))])
    values, lengths = arm_scores.affine_beliefs(x, (np.argsort(labels, kind="stable"), starts), means, roots)
    for i, (row, g) in enumerate(zip(x, labels, strict=True)):
        longer = np.concatenate([[1.0], row])
        assert values[i] == pytest.approx(means[g] @ longer, abs=1e-12)
        assert lengths[i] == pytest.approx(np.linalg.norm(roots[g] @ longer), abs=1e-12)
    assert (values[0], lengths[0]) == (values[-1], lengths[-1])


def test_rows_in_one_group_need_no_order() -> None:
    x, rng = rows(LANES + 3, 5, 1)
    means, roots = rng.standard_normal((1, 6)), np.tril(rng.standard_normal((1, 6, 6)))
    groups = np.array([0, len(x)])
    one = arm_scores.affine_beliefs(x, (np.empty(0, np.int64), groups), means, roots)
    other = arm_scores.affine_beliefs(x, (np.arange(len(x)), groups), means, roots)
    assert np.array_equal(one, other)


@settings(deadline=None, max_examples=30)
@given(n=SIZES, d=DIMENSIONS, count=st.integers(1, 7), seed=st.integers(0, 99))
def test_nearest_rows(n: int, d: int, count: int, seed: int) -> None:
    x, rng = rows(n, d, seed)
    centres = rng.standard_normal((count, d))
    centres[-1] = centres[0]  # the first of equals
    expected = [int(np.argmin(((row - centres) ** 2).sum(1).round(9))) for row in x]
    assert arm_scores.nearest_rows(x, centres).tolist() == expected


@settings(deadline=None, max_examples=30)
@given(n=SIZES, d=DIMENSIONS, seed=st.integers(0, 99), length=st.sampled_from([1e-3, 1.0, 1e3]))
def test_cosine_sums(n: int, d: int, seed: int, length: float) -> None:
    x, rng = rows(n, d, seed)
    linear, turns = rng.standard_normal((3, 5, d + 1)), length * rng.standard_normal((3, 11, 4))
    heights, phases = rng.standard_normal((3, 11)), rng.standard_normal((3, 11))
    found = arm_scores.cosine_sums(x, linear, turns, heights, phases)
    for m in range(3):
        angles = (x @ linear[m, 1:, 1:].T) @ turns[m].T + phases[m]
        expected = linear[m, 0, 0] + x @ linear[m, 0, 1:] + np.cos(2 * np.pi * angles) @ heights[m]
        np.testing.assert_allclose(found[m], expected, atol=1e-12 * max(1.0, 10 * length))
    assert np.array_equal(found[:, 0], found[:, -1])


@settings(deadline=None, max_examples=30)
@given(n=SIZES, d=DIMENSIONS, seed=st.integers(0, 99), longest=st.sampled_from([0.5, 1e3]))
def test_relu_outputs(n: int, d: int, seed: int, longest: float) -> None:
    x, rng = rows(n, d, seed)
    hidden, outputs = rng.standard_normal((6, d + 1)), rng.standard_normal((2, 7))
    found = arm_scores.relu_outputs(x, hidden, outputs, longest)
    units = np.maximum(x @ hidden[:, :d].T + hidden[:, d], 0)
    lengths = np.linalg.norm(units, axis=1, keepdims=True)
    units = units * np.minimum(1, longest / np.maximum(lengths, 1e-300))
    np.testing.assert_allclose(found, outputs[:, :1] + outputs[:, 1:] @ units.T, rtol=1e-12, atol=1e-12)


def test_shortened_rows() -> None:
    z = np.array([[3.0, 4.0], [0.0, 0.0], [30.0, 40.0]])
    np.testing.assert_allclose(arm_scores.shortened_rows(z, 5.0, 2.0), [[1.5, 2.0], [0.0, 0.0], [1.5, 2.0]])
