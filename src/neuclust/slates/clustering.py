"""Clusters of arms: any scikit-learn style clusterer, and rules for clusters too small for a slate."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from neuclust.configuration import check_entries
from neuclust.core import Round
from neuclust.errors import ConfigError, DataError
from neuclust.kernels import jit
from neuclust.kernels.lloyd import lloyd
from neuclust.kernels.ranking import cluster_table, top_of_clusters, unsound
from neuclust.models.encoder import active_contexts
from neuclust.models.state import check_indices, check_lengths, expect, take_rows
from neuclust.slates.cluster_choice import ClusterReport, choose_clusters

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ClusteringConfig:
    """How arms are grouped.

    `small` says what happens to clusters with fewer than K arms: `merge` into the nearest, `skip`, `fill` from
    the nearest, or `error`. `on` masked clusters z instead of profiles: another, easier algorithm, by name.
    `warm` starts each re-clustering of the online variant from the last centroids. HDBSCAN's noise points
    join the `nearest` cluster or form their `own`. `seed` None takes the policy's seed, so that runs differ in their
    clusters; a number gives every run the same ones.

    `choose` other than fixed takes the number from the data, up to `most`, by that criterion
    (`slates.cluster_choice`) and leaves `count` aside; arms that are not clustered at all form one cluster.
    """

    method: Literal["kmeans", "minibatch", "gaussian-mixture", "agglomerative", "hdbscan"] = "kmeans"
    count: int = 22
    max_iter: int = 300
    n_init: int = 10
    seed: int | None = 0
    small: Literal["merge", "skip", "fill", "error"] = "merge"
    on: Literal["profiles", "masked"] = "profiles"
    warm: bool = True
    noise: Literal["nearest", "own"] = "nearest"
    choose: Literal["fixed", "silhouette", "elbow", "stability", "likelihood"] = "fixed"
    most: int = 30

    def __post_init__(self) -> None:
        check_entries(self)
        if self.seed is not None and not 0 <= self.seed < 2**32:
            raise ConfigError(f"clustering.seed: expected a whole number from 0 to 2**32 - 1 or none, got {self.seed}")
        if self.count < 1 or self.max_iter < 1 or self.n_init < 1:
            raise ConfigError(
                "clustering: expected count, max_iter and n_init of at least 1, got "
                f"{self.count}, {self.max_iter} and {self.n_init}"
            )
        if self.choose != "fixed" and (self.method == "hdbscan" or self.on == "masked" or self.most < 2):
            raise ConfigError(
                f"clustering.choose={self.choose}: expected most of at least 2, clusters on profiles and a method that "
                f"takes a number, got most={self.most}, on={self.on} and method={self.method}; use choose=fixed"
            )

    def seeded(self, seed: int) -> ClusteringConfig:
        """This configuration for a policy of the given seed."""
        return self if self.seed is not None else replace(self, seed=seed % 2**32)


class Clusterer(Protocol):
    """What any clusterer must offer, as scikit-learn's do."""

    def fit_predict(self, X: NDArray[np.float64], y: None = None) -> NDArray[np.int64]: ...


@dataclass(frozen=True, slots=True)
class Clusters:
    """A grouping of arms: label of each, and the centroid of each cluster (C, d)."""

    labels: Tensor
    centroids: Tensor


