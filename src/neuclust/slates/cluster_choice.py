"""How many clusters the arms form, by which criterion, and whether they form any at all.

Clusterings are cuts of one Ward tree, refined by Lloyd's iterations. There are clusters where the silhouette rises
further above that of samples without clusters (one Gaussian with the same covariance, and a uniform box along the same
axes) than any of those samples rises above the others, and where halves of the sample give the same clusters.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from neuclust.kernels.jit import available
from neuclust.kernels.lloyd import lloyd
from neuclust.randomness import stream

Points = NDArray[np.float64]  # (n, d)
Labels = NDArray[np.int64]  # (n,)

SAMPLE = 1500  # arms looked at
HALVES = 4  # times the sample is split in two to see whether clusters come back
REFERENCES = 10  # samples without clusters, of each kind
COARSE = (2, 3, 4, 5, 7, 10, 14, 20, 28, 40, 56)  # numbers of clusters tried on them
LEAST_RISE = 0.02  # a silhouette nearer to the reference than this is none
SPREADS = 3.0  # how many standard deviations beyond the references' own largest rise
LEAST_STABILITY = 0.6  # clusters that come back no better than this are cuts through one cloud
AS_STABLE = 0.002  # numbers this close to the most stable one are as stable
CRITERIA = ("silhouette", "elbow", "stability", "likelihood")


@dataclass(frozen=True, slots=True)
class CountRow:
    """One number of clusters: within sum of squares, silhouette, the references' silhouette, ARI of halves, held-out
    log-density per arm under one common variance (k-means' model) and under one variance per cluster and feature."""

    count: int
    squares: float
    silhouette: float
    reference: float
    stability: float
    spherical: float
    diagonal: float

    @property
    def likelihood(self) -> float:
        return max(self.spherical, self.diagonal)


@dataclass(frozen=True, slots=True)
class ClusterReport:
    """What was looked at and found. `count` is 1 where the arms are not clustered."""

    criterion: str
    arms: int
    looked_at: int
    rows: tuple[CountRow, ...]
    chosen: dict[str, int]  # by criterion
    rise: float  # of the silhouette above the references
    needed: float  # what a sample without clusters may reach
    stability: float  # how well halves agree at the number with the best silhouette
    clustered: bool
    method: str  # whose model predicts held-out arms better at that number: kmeans or gaussian-mixture
    centroids: Tensor = field(repr=False, compare=False)  # (count, d)

    @property
    def count(self) -> int:
        return self.chosen[self.criterion] if self.clustered else 1

    @property
    def sentence(self) -> str:
        """The verdict in words."""
        found = f"silhouette {self.rise:+.3f} above that of data without clusters, which reaches {self.needed:+.3f}"
        halves = f"halves agree to {self.stability:.2f}"
        if self.clustered:
            return f"{self.count} clusters by {self.criterion} ({found}; {halves})"
        return f"the {self.arms:,} arms form no clusters ({found}; {halves}): one cluster is used"


def choose_clusters(data: Tensor, criterion: str = "stability", most: int = 30, seed: int = 0) -> ClusterReport:
    """Look at 1 to `most` clusters of the rows of data (n, d)."""
    points = data.numpy(force=True).astype(np.float64)
    sample = sampled(points, seed)
    most = most_counted(sample, most)
    looked = _Looked(sample)
    references = _references(sample, most, seed)
    rows = _rows(looked, references, most, seed)
    chosen = {name: _CHOICES[name](rows) for name in CRITERIA}
    rise, needed = separation(looked, references)
    row, steady = (rows[chosen[name] - 1] for name in (criterion, "silhouette"))  # the verdict is one for all criteria
    clustered = rise > needed and row.count > 1 and steady.stability >= LEAST_STABILITY
    centroids = looked.fit(row.count if clustered else 1)[1]
    return ClusterReport(
        criterion, len(points), len(sample), rows, chosen, rise, needed, steady.stability, clustered,
        "gaussian-mixture" if row.diagonal > row.spherical else "kmeans", torch.from_numpy(centroids),
    )  # fmt: skip


def separated_clusters(data: Tensor, most: int = 30, seed: int = 0) -> Tensor | None:
    """The centroids (C, d) that `choose_clusters` finds by the silhouette, None where it finds none.
    Halves are looked at for one number of clusters alone, and references only where halves agree."""
    points = data.numpy(force=True).astype(np.float64)
    looked = _Looked(sampled(points, seed))
    counts = range(2, most_counted(looked.points, most) + 1)
    if not counts:
        return None
    count = max(counts, key=looked.silhouette)
    agreements = [_Split(looked.points, seed, i).agreement(count) for i in range(HALVES)]
    if float(np.mean(agreements)) < LEAST_STABILITY:
        return None
    rise, needed = separation(looked, _references(looked.points, counts[-1], seed))
    return torch.from_numpy(looked.fit(count)[1]) if rise > needed else None


def sampled(points: Points, seed: int) -> Points:
    """At most `SAMPLE` of the points, in their order."""
    if len(points) <= SAMPLE:
        return points
    return points[np.sort(stream(seed, "cluster choice").choice(len(points), SAMPLE, replace=False))]


def most_counted(points: Points, most: int) -> int:
    """The largest number of clusters that is looked at."""
    return max(1, min(most, len(np.unique(points, axis=0)) - 1, len(points) // 2))


def responsibilities(
    points: Tensor, centroids: Tensor, *, labels: Tensor | None = None, scale: float | None = None
) -> Tensor:
    """Soft membership p_ic ∝ exp(−‖x_i − c‖² / 2s²), rows sum to 1: (n, C).

    s² is `scale`², or the mean squared distance of an arm to its own centroid per feature (`labels`; else the nearest).
    """
    squares = torch.cdist(points.to(centroids.dtype), centroids) ** 2
    if scale is None:
        own = squares.amin(1) if labels is None else squares.gather(1, labels.unsqueeze(1)).squeeze(1)
        variance = float(own.mean()) / points.shape[1]
    else:
        variance = scale**2
    if variance == 0:  # every arm is its centroid
        return torch.nn.functional.one_hot(squares.argmin(1), len(centroids)).to(centroids.dtype)
    return torch.softmax(-squares / (2 * variance), 1)


@dataclass(frozen=True, slots=True)
class _References:
    """Silhouettes of samples without clusters: one matrix (samples, counts) per kind."""

    counts: tuple[int, ...]
    curves: tuple[Points, ...]

    def at(self, count: int) -> float:
        """The mean silhouette of the kind that reaches higher, between the counts tried by a straight line."""
        if count < 2 or not self.counts:
            return 0.0
        return max(float(np.interp(count, self.counts, curves.mean(0))) for curves in self.curves)


class _Looked:
    """One sample with its Ward tree; every number of clusters is computed once."""

    def __init__(self, points: Points) -> None:
        self.points = points
        self._fits: dict[int, tuple[Labels, Points]] = {}

    @cached_property
    def _tree(self) -> Points:
        from scipy.cluster.hierarchy import linkage

        tree: Points = linkage(self.points, "ward")
        return tree

    @cached_property
    def _distances(self) -> Points:
        from scipy.spatial.distance import pdist, squareform

        distances: Points = squareform(pdist(self.points))
        return distances

    def fit(self, count: int) -> tuple[Labels, Points]:
        """Labels (n,) and centroids (count, d): the tree's cut, refined by Lloyd's iterations."""
        if count not in self._fits:
            self._fits[count] = self._refined(count)
        return self._fits[count]

    def _refined(self, count: int) -> tuple[Labels, Points]:
        from scipy.cluster.hierarchy import fcluster

        if count == 1:
            return np.zeros(len(self.points), dtype=np.int64), self.points.mean(0, keepdims=True)
        cut = np.unique(fcluster(self._tree, count, "maxclust"), return_inverse=True)[1]
        start = _one_hot(cut).T @ self.points / np.bincount(cut)[:, None]
        found = lloyd(self.points, start, 100) if available else None
        if found is not None:
            return found[0], found[1]
        from sklearn.cluster import KMeans  # where a cluster came out empty

        fitted = KMeans(len(start), init=start, n_init=1, max_iter=100).fit(self.points)
        return fitted.labels_.astype(np.int64), fitted.cluster_centers_

    def squares(self, count: int) -> float:
        labels, centroids = self.fit(count)
        return float(((self.points - centroids[labels]) ** 2).sum())

    def silhouette(self, count: int) -> float:
        """Mean of (b − a)/max(a, b): a to the own cluster, b to the nearest other; 0 for one cluster."""
        labels = self.fit(count)[0]
        members = _one_hot(labels)
        sizes = members.sum(0)
        if len(sizes) < 2:
            return 0.0
        sums = self._distances @ members
        own = members.astype(bool)
        inner = sums[own] / np.maximum(sizes[labels] - 1, 1)
        outer = np.where(own, np.inf, sums / sizes).min(1)
        largest = np.maximum(inner, outer)
        scores = np.where((sizes[labels] > 1) & (largest > 0), (outer - inner) / np.where(largest > 0, largest, 1), 0)
        return float(scores.mean())


def separation(looked: _Looked, references: _References) -> tuple[float, float]:
    """max_k (s_k − m_k) against the kind of reference it beats least, and what that kind may reach by chance.
    m_k is the mean silhouette of the references; their own rises are above the mean of the others."""
    if not references.counts:
        return 0.0, LEAST_RISE
    found = np.array([looked.silhouette(count) for count in references.counts])
    sides = []
    for curves in references.curves:
        others = (curves.sum(0) - curves) / (len(curves) - 1)
        null = (curves - others).max(1)
        needed = max(LEAST_RISE, float(null.max() + SPREADS * null.std()))
        sides.append((float((found - curves.mean(0)).max()), needed))
    return min(sides, key=lambda side: side[0] - side[1])


def _rows(looked: _Looked, references: _References, most: int, seed: int) -> tuple[CountRow, ...]:
    splits = [_Split(looked.points, seed, i) for i in range(HALVES)]

    def row(count: int) -> CountRow:
        halves = [(s.agreement(count), s.density(count, "spherical"), s.density(count, "diagonal")) for s in splits]
        own = looked.squares(count), looked.silhouette(count), references.at(count)
        return CountRow(count, *own, *(float(np.mean(column)) for column in zip(*halves, strict=True)))

    return tuple(row(count) for count in range(1, most + 1))


class _Split:
    """The sample in two halves, each clustered by itself."""

    def __init__(self, points: Points, seed: int, index: int) -> None:
        order = stream(seed, "cluster halves", index).permutation(len(points))
        middle = len(points) // 2
        self.points, self.held_out = points, points[order[middle:]]
        self.left, self.right = _Looked(points[order[:middle]]), _Looked(points[order[middle:]])

    def agreement(self, count: int) -> float:
        """The adjusted Rand index of all points as either half's centroids would label them."""
        from sklearn.metrics import adjusted_rand_score

        centroids = [half.fit(count)[1] for half in (self.left, self.right)]
        labels = [np.argmin(0.5 * (found**2).sum(1) - self.points @ found.T, 1) for found in centroids]  # the nearest
        return float(adjusted_rand_score(*labels))

    def density(self, count: int, kind: str) -> float:
        """Mean log-density of the right half under the mixture that the left half's clusters make."""
        labels, centroids = self.left.fit(count)
        members = _one_hot(labels)
        sizes = members.sum(0)
        inner = (self.left.points - centroids[labels]) ** 2
        floor = 1e-4 * float(self.left.points.var()) + 1e-12
        pooled = float(inner.mean()) * len(inner) / max(1, len(inner) - len(sizes))
        variances = np.full_like(centroids, pooled)
        if kind == "diagonal":  # few arms say little of their spread: one arm's worth of the pooled one joins them
            variances = (members.T @ inner + pooled) / sizes[:, None]
        return _log_density(self.held_out, centroids, np.maximum(variances, floor), sizes / sizes.sum())


def _log_density(points: Points, means: Points, variances: Points, weights: Points) -> float:
    from scipy.special import logsumexp

    scaled = (points**2) @ (1 / variances).T - 2 * points @ (means / variances).T + (means**2 / variances).sum(1)
    logs = np.log(weights) - 0.5 * (np.log(2 * np.pi * variances).sum(1) + scaled)
    return float(logsumexp(logs, axis=1).mean())


def _references(points: Points, most: int, seed: int) -> _References:
    """Silhouettes of samples of the same size that have no clusters."""
    counts = tuple(count for count in COARSE if count <= most)

    def curve(kind: Callable[..., Points], index: int) -> list[float]:
        looked = _Looked(kind(points, stream(seed, f"cluster reference {kind.__name__}", index)))
        return [looked.silhouette(count) for count in counts]

    curves = (np.array([curve(kind, index) for index in range(REFERENCES)]) for kind in (_gaussian, _box))
    return _References(counts, tuple(curves))


def _gaussian(points: Points, generator: np.random.Generator) -> Points:
    """One Gaussian with the points' mean and covariance."""
    return _along_axes(points, generator.standard_normal(points.shape))


def _box(points: Points, generator: np.random.Generator) -> Points:
    """Uniform in a box along the points' principal axes, with their variance along each."""
    return _along_axes(points, generator.uniform(-np.sqrt(3), np.sqrt(3), points.shape))


def _along_axes(points: Points, drawn: Points) -> Points:
    """Independent draws of variance 1 (n, d), given the points' mean and covariance."""
    _, scales, axes = np.linalg.svd(points - points.mean(0), full_matrices=False)
    return np.asarray(points.mean(0) + drawn[:, : len(scales)] * scales / np.sqrt(len(points)) @ axes)


def _by_elbow(rows: Sequence[CountRow]) -> int:
    """The sharpest bend of log W_k: the largest ratio of the fall to k to the fall beyond it.
    A tenth of the mean fall joins both, so that the ratio of two small falls says nothing."""
    logs = np.log(np.maximum([row.squares for row in rows], 1e-12 * max(rows[0].squares, 1e-300)))
    if len(logs) < 3:
        return rows[-1].count
    falls = np.maximum(-np.diff(logs), 0)
    falls = falls + 0.1 * falls.mean() + 1e-12
    return rows[1 + int(np.argmax(falls[:-1] / falls[1:]))].count


def _by_stability(rows: Sequence[CountRow]) -> int:
    """The largest number whose clusters come back as well as any."""
    several = rows[1:] or rows
    best = max(row.stability for row in several)
    return max(row.count for row in several if row.stability >= best - AS_STABLE)


_CHOICES: dict[str, Callable[[Sequence[CountRow]], int]] = {
    "silhouette": lambda rows: max(rows[1:] or rows, key=lambda row: row.silhouette).count,
    "elbow": _by_elbow,
    "stability": _by_stability,
    "likelihood": lambda rows: max(rows, key=lambda row: row.likelihood).count,
}


def _one_hot(labels: Labels) -> Points:
    return np.eye(int(labels.max()) + 1)[labels]
