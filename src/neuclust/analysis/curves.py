"""Curves of a problem round by round: sums so far over seeds, averages, and which clusters were played."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from operator import attrgetter

import numpy as np
from numpy.typing import NDArray

from neuclust.analysis.groups import ProblemRuns
from neuclust.experiment.records import RunRecord

MOST_WINDOWS, ROUNDS_PER_WINDOW = 40, 6  # stretches of rounds over which the shares of clusters are taken
RANKS = 5  # the four most played clusters, and all others

Numbers = NDArray[np.float64]
Curve = Sequence[tuple[int, float]]  # (round, value) by round
CurveOf = Callable[[RunRecord], Curve]
regret: CurveOf = attrgetter("curve")  # Σ(u* − u) so far
reward: CurveOf = attrgetter("reward_curve")  # Σu so far


@dataclass(frozen=True, slots=True)
class Band:
    """One contender's curves: rounds (p,) and one row per seed (s, p)."""

    title: str
    rounds: Numbers
    seeds: Numbers

    def from_zero(self) -> Band:
        """The same with the point (0, 0) before it, for sums on a linear axis."""
        rounds = np.concatenate([[0.0], self.rounds])
        return replace(self, rounds=rounds, seeds=np.pad(self.seeds, ((0, 0), (1, 0))))

    @property
    def mean(self) -> Numbers:
        return np.asarray(self.seeds.mean(0), dtype=np.float64)

    @property
    def error(self) -> Numbers:
        spread = self.seeds.std(0, ddof=1) / math.sqrt(len(self.seeds))
        return np.asarray(spread, dtype=np.float64)


def bands(problem: ProblemRuns, curve_of: CurveOf) -> list[Band]:
    """The curves of every contender, all seeds on the points of its shortest run."""
    found = []
    for contender in problem.contenders:
        curves = [np.array(curve_of(run), dtype=np.float64) for run in contender.runs]
        rounds = min(curves, key=lambda curve: float(curve[-1, 0]))[:, 0]
        rows = np.stack([np.interp(rounds, curve[:, 0], curve[:, 1]) for curve in curves])
        found.append(Band(contender.title, rounds, rows))
    return found


def best_reward(run: RunRecord) -> Curve:
    """Σu* so far, from Σu* = Σu + regret."""
    return [(t, got + lost) for (t, got), (_, lost) in zip(run.reward_curve, run.curve, strict=True)]


def averaged(curve_of: CurveOf) -> CurveOf:
    """A sum so far divided by the rounds so far."""
    return lambda run: [(t, total / t) for t, total in curve_of(run)]


def expected_clipped(run: RunRecord) -> Curve:
    """E[clipped regret] so far, Σ u*(1 − u); exact where u* is constant between the points of the curves."""
    return _products(run, reward(run))


def floor_curve(run: RunRecord) -> Curve:
    """What a perfect policy pays so far, Σ u*(1 − u*), in the same manner."""
    return _products(run, best_reward(run))


def _products(run: RunRecord, sums: Curve) -> Curve:
    """Σ u*(n − Σu) / n over the stretches between points, u* averaged inside each."""
    rounds, total = np.array(sums, dtype=np.float64).T
    length, got = np.diff(rounds, prepend=0.0), np.diff(total, prepend=0.0)
    best = np.diff([value for _, value in best_reward(run)], prepend=0.0)
    values = np.cumsum(best * (length - got) / length)
    return [(int(t), float(value)) for t, value in zip(rounds, values, strict=True)]


def cluster_shares(choices: Sequence[Sequence[int]]) -> tuple[Numbers, Numbers]:
    """Rounds (w,) and shares (5, w), each column summing to 1, of clusters ranked by each run's own counts."""
    length = max(map(len, choices))
    windows = min(MOST_WINDOWS, max(1, length // ROUNDS_PER_WINDOW))
    edges = np.linspace(0, length, windows + 1).round().astype(int)
    counts = np.zeros((RANKS, len(edges) - 1))
    for chosen in choices:
        order = sorted(Counter(chosen).items(), key=lambda item: (-item[1], item[0]))  # equal counts by number
        place = {cluster: min(rank, RANKS - 1) for rank, (cluster, _) in enumerate(order)}
        ranks = np.array([place[cluster] for cluster in chosen], dtype=np.int64)
        for window, (low, high) in enumerate(pairwise(edges)):
            counts[:, window] += np.bincount(ranks[low:high], minlength=RANKS)
    middles = (edges[:-1] + 1 + edges[1:]) / 2
    if len(middles) == 1:  # an area needs two ends
        return np.array([0.5, length + 0.5]), np.repeat(counts / counts.sum(0), 2, axis=1)
    return middles, counts / counts.sum(0)