@dataclass(frozen=True, slots=True)
class Partition:
    """A round's arms in clusters that can all fill a slate.

    `table` (C, largest) lists members, −1 padded; `kept` are the positions that `labels` and `table` count from
    (None: all arms); `small` are the clusters that borrow from their neighbours (rule `fill`).
    """

    labels: Tensor
    table: Tensor
    names: Tensor  # (C,) numbers of the clusters before merging or skipping
    kept: Tensor | None = None
    small: tuple[SmallCluster, ...] = ()
    order: Tensor | None = None  # of the large and then the small clusters, so that numbers ascend

    def members(self) -> list[NDArray[np.int64]]:
        """Positions of every cluster's arms, ascending; for partitions that keep all arms."""
        return [row[row >= 0] for row in self.table.numpy()]

    def cluster_of(self, arms: int) -> Tensor:
        """The number of every arm's cluster, −1 where its cluster is skipped: (n,)."""
        if self.kept is None:
            return self.names[self.labels]
        names = self.names if self.order is None else self.names[torch.argsort(self.order)]
        clusters = torch.full((arms,), -1, dtype=torch.int64, device=self.names.device)
        clusters[self.kept] = names[self.labels]
        for name, cluster in zip(names[len(self.table) :], self.small, strict=True):
            clusters[cluster.members] = name
        return clusters

    def best(self, scores: Tensor, rank: Tensor, k: int) -> Tensor:
        """b_c: the k best positions of every cluster by (−score, rank), best first: (C, k)."""
        if self.kept is None:
            return top_of_clusters(scores, rank, self.labels, self.table, k)
        kept = self.kept
        large = kept[top_of_clusters(scores[kept], rank[kept], self.labels, self.table, k)] if len(kept) else None
        filled = [cluster.filled(scores, rank, k) for cluster in self.small]
        best = torch.cat(filled if large is None else [large, *filled])
        return best if self.order is None else best[self.order]


@dataclass(frozen=True, slots=True)
class SmallCluster:
    """A cluster of fewer than K arms that borrows the best of its neighbours, nearest first."""

    members: Tensor
    neighbours: tuple[Tensor, ...]

    def filled(self, scores: Tensor, rank: Tensor, k: int) -> Tensor:
        """Its own arms and the best of the nearest clusters, (1, k), best first."""
        chosen = self.members
        for others in self.neighbours:
            if len(chosen) == k:
                break
            order = _ordered(others, scores, rank)
            chosen = torch.cat([chosen, order[: k - len(chosen)]])
        return _ordered(chosen, scores, rank).unsqueeze(0)


def _ordered(positions: Tensor, scores: Tensor, rank: Tensor) -> Tensor:
    by_rank = positions[torch.argsort(rank[positions])]
    return by_rank[torch.argsort(scores[by_rank], descending=True, stable=True)]


