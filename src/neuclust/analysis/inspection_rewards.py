"""What arms and slates of a prepared dataset are worth: simulated from profiles, or as recorded."""

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from neuclust.data.dataset import ProfileDataset
from neuclust.data.offers import Offers
from neuclust.environments.profiles import SparseTanhAffinity
from neuclust.environments.rewards import threshold
from neuclust.randomness import stream

NEARLY_STATIC = 0.05  # of the regret of random slates
QUANTILES = {"min": 0.0, "5 %": 0.05, "25 %": 0.25, "median": 0.5, "75 %": 0.75, "95 %": 0.95, "max": 1.0}
MEAN_BINS = 2000  # of mean rewards between 0 and 1
BLOCK_ROUNDS = 50  # computed at once

Floats = NDArray[np.float64]
Progress = Callable[[int], None]


@dataclass(frozen=True, slots=True)
class View:
    """What is looked at: the first `horizon` rounds, slates of so many arms, the cluster of every arm (N,)."""

    dataset: ProfileDataset
    horizon: int
    slate_size: int
    labels: NDArray[np.int64]
    progress: Progress

    def ids(self, arms: NDArray[np.int64]) -> tuple[int, ...]:
        return tuple(self.dataset.arm_ids[arms].tolist())

    def top(self, values: NDArray[np.floating]) -> NDArray[np.int64]:
        """Positions of the largest values, as many as fill a slate; ties go to the first."""
        return np.argsort(-values, kind="stable")[: self.slate_size]


@dataclass(frozen=True, slots=True)
class Rewards:
    """Mean rewards of all arms in all rounds looked at, and slates made of them."""

    mean: float
    quantiles: dict[str, float]
    histogram: Floats  # (bins,) share of arms × rounds
    best: Floats  # (T,) expected reward of the best slate
    static: Floats  # (T,) of one slate kept throughout: the arms with the highest average mean
    static_arms: tuple[int, ...]
    random: Floats  # (T,) of a slate drawn at random
    best_cluster: Floats  # (T,) of the best slate within one cluster

    @property
    def regrets(self) -> dict[str, float]:
        """Expected regret per 1000 rounds of the static slate, a random one, and the best within a cluster."""
        losses = {"static": self.static, "random": self.random, "best cluster": self.best_cluster}
        return {name: 1000 * float((self.best - value).mean()) for name, value in losses.items()}

    @property
    def nearly_static(self) -> bool:
        """Whether one slate, kept throughout, loses next to nothing compared with random slates."""
        return self.regrets["static"] <= NEARLY_STATIC * self.regrets["random"]

    @property
    def clipped_floor(self) -> float:
        """Clipped regret per 1000 rounds of a perfect policy, 1000 · mean of u*(1 − u*)."""
        return 1000 * float((self.best * (1 - self.best)).mean())


def look_at(view: View) -> Rewards:
    """Simulated rewards, or those that were recorded."""
    return _simulated(view) if view.dataset.offers is None else _recorded(view, view.dataset.offers)


def _simulated(view: View) -> Rewards:
    """Simulated rewards: one pass over the rounds for all arms, then what one slate kept throughout earns."""
    dataset, size, reward = view.dataset, view.slate_size, threshold(view.slate_size)
    by_cluster = np.argsort(view.labels, kind="stable")  # each cluster is a slice of the means
    place = np.argsort(by_cluster)  # of each arm in the order by cluster
    bounds = [0, *np.cumsum(np.bincount(view.labels)).tolist()]
    slices = [slice(a, b) for a, b in itertools.pairwise(bounds) if b - a >= size]
    total, histogram = np.zeros(len(dataset.arms)), np.zeros(MEAN_BINS)
    values: list[Floats] = []
    for start in range(0, view.horizon, BLOCK_ROUNDS):
        queries = dataset.rounds[start : min(start + BLOCK_ROUNDS, view.horizon)]
        means = mean_rewards(dataset.arms[by_cluster], queries)
        total[by_cluster] += means.sum(0)
        histogram += np.histogram(means, MEAN_BINS, (0.0, 1.0))[0]
        rng = stream(0, "inspect", start)
        drawn = np.stack([row[place[rng.choice(len(row), size, replace=False)]] for row in means])
        whole = torch.from_numpy(means)
        tops = [torch.topk(whole[:, part], size).values for part in (slice(None), *slices)]
        values.append(reward.expected(torch.stack([torch.from_numpy(drawn), *tops])).numpy())
        view.progress(start + len(queries))
    chance, best, *within = np.concatenate(values, axis=1)
    static = view.top(total)
    kept = torch.from_numpy(mean_rewards(dataset.arms[static], dataset.rounds[: view.horizon]))
    inside = np.max(within, axis=0) if within else np.zeros(view.horizon)
    mean = float(total.mean() / view.horizon)
    return _rewards(mean, histogram, best, reward.expected(kept).numpy(), view.ids(static), chance, inside)


def _recorded(view: View, offers: Offers) -> Rewards:
    """Recorded rewards, in hindsight; static are the offered arms with the highest average payment."""
    rounds = [offers.of(t) for t in range(view.horizon)]
    arms, paid = (np.concatenate(column) for column in zip(*rounds, strict=True))
    number = len(view.dataset.arms)
    average = np.bincount(arms, paid, minlength=number) / np.maximum(np.bincount(arms, minlength=number), 1)
    chosen = []
    for t, (offered, rewards) in enumerate(rounds):
        drawn = stream(0, "inspect", t).choice(len(offered), view.slate_size, replace=False)
        inside = _best_cluster(rewards, view.labels[offered], view.slate_size)
        slates = (view.top(rewards), view.top(average[offered]), drawn, inside)
        chosen.append([rewards[slate].sum() for slate in slates])
        view.progress(t + 1)
    table = np.array(threshold(view.slate_size).values)
    best, static, chance, within = table[np.array(chosen).astype(np.int64)].T
    histogram = np.histogram(paid, MEAN_BINS, (0.0, 1.0))[0].astype(np.float64)
    return _rewards(float(paid.mean()), histogram, best, static, view.ids(view.top(average)), chance, within)


def _rewards(mean: float, histogram: Floats, *slates: Any) -> Rewards:
    """With quantiles read off the histogram, since arms × rounds are too many to keep."""
    reached, edges = np.cumsum(histogram) / histogram.sum(), np.linspace(0.0, 1.0, len(histogram) + 1)
    quantiles = {}
    for name, q in QUANTILES.items():
        place = min(int(np.searchsorted(reached, q, side="left" if q else "right")), len(histogram) - 1)
        quantiles[name] = float((edges[place] + edges[place + 1]) / 2)
    return Rewards(mean, quantiles, histogram / histogram.sum(), *slates)


def _best_cluster(rewards: NDArray[np.float32], labels: NDArray[np.int64], size: int) -> NDArray[np.int64]:
    """The best `size` arms of the cluster whose best pay most; none where no cluster has so many on offer."""
    best = np.zeros(0, dtype=np.int64)
    for label in np.flatnonzero(np.bincount(labels) >= size):
        members = np.flatnonzero(labels == label)
        slate = members[np.argsort(-rewards[members], kind="stable")[:size]]
        if rewards[slate].sum() > rewards[best].sum():
            best = slate
    return best


def mean_rewards(arms: NDArray[np.float32], queries: NDArray[np.float32]) -> Floats:
    """The environment's truth for many rounds at once, (T, N); sparse products make whole catalogues cheap."""
    truth = SparseTanhAffinity.of(torch.from_numpy(np.ascontiguousarray(arms)))
    return np.stack([truth(None, torch.from_numpy(query)).numpy() for query in queries])
