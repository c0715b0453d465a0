"""Is this problem clustered: clusters of the profiles against the truth or another start, their quality and price."""

import math
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from neuclust.core import Round, Slate
from neuclust.environments.slates import SlateEnvironment
from neuclust.models.encoder import Encoder, encoded
from neuclust.slates.cluster_choice import ClusterReport, choose_clusters
from neuclust.theory.assumptions import ReverseSchwarz, reverse_schwarz
from neuclust.theory.clusters import (
    Alignment,
    alignment,
    bend,
    best_cluster,
    centroids,
    elbow,
    k_means,
    match,
    rand_index,
    silhouette,
)
from neuclust.theory.pivoting import Watch, unwatched

ELBOW = (1, 2, 4, 6, 8, 10, 12, 15, 18, 22, 26, 30)
ELBOW_ARMS = 3000
LOOKED_AT = 40  # rounds


@dataclass(frozen=True, slots=True)
class ClusterNumbers:
    """What the clusters of the arms' profiles are like."""

    report: ClusterReport
    count: int  # as many as were found, or as the policy makes where none were
    asked: int  # as many as the policy makes
    silhouette: float
    elbow: tuple[tuple[int, float], ...]
    bend: int
    rand_index: float
    rand_index_asked: float  # the same with as many clusters as the policy makes
    against: str  # what the Rand index compares with: "the true clusters" or "another start of k-means"
    structural_gap: float  # mean over the rounds looked at
    best_expected: float
    aligned: tuple[Alignment, ...]  # δ and P of the cluster with the best slate, per round
    times: tuple[int, ...]
    reverse: ReverseSchwarz  # the worst over the rounds

    @property
    def clustered(self) -> bool:
        return self.report.clustered


def cluster_numbers(
    environment: SlateEnvironment, encoder: Encoder, asked: int, seed: int = 0, watch: Watch = unwatched
) -> ClusterNumbers:
    """k-means of all profiles with as many clusters as were found, or as the policy's `asked` where none were, looked
    at in up to `LOOKED_AT` evenly spaced rounds."""
    points = environment.profiles.numpy().astype(np.float64)
    watch("clusters", 0, 4)
    report = choose_clusters(environment.profiles, seed=seed)
    watch("clusters", 1, 4)
    asked = max(1, min(asked, len(np.unique(points, axis=0))))
    count = report.count if report.clustered else asked
    labels, _ = k_means(points, count, seed, at=report.centroids.numpy() if report.clustered else None)
    truth, against = reference(environment, points, count, seed)
    agreed = rand_index(labels, truth)
    as_asked = agreed if count == asked else _agreement(environment, points, asked, seed)
    watch("clusters", 2, 4)
    some = points[np.linspace(0, len(points) - 1, min(ELBOW_ARMS, len(points))).astype(np.int64)]
    curve = elbow(some, ELBOW)
    watch("clusters", 3, 4)
    rounds = _rounds(environment, encoder, torch.from_numpy(labels), torch.from_numpy(truth))
    watch("clusters", 4, 4)
    gaps, best, aligned, times, worst = rounds
    return ClusterNumbers(
        report, count, asked, silhouette(points, labels), tuple(curve), bend(curve), agreed, as_asked, against,
        float(np.mean(gaps)) if gaps else math.nan, float(np.mean(best)) if best else math.nan,
        tuple(aligned), tuple(times), worst,
    )  # fmt: skip


def reference(
    environment: SlateEnvironment, points: NDArray[np.float64], count: int, seed: int
) -> tuple[NDArray[np.int64], str]:
    """The true clusters where the problem has some, else k-means from another start."""
    truth = environment.true_labels
    if truth is not None and len(torch.unique(truth)) > 1:
        return truth.numpy().astype(np.int64), "the true clusters"
    return k_means(points, count, seed + 1, starts=1)[0], "another start of k-means"


def _agreement(environment: SlateEnvironment, points: NDArray[np.float64], count: int, seed: int) -> float:
    """The Rand index of k-means with `count` clusters against its own reference."""
    return rand_index(k_means(points, count, seed)[0], reference(environment, points, count, seed)[0])


Looked = tuple[list[float], list[float], list[Alignment], list[int], ReverseSchwarz]


def _rounds(environment: SlateEnvironment, encoder: Encoder, labels: Tensor, truth: Tensor) -> Looked:
    """Structural gaps, best values, δ and P of the best cluster, their rounds, and the worst centroids."""
    gaps, values, aligned, times = list[float](), list[float](), list[Alignment](), list[int]()
    least, reverse, kantorovich, zeros = math.inf, 1.0, 1.0, list[float]()
    for t in np.unique(np.linspace(1, environment.horizon, min(LOOKED_AT, environment.horizon)).astype(int)).tolist():
        round = environment.round(t)
        place = _rows(environment, round)
        mine, theirs = labels[place], truth[place]
        means, best = environment.means(round), environment.best_expected_reward(round)
        if min(int(torch.bincount(each).max()) for each in (mine, theirs)) < round.slate_size:
            continue  # few arms are offered in this round
        worth = partial(_worth, environment, round)
        found, ideal = (best_cluster(each, means, round.slate_size, worth, best) for each in (mine, theirs))
        contexts = encoded(encoder, round.read)[0]
        own, others = centroids(contexts, mine), centroids(contexts, theirs)
        chosen = int((own.names == found.name).nonzero()[0])
        matched = int(match(own.centroids, others.centroids)[chosen])
        target = int((others.names == ideal.name).nonzero()[0])
        aligned.append(alignment(own.centroids[chosen], matched, target, others.centroids))
        gaps.append(found.gap)
        values.append(best)
        times.append(t)
        full = centroids(_whole(encoder, round), mine)
        one = reverse_schwarz(full.centroids)
        least, reverse = min(least, one.least), max(reverse, one.reverse)
        kantorovich = max(kantorovich, one.kantorovich)
        zeros.append(one.zeros)
    share = float(np.mean(zeros)) if zeros else math.nan
    return gaps, values, aligned, times, ReverseSchwarz(least, reverse, kantorovich, share)


def _worth(environment: SlateEnvironment, round: Round, positions: Tensor) -> float:
    zeros = torch.zeros(len(positions), dtype=torch.float64)
    return environment.expected_reward(round, Slate(positions, zeros, zeros, None, None))


def _rows(environment: SlateEnvironment, round: Round) -> Tensor:
    """Rows of the catalogue that a round offers."""
    if len(round.arm_ids) == environment.n_arms and torch.equal(round.arm_ids, environment.arm_ids):
        return torch.arange(environment.n_arms)
    order = torch.argsort(environment.arm_ids)
    return order[torch.searchsorted(environment.arm_ids[order], round.arm_ids)]


def _whole(encoder: Encoder, round: Round) -> Tensor:
    """Encoded contexts with all their columns, zeros too."""
    read = round.read
    return encoder.full(read.contexts[:, read.active], read.active, encoder.scale_of(read))