class ClusterMap:
    """Which cluster an arm belongs to; offline it is settled by the first update, online it follows profiles.

    Offline, all arms of `catalogue` = (arm ids, profiles) are clustered, or those of the first round where there is
    no catalogue; arms that were not there join the nearest centroid. `config` has a seed (`ClusteringConfig.seeded`).
    """

    def __init__(
        self,
        config: ClusteringConfig,
        slate_size: int,
        clusterer: Clusterer | None = None,
        catalogue: tuple[Tensor, Tensor] | None = None,
    ) -> None:
        self.config, self.slate_size, self.clusterer, self.catalogue = config, slate_size, clusterer, catalogue
        self.settled: Clusters | None = None
        self.report: ClusterReport | None = None  # how the number of clusters was chosen, where it was
        self._ids = torch.zeros(0, dtype=torch.int64)  # arms of the settled clusters, ascending
        self._fitted: tuple[Tensor, Tensor, Clusters] | None = None  # profiles last clustered, ids, clusters by id
        self._usable: tuple[Clusters, Partition] | None = None  # the clusters last made usable

    def partition(self, round: Round, refit: bool = False) -> Partition:
        """The round's arms in clusters of at least K; `refit` clusters these profiles anew (online)."""
        if self.config.on == "masked":
            clusters = fit_clusters(active_contexts(round), self.config, self.clusterer)
        elif self.settled is None or refit:
            clusters = _assign(round, *self._fit(round, refit))
        else:
            clusters = _assign(round, self._ids, self.settled)
        made = self._usable  # read once: another thread may look at other clusters
        if made is None or made[0] is not clusters:
            made = self._usable = (clusters, usable(clusters, self.slate_size, self.config.small))
        return made[1]

    def settle(self, round: Round, refit: bool = False) -> None:
        """Keep the clusters this round was played with: for good offline, as the next start online."""
        if self.config.on == "masked" or (self.settled is not None and not refit):
            return
        self._ids, self.settled = self._fit(round, refit)
        self._fitted = None if refit else self._fitted  # the next fit starts from these centroids

    def _fit(self, round: Round, refit: bool) -> tuple[Tensor, Clusters]:
        """Arm ids, ascending, and their clusters; those of the same tensor again are not computed twice."""
        known = self.catalogue if self.catalogue is not None and not refit else (round.arm_ids, round.profiles)
        ids, profiles = known
        fitted = self._fitted  # read once: another thread may look at other profiles
        if fitted is None or fitted[0] is not profiles:
            config, start = self._chosen(profiles)
            if self.settled is not None and self.config.warm:
                start = self.settled.centroids
                if not bool(torch.isfinite(start).all()):
                    raise unsound()
            clusters = fit_clusters(profiles, config, self.clusterer, start)
            if not bool((ids[1:] > ids[:-1]).all()):
                order = torch.argsort(ids, stable=True)
                ids, clusters = ids[order], Clusters(clusters.labels[order], clusters.centroids)
            fitted = self._fitted = (profiles, ids, clusters)
        return fitted[1:]

    def _chosen(self, profiles: Tensor) -> tuple[ClusteringConfig, Tensor | None]:
        """The configuration with the number of clusters these profiles form, and their centroids."""
        if self.config.choose == "fixed" or self.clusterer is not None:
            return self.config, None
        if self.settled is not None:
            return replace(self.config, count=len(self.settled.centroids)), None
        # of these profiles, whatever was looked at before: until the first update nothing is settled
        report = choose_clusters(profiles, self.config.choose, self.config.most, self.config.seed or 0)
        if not report.clustered:
            logger.warning("clustering: %s", report.sentence)
        self.report = report
        return replace(self.config, count=report.count), report.centroids

    def state_dict(self) -> dict[str, Tensor]:
        if self.settled is None:
            return {}
        return {"ids": self._ids, "labels": self.settled.labels, "centroids": self.settled.centroids}

    def load_state_dict(self, state: Mapping[str, Tensor], dim: int | None = None) -> None:
        """`dim`: how many features profiles have, where that is known."""
        settled, ids = None, self._ids
        if any(name in state for name in ("ids", "labels", "centroids")):
            width = tuple(state["centroids"].shape[1:2]) if dim is None and "centroids" in state else (dim or 0,)
            centroids = take_rows(state, "centroids", width)
            ids, labels = take_rows(state, "ids", (), torch.int64), take_rows(state, "labels", (), torch.int64)
            check_lengths(ids=ids, labels=labels)
            check_indices("labels", labels, len(centroids))
            expect(len(ids) > 0 and bool((ids[1:] >= ids[:-1]).all()), "ids in ascending order", "another one")
            settled = Clusters(labels, centroids)
        self._fitted, self._usable, self.report = None, None, None
        self.settled, self._ids = settled, ids


def _assign(round: Round, ids: Tensor, clusters: Clusters) -> Clusters:
    """The round's arms: known ones keep their cluster, others join the nearest centroid; ids (n,) ascend."""
    if torch.equal(round.arm_ids, ids):
        return clusters
    place = torch.searchsorted(ids, round.arm_ids).clamp(max=len(ids) - 1)
    known = ids[place] == round.arm_ids
    labels = clusters.labels[place]
    if not bool(known.all()):
        labels = torch.where(known, labels, nearest(round.profiles, clusters.centroids))
    return Clusters(labels, clusters.centroids)


