"""k-means from given centres against scikit-learn's, round after round of small moves."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.cluster import KMeans

from neuclust.kernels import jit
from neuclust.kernels.jit import Floats, Integers
from neuclust.kernels.lloyd import lloyd
from neuclust.randomness import stream

pytestmark = pytest.mark.skipif(not jit.available, reason="Numba is not installed: there is no compiled loop")


def inertia(points: Floats, labels: Integers) -> float:
    """Σ squared distances to the clusters' means."""
    return float(sum(((points[labels == c] - points[labels == c].mean(0)) ** 2).sum() for c in set(labels.tolist())))


@given(st.integers(0, 10**6), st.integers(2, 6), st.integers(1, 4))
def test_labels_are_scikit_learns_while_points_move(seed: int, count: int, d: int) -> None:
    rng = stream(seed, "test lloyd")
    points = rng.random((80, d))
    centres = points[rng.permutation(80)[:count]]
    for _ in range(4):
        found = lloyd(points, centres, 300)
        theirs = KMeans(count, init=centres, n_init=1).fit(points)
        if found is None:
            return  # an empty cluster: left to scikit-learn
        labels, means, sizes = found
        assert labels.tolist() == theirs.labels_.tolist()
        assert sizes.tolist() == np.bincount(labels, minlength=count).tolist()
        for c in range(count):
            np.testing.assert_allclose(means[c], points[labels == c].mean(0), rtol=1e-12, atol=1e-12)
        assert inertia(points, labels) <= theirs.inertia_ * (1 + 1e-9)
        centres = means
        points[rng.integers(80, size=5)] = rng.random((5, d))


def test_an_empty_cluster_is_reported() -> None:
    points = np.array([[0.0], [1.0], [10.0], [11.0], [12.0], [30.0]])
    assert lloyd(points, np.array([[0.0], [11.0], [500.0]]), 300) is None


def test_iterations_stop_at_the_limit_with_labels_that_belong_to_the_last_centres() -> None:
    points = np.linspace(0, 1, 60)[:, None]
    start = np.array([[0.0], [0.01]])
    for limit in (1, 2, 3):
        found = lloyd(points, start, limit)
        theirs = KMeans(2, init=start, n_init=1, max_iter=limit).fit(points)
        assert found is not None
        assert found[0].tolist() == theirs.labels_.tolist()
