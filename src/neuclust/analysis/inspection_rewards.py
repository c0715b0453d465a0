"""What arms and slates of a prepared dataset are worth: simulated from profiles, or as really recorded."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from neuclust.data.dataset import ProfileDataset
from neuclust.environments.rewards import threshold
from neuclust.errors import DataError
from neuclust.randomness import stream

NEARLY_STATIC = 0.05  # of the regret of random slates
QUANTILES = (0.0, 0.05, 0.25, 0.5, 0.75, 0.95, 1.0)
MEAN_BINS = 2000  # of mean rewards between 0 and 1
BLOCK_ROUNDS = 50  # computed at once

Floats = NDArray[np.float64]
Progress = Callable[[int], None]


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


def look_at_rewards(
    dataset: ProfileDataset,
    horizon: int,
    slate_size: int,
    labels: NDArray[np.int64],
    progress: Progress | None = None,
) -> Rewards:
    """One pass over the rounds for all arms, then what one slate kept throughout earns."""
    reward = threshold(slate_size)
    by_cluster = np.argsort(labels, kind="stable")  # each cluster is a slice of the means
    place = np.argsort(by_cluster)  # of each arm in the order by cluster
    bounds = [0, *np.cumsum(np.bincount(labels)).tolist()]
    slices = [slice(a, b) for a, b in itertools.pairwise(bounds) if b - a >= slate_size]
    total, histogram = np.zeros(len(dataset.arms)), np.zeros(MEAN_BINS)
    values: list[Floats] = []
    for start in range(0, horizon, BLOCK_ROUNDS):
        queries = dataset.rounds[start : min(start + BLOCK_ROUNDS, horizon)]
        means = mean_rewards(dataset.arms[by_cluster], queries)
        total[by_cluster] += means.sum(0)
        histogram += np.histogram(means, MEAN_BINS, (0.0, 1.0))[0]
        rng = stream(0, "inspect", start)
        drawn = np.stack([row[place[rng.choice(len(row), slate_size, replace=False)]] for row in means])
        whole = torch.from_numpy(means)
        tops = [torch.topk(whole[:, part], slate_size).values for part in (slice(None), *slices)]
        values.append(reward.expected(torch.stack([torch.from_numpy(drawn), *tops])).numpy())
        if progress is not None:
            progress(start + len(queries))
    chance, best, *within = np.concatenate(values, axis=1)
    static = np.argsort(-total, kind="stable")[:slate_size]
    kept = torch.from_numpy(mean_rewards(dataset.arms[static], dataset.rounds[:horizon]))
    return Rewards(
        mean=float(total.mean() / horizon),
        quantiles=_quantiles(histogram),
        histogram=histogram / histogram.sum(),
        best=best,
        static=reward.expected(kept).numpy(),
        static_arms=tuple(dataset.arm_ids[static].tolist()),
        random=chance,
        best_cluster=np.max(within, axis=0) if within else np.zeros(horizon),
    )


def look_at_offers(
    dataset: ProfileDataset,
    horizon: int,
    slate_size: int,
    labels: NDArray[np.int64],
    progress: Progress | None = None,
) -> Rewards:
    """The same for recorded rounds, in hindsight; static are the offered arms with the highest average payment."""
    if dataset.offers is None:
        raise DataError(f"{dataset.name}: expected recorded offers, got a dataset without")
    rounds = [dataset.offers.of(t) for t in range(horizon)]
    arms, paid = (np.concatenate(column) for column in zip(*rounds, strict=True))
    times = np.bincount(arms, minlength=len(dataset.arms))
    average = np.bincount(arms, paid, minlength=len(dataset.arms)) / np.maximum(times, 1)
    chosen = []
    for t, (offered, rewards) in enumerate(rounds):
        drawn = stream(0, "inspect", t).choice(len(offered), slate_size, replace=False)
        static = np.argsort(-average[offered], kind="stable")[:slate_size]
        inside = _best_cluster(rewards, labels[offered], slate_size)
        best = np.argsort(-rewards, kind="stable")[:slate_size]
        chosen.append([rewards[slate].sum() for slate in (best, static, drawn, inside)])
        if progress is not None:
            progress(t + 1)
    table = np.array(threshold(slate_size).values)
    best, static, chance, within = table[np.array(chosen).astype(np.int64)].T
    histogram = np.histogram(paid, MEAN_BINS, (0.0, 1.0))[0].astype(np.float64)
    return Rewards(
        mean=float(paid.mean()),
        quantiles=_quantiles(histogram),
        histogram=histogram / histogram.sum(),
        best=best,
        static=static,
        static_arms=tuple(dataset.arm_ids[np.argsort(-average, kind="stable")[:slate_size]].tolist()),
        random=chance,
        best_cluster=within,
    )


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
    """μ = tanh(s/4), s = <a, x> / ‖a ⊙ x‖₀, 0 without overlap, for many rounds at once: (T, N).

    The same as the environment's truth round by round; sparse products make whole catalogues cheap.
    """
    from scipy.sparse import csr_matrix

    profiles = csr_matrix(arms.astype(np.float64))
    present = csr_matrix((np.ones_like(profiles.data), profiles.indices, profiles.indptr), shape=profiles.shape)
    overlap = np.maximum(present @ (queries != 0).T.astype(np.float64), 1.0)
    affinity = (profiles @ queries.T.astype(np.float64)) / overlap
    return np.ascontiguousarray(np.tanh(affinity / 4).T)


def regrets_per_thousand(rewards: Rewards) -> dict[str, float]:
    """Expected regret per 1000 rounds of the static slate, a random one, and the best within a cluster."""
    losses = {"static": rewards.static, "random": rewards.random, "best cluster": rewards.best_cluster}
    return {name: 1000 * float((rewards.best - value).mean()) for name, value in losses.items()}


def is_nearly_static(regrets: dict[str, float]) -> bool:
    """Whether one slate, kept throughout, loses next to nothing compared with random slates."""
    return regrets["static"] <= NEARLY_STATIC * regrets["random"]


def _quantiles(histogram: Floats) -> dict[str, float]:
    """Read off the histogram: arms × rounds are too many to keep."""
    reached = np.cumsum(histogram) / histogram.sum()
    edges = np.linspace(0.0, 1.0, len(histogram) + 1)
    bins = [min(int(np.searchsorted(reached, q, side="left" if q else "right")), len(histogram) - 1) for q in QUANTILES]
    names = ("min", "5 %", "25 %", "median", "75 %", "95 %", "max")
    return {name: float((edges[b] + edges[b + 1]) / 2) for name, b in zip(names, bins, strict=True)}