def fit_clusters(
    data: Tensor, config: ClusteringConfig, clusterer: Clusterer | None = None, start: Tensor | None = None
) -> Clusters:
    """Cluster the rows of data (n, d); empty clusters are dropped, noise points are placed."""
    points = data.numpy(force=True).astype(np.float64, copy=False)
    if clusterer is None and config.method != "hdbscan" and config.count > len(points):
        raise ConfigError(
            f"clustering.count: expected at most as many clusters as arms, got {config.count} clusters for "
            f"{len(points)} arms; lower --clusters"
        )
    if clusterer is None and config.count == 1 and config.method != "hdbscan":
        return Clusters(torch.zeros(len(points), dtype=torch.int64), data.to(torch.float64).mean(0, keepdim=True))
    if start is not None and clusterer is None and config.method == "kmeans" and jit.available:
        found = lloyd(points, start.numpy(force=True), config.max_iter)
        if found is not None and len(start) > 1:
            return Clusters(torch.from_numpy(found[0]), torch.from_numpy(found[1]))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # fewer distinct points than clusters: said below in our own words
        raw = np.asarray((clusterer or _clusterer(config, start)).fit_predict(points)).astype(np.int64)
    clusters = _named(data, raw, config.noise)
    if len(clusters.centroids) == 1:
        raise DataError(
            f"clustering: expected arms that form several clusters, got all {len(points)} in one; their profiles "
            "may be identical. Use --clusters 1, or the policy cn-ucb, which does not cluster"
        )
    return clusters


def _clusterer(config: ClusteringConfig, start: Tensor | None) -> Clusterer:
    from sklearn import cluster, mixture

    warm: dict[str, Any] = {"init": start.numpy(force=True), "n_init": 1} if start is not None else {}
    count = len(start) if start is not None else config.count
    k_means = {"n_clusters": count, "max_iter": config.max_iter, "random_state": config.seed, "n_init": config.n_init}
    if config.method == "kmeans":
        return cluster.KMeans(**(k_means | warm))  # type: ignore[no-any-return]
    if config.method == "minibatch":
        return cluster.MiniBatchKMeans(**(k_means | warm))  # type: ignore[no-any-return]
    if config.method == "gaussian-mixture":
        means = {"means_init": warm["init"]} if warm else {}
        return mixture.GaussianMixture(  # type: ignore[no-any-return]
            count, covariance_type="diag", max_iter=config.max_iter, random_state=config.seed, **means
        )
    if config.method == "agglomerative":
        return cluster.AgglomerativeClustering(config.count)  # type: ignore[no-any-return]
    return cluster.HDBSCAN(min_cluster_size=max(5, config.count), copy=True)  # type: ignore[no-any-return]


def _named(data: Tensor, raw: NDArray[np.int64], noise: str) -> Clusters:
    """Labels 0 … C−1 without gaps, centroids, and a place for points labelled −1."""
    clustered = raw >= 0
    if not clustered.any():
        raise DataError(
            f"clustering: the clusterer called all {len(raw)} arms noise; lower clustering.count (HDBSCAN's smallest "
            "cluster) or use clustering.method=kmeans"
        )
    names, labels = np.unique(raw[clustered], return_inverse=True)
    full = torch.full((len(raw),), len(names), dtype=torch.int64)
    full[torch.from_numpy(clustered)] = torch.from_numpy(labels.astype(np.int64))
    centroids = _centroids(data[torch.from_numpy(clustered)], full[torch.from_numpy(clustered)], len(names))
    if clustered.all():
        return Clusters(full, centroids)
    if noise == "own":
        return Clusters(full, _centroids(data, full, len(names) + 1))
    full[torch.from_numpy(~clustered)] = nearest(data[torch.from_numpy(~clustered)], centroids)
    return Clusters(full, _centroids(data, full, len(names)))


def _centroids(data: Tensor, labels: Tensor, count: int) -> Tensor:
    sums = torch.zeros(count, data.shape[1], dtype=torch.float64).index_add_(0, labels, data.to(torch.float64))
    return sums / torch.bincount(labels, minlength=count).clamp(min=1).unsqueeze(1)


