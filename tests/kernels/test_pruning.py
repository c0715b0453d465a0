"""Bounds that are lowered only where it matters find the slate that all exact values would give."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neuclust.errors import StateError
from neuclust.kernels import jit
from neuclust.kernels.jit import Floats, Integers
from neuclust.kernels.pruning import Bounds, Clusters, best_cluster, best_overall
from neuclust.randomness import stream

pytestmark = pytest.mark.skipif(not jit.available, reason="Numba is not installed: nothing is pruned")


class Problem:
    """Values with many ties, bounds above them, arms that share contexts, clusters of at least k arms."""

    def __init__(self, seed: int, n: int, clusters: int, k: int) -> None:
        rng = stream(seed, "test pruning")
        self.k, self.n, self.count = k, n, clusters
        contexts = int(rng.integers(1, n + 1))
        self.group = rng.integers(contexts, size=n)
        self.means = rng.integers(-2, 3, size=contexts) / 2
        self.bonuses = rng.integers(0, 4, size=contexts) / 2
        self.gaps = rng.integers(0, 3, size=contexts) / 2
        self.rank = rng.permutation(n)
        self.labels = rng.permutation(np.arange(n) % clusters)
        self.asked: list[int] = []

    def bounds(self) -> Bounds:
        upper = self.means + self.bonuses + self.gaps
        exact = np.zeros(len(upper), bool)
        self.made = Bounds(self.means, self.bonuses + self.gaps, upper, exact, exact.copy(), self.group, self.tighten)
        return self.made

    def tighten(self, rows: Integers, floor: float, early: bool = False) -> None:
        self.asked += rows.tolist()
        value = self.means + self.bonuses
        for row in rows:
            assert not self.made.exact[row]
            if early:  # half of the way
                self.made.upper[row] = (self.made.upper[row] + value[row]) / 2
                continue
            exact = value[row] >= floor - 0.5  # some of those below the floor stay bounds
            self.made.exact[row] = exact
            self.made.upper[row] = value[row] if exact else min(self.made.upper[row], np.nextafter(floor, -np.inf))
            self.made.bonuses[row] = self.made.upper[row] - self.means[row]

    def value(self, positions: Integers) -> float:
        """V = Σv + the smallest mean: non-decreasing in every v and mean, as a score with F is."""
        rows = self.group[positions]
        return float((self.means + self.bonuses)[rows].sum() + 2 * self.means[rows].min())

    def plain(self) -> tuple[int, list[int]]:
        v = (self.means + self.bonuses)[self.group]
        slates = []
        for c in range(self.count):
            members = [i for i in range(self.n) if self.labels[i] == c]
            slates.append(sorted(members, key=lambda i: (-v[i], self.rank[i]))[: self.k])
        values = [self.value(np.array(slate)) for slate in slates]
        return values.index(max(values)), slates[values.index(max(values))]

    def ceiling(self, c: int, upper: Floats) -> float:
        means = np.sort(self.means[self.group[self.labels == c]])[::-1]
        return float(upper.sum() + 2 * means[self.k - 1])


@given(st.integers(0, 10**6), st.integers(1, 5), st.integers(1, 4), st.integers(0, 60))
def test_the_slate_is_the_one_of_all_exact_values(seed: int, clusters: int, k: int, more: int) -> None:
    problem = Problem(seed, clusters * k + more, clusters, k)
    members = [np.nonzero(problem.labels == c)[0] for c in range(clusters)]
    winner, slate = best_cluster(
        problem.bounds(), Clusters(problem.labels, members, problem.rank), k, problem.ceiling, problem.value
    )
    assert (winner, slate.tolist()) == problem.plain()


@given(st.integers(0, 10**6), st.integers(1, 6), st.integers(0, 60))
def test_the_best_of_all_arms_are_those_of_one_cluster(seed: int, k: int, more: int) -> None:
    problem = Problem(seed, k + more, 1, k)
    assert best_overall(problem.bounds(), problem.rank, k).tolist() == problem.plain()[1]


def test_arms_and_clusters_that_cannot_win_are_never_looked_at() -> None:
    problem = Problem(0, 400, 4, 3)
    problem.group = np.arange(400)
    problem.means, problem.bonuses, problem.gaps = np.zeros(400), np.linspace(0, 1, 400), np.full(400, 0.01)
    problem.labels = np.arange(400) // 100
    members = [np.nonzero(problem.labels == c)[0] for c in range(4)]
    winner, slate = best_cluster(
        problem.bounds(), Clusters(problem.labels, members, problem.rank), 3, problem.ceiling, problem.value
    )
    assert (winner, slate.tolist()) == (3, [399, 398, 397])
    assert min(problem.asked) >= 370


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_bounds_that_are_not_finite_are_refused(value: float) -> None:
    problem = Problem(0, 40, 2, 3)
    bounds = problem.bounds()
    bounds.upper[problem.group[0]] = value
    with pytest.raises(StateError, match="begin anew"):
        best_overall(bounds, problem.rank, 3)


def test_bounds_that_nothing_lowers_are_refused_instead_of_tried_for_ever() -> None:
    problem = Problem(0, 40, 2, 3)
    bounds = problem.bounds()
    bounds.tighten = lambda rows, floor, early=False: None
    with pytest.raises(StateError, match="begin anew"):
        best_overall(bounds, problem.rank, 3)


def test_a_slate_worth_no_number_is_refused() -> None:
    problem = Problem(0, 40, 2, 3)
    members = [np.nonzero(problem.labels == c)[0] for c in range(2)]
    for ceiling, value in ((lambda c, u: np.nan, problem.value), (problem.ceiling, lambda positions: np.nan)):
        with pytest.raises(StateError, match="begin anew"):
            best_cluster(problem.bounds(), Clusters(problem.labels, members, problem.rank), 3, ceiling, value)
