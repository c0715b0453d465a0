"""Clusters against other clusters: centroids, Hungarian matching, δ_t and P_t, the structural gap, their quality."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from neuclust.errors import DataError
from neuclust.randomness import stream

Labels = NDArray[np.int64]
SlateValue = Callable[[Tensor], float]  # u of the arms at these positions (K,)
JUDGED = 2000  # arms that a silhouette is computed of


@dataclass(frozen=True, slots=True)
class Grouping:
    """Centroids (C, d) of the clusters that hold arms, and their names (C,), ascending."""

    names: Tensor
    centroids: Tensor


def centroids(contexts: Tensor, labels: Tensor) -> Grouping:
    """x̄_c of every cluster that has a member, for contexts (n, d) with labels (n,); labels below 0 do not count."""
    kept = labels >= 0
    names, place = torch.unique(labels[kept], return_inverse=True)
    sums = torch.zeros(len(names), contexts.shape[1], dtype=torch.float64)
    sums.index_add_(0, place, contexts[kept].to(torch.float64))
    sizes = torch.bincount(place, minlength=len(names)).to(torch.float64)
    return Grouping(names, sums / sizes[:, None])


def match(found: Tensor, reference: Tensor) -> NDArray[np.int64]:
    """For every found centroid (A, d) the reference centroid (B, d) it is assigned to by the smallest sum of distances
    (the Hungarian method), −1 where there are fewer references: (A,)."""
    from scipy.optimize import linear_sum_assignment

    rows, columns = linear_sum_assignment(torch.cdist(found, reference).numpy())
    assigned = np.full(len(found), -1, dtype=np.int64)
    assigned[rows] = columns
    return assigned


@dataclass(frozen=True, slots=True)
class Alignment:
    """One round: δ_t, the largest inner product of the played cluster's centroid with that of another cluster than its
    own, and P_t, that with the best cluster's; as they are and as cosines."""

    others: float
    best: float
    others_cosine: float
    best_cosine: float


def alignment(played: Tensor, own: int, best: int, reference: Tensor) -> Alignment:
    """δ_t and P_t of a played centroid (d,), matched to `own` of the references (C, d), where `best` is best."""
    products = reference @ played
    lengths = torch.linalg.vector_norm(reference, dim=1) * torch.linalg.vector_norm(played)
    cosines = products / lengths.clamp(min=torch.finfo(products.dtype).tiny)
    rest = torch.arange(len(reference)) != own
    if not bool(rest.any()):  # a single cluster has no other
        return Alignment(0.0, float(products[best]), 0.0, float(cosines[best]))
    return Alignment(
        float(products[rest].max()), float(products[best]), float(cosines[rest].max()), float(cosines[best])
    )


@dataclass(frozen=True, slots=True)
class BestCluster:
    """The cluster whose best K arms are worth the most, what they are worth, and what the best slate is worth."""

    name: int
    value: float
    best: float

    @property
    def gap(self) -> float:
        """The structural gap: what no slate inside one cluster can earn."""
        return self.best - self.value


def best_cluster(labels: Tensor, means: Tensor, slate_size: int, value: SlateValue, best: float) -> BestCluster:
    """argmax_c u(top K by μ of c) among the clusters that hold K arms."""
    order = torch.argsort(means, descending=True, stable=True)
    sorted_labels = labels[order]
    found = BestCluster(-1, -math.inf, best)
    for name in torch.unique(labels).tolist():
        members = order[sorted_labels == name][:slate_size]
        if name >= 0 and len(members) == slate_size:
            worth = value(members)
            found = BestCluster(int(name), worth, best) if worth > found.value else found
    if found.name < 0:
        raise DataError(f"expected a cluster that holds {slate_size} arms, got none; ask for fewer clusters")
    return found


def rand_index(first: Labels, second: Labels) -> float:
    """The adjusted Rand index: 1 for equal partitions, 0 on average for unrelated ones."""
    from sklearn.metrics import adjusted_rand_score

    return float(adjusted_rand_score(first, second))


def silhouette(points: NDArray[np.float64], labels: Labels) -> float:
    """The mean silhouette of at most `JUDGED` points; NaN where there is one cluster or one point in each."""
    from sklearn.metrics import silhouette_score

    some = stream(0, "silhouette").permutation(len(points))[:JUDGED]
    count = len(np.unique(labels[some]))
    return float(silhouette_score(points[some], labels[some])) if 1 < count < len(some) else math.nan


def k_means(
    points: NDArray[np.float64], count: int, seed: int = 0, starts: int = 3, at: NDArray[np.float64] | None = None
) -> tuple[Labels, float]:
    """Labels (n,) and the within-cluster sum of squares, from drawn centroids or from those given (count, d)."""
    from sklearn.cluster import KMeans

    first, starts = ("k-means++", starts) if at is None else (at, 1)
    fitted = KMeans(count, init=first, n_init=starts, max_iter=300, random_state=seed).fit(points)
    return fitted.labels_.astype(np.int64), float(fitted.inertia_)


def elbow(points: NDArray[np.float64], counts: Sequence[int]) -> list[tuple[int, float]]:
    """(number of clusters, within-cluster sum of squares)."""
    distinct = len(np.unique(points, axis=0))
    return [(count, k_means(points, count, starts=1)[1]) for count in counts if count <= distinct]


def bend(curve: Sequence[tuple[int, float]]) -> int:
    """The number at which the curve lies furthest below the line between its ends (the elbow)."""
    counts = np.array([count for count, _ in curve], dtype=np.float64)
    squares = np.array([value for _, value in curve], dtype=np.float64)
    if len(counts) < 3 or squares[0] <= squares[-1]:
        return int(counts[0])
    across = (counts - counts[0]) / (counts[-1] - counts[0])
    down = (squares[0] - squares) / (squares[0] - squares[-1])
    return int(counts[int(np.argmax(down - across))])