def nearest(points: Tensor, centroids: Tensor) -> Tensor:
    """Index of the nearest centroid of every point, (n,)."""
    half_norms = 0.5 * (centroids * centroids).sum(1)
    return torch.argmin(half_norms - points.to(centroids.dtype) @ centroids.T, 1)


def usable(clusters: Clusters, k: int, rule: str) -> Partition:
    """Apply the rule for clusters with fewer than k of the offered arms."""
    count = len(clusters.centroids)
    sizes = torch.bincount(clusters.labels, minlength=count)
    lacking = (sizes < k) & (sizes > 0)
    if rule == "error" and bool(lacking.any()):
        worst = int(torch.nonzero(lacking)[0])
        raise ConfigError(
            f"clustering: expected every cluster to hold at least K = {k} arms, got {int(sizes[worst])} in cluster "
            f"{worst}; set clustering.small to merge, skip or fill, or lower --clusters"
        )
    if rule == "merge":
        return _partition(_merged(clusters, sizes, k))
    if rule == "skip" and bool(lacking.any()):
        return _skipping(clusters, sizes, k)
    if rule == "fill" and bool(lacking.any()):
        return _filling(clusters, sizes, k)
    return _partition(clusters.labels)


def _partition(labels: Tensor) -> Partition:
    present = torch.bincount(labels) > 0
    names = torch.nonzero(present).flatten()
    compact = labels if bool(present.all()) else (torch.cumsum(present, 0) - 1)[labels]
    return Partition(compact, cluster_table(compact, len(names)), names)


def _merged(clusters: Clusters, sizes: Tensor, k: int) -> Tensor:
    """Merge the smallest cluster below k into the nearest centroid until all hold k."""
    sizes, centroids = sizes.clone(), clusters.centroids.clone()
    target = torch.arange(len(sizes))
    while True:
        alive = torch.nonzero(sizes > 0).flatten()
        smallest = alive[torch.argmin(sizes[alive])]
        if len(alive) == 1 or int(sizes[smallest]) >= k:
            return target[clusters.labels]
        others = alive[alive != smallest]
        into = others[torch.argmin(((centroids[others] - centroids[smallest]) ** 2).sum(1))]
        weights = sizes[torch.stack([into, smallest])].to(torch.float64)
        centroids[into] = (weights[0] * centroids[into] + weights[1] * centroids[smallest]) / weights.sum()
        sizes[into] += sizes[smallest]
        sizes[smallest] = 0
        target[target == smallest] = into


def _skipping(clusters: Clusters, sizes: Tensor, k: int) -> Partition:
    large = sizes >= k
    if not bool(large.any()):  # nothing left: all arms together, the global top K
        return _partition(torch.zeros_like(clusters.labels))
    kept = torch.nonzero(large[clusters.labels]).flatten()
    plain = _partition(clusters.labels[kept])
    return Partition(plain.labels, plain.table, plain.names, kept)


def _filling(clusters: Clusters, sizes: Tensor, k: int) -> Partition:
    members = [torch.nonzero(clusters.labels == c).flatten() for c in range(len(sizes))]
    lacking = [c for c in range(len(sizes)) if 0 < int(sizes[c]) < k]
    filled = []
    for c in lacking:
        distance = ((clusters.centroids - clusters.centroids[c]) ** 2).sum(1)
        order = [int(o) for o in torch.argsort(distance, stable=True) if int(o) != c]
        filled.append(SmallCluster(members[c], tuple(members[o] for o in order if len(members[o]))))
    kept = torch.nonzero((sizes >= k)[clusters.labels]).flatten()
    plain = _partition(clusters.labels[kept]) if len(kept) else None
    table = plain.table if plain else torch.zeros(0, k, dtype=torch.int64)
    labels, names = (plain.labels, plain.names) if plain else (kept, kept)
    ascending = torch.sort(torch.cat([names, torch.tensor(lacking)]))
    return Partition(labels, table, ascending.values, kept, tuple(filled), ascending.indices)
