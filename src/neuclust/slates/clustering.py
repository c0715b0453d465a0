"""Clusters of arms, by any scikit-learn style clusterer, fitted once or anew each round."""

import logging
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, Protocol, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from neuclust.configuration import AT_LEAST_ONE, checked
from neuclust.core import Round
from neuclust.errors import ConfigError, DataError
from neuclust.kernels import jit
from neuclust.kernels.lloyd import lloyd
from neuclust.kernels.ranking import unsound
from neuclust.models.encoder import active_contexts
from neuclust.models.state import check_indices, check_lengths, expect, take_ids, take_rows
from neuclust.slates.cluster_choice import ClusterReport, choose_clusters
from neuclust.slates.partition import Clusters, Partition, usable

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
@checked(count=AT_LEAST_ONE, max_iter=AT_LEAST_ONE, n_init=AT_LEAST_ONE, seed=(0, 2**32 - 1))
class ClusteringConfig:
    """How arms are grouped.

    `small`: clusters with fewer than K arms are merged into the nearest, skipped, filled from the nearest, or an error.
    `on` masked clusters z instead of profiles: another, easier problem. `warm` starts each re-clustering of the online
    variant from the last centroids. HDBSCAN's noise points join the `nearest` cluster or form their `own`. `seed` None
    is the policy's seed. `choose` other than fixed takes the number of clusters, up to `most`, from the data by that
    criterion (`slates.cluster_choice`) instead of `count`; one cluster where arms form none.
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
        if self.choose != "fixed" and (self.method == "hdbscan" or self.on == "masked" or self.most < 2):
            got = f"got most={self.most}, on={self.on} and method={self.method}; use choose=fixed"
            raise ConfigError(f"clustering.choose={self.choose}: needs most >= 2, on=profiles and no hdbscan, {got}")

    def seeded(self, seed: int) -> Self:
        """This configuration for a policy of the given seed."""
        return self if self.seed is not None else replace(self, seed=seed % 2**32)


class Clusterer(Protocol):
    """What any clusterer must offer, as scikit-learn's do."""

    def fit_predict(self, X: NDArray[np.float64], y: None = None) -> NDArray[np.int64]: ...


class ClusterMap:
    """The cluster of every arm: settled by the first update offline, refitted to tracked profiles online.
    Offline, all arms of `catalogue` = (arm ids, profiles), or else of the first round, are clustered; others join the
    nearest centroid. `config` has a seed (`ClusteringConfig.seeded`); `dim` None: not known."""

    def __init__(
        self, config: ClusteringConfig, slate_size: int, clusterer: Clusterer | None = None,
        catalogue: tuple[Tensor, Tensor] | None = None, dim: int | None = None,
    ) -> None:  # fmt: skip
        self.config, self.slate_size, self.clusterer, self.catalogue = config, slate_size, clusterer, catalogue
        self.dim = dim
        self.settled: Clusters | None = None
        self.report: ClusterReport | None = None  # how the number of clusters was chosen, where it was
        self._ids = torch.zeros(0, dtype=torch.int64)  # arms of the settled clusters, ascending
        self._fitted: tuple[Tensor, Tensor, Clusters] | None = None  # profiles last clustered, ids, clusters by id
        self._usable: tuple[Clusters, int, Partition] | None = None  # the clusters last made usable for slates of k

    def partition(self, round: Round, refit: bool = False) -> Partition:
        """The round's arms in clusters of at least k; `refit` clusters these profiles anew (online)."""
        if self.config.on == "masked":
            clusters = fit_clusters(active_contexts(round), self.config, self.clusterer)
        elif self.settled is None or refit:
            clusters = _assign(round, *self._fit(round, refit))
        else:
            clusters = _assign(round, self._ids, self.settled)
        made = self._usable  # read once: another thread may look at other clusters
        if made is None or made[0] is not clusters or made[1] != round.slate_size:
            partition = usable(clusters, round.slate_size, self.config.small)
            made = self._usable = (clusters, round.slate_size, partition)
        return made[2]

    def settle(self, round: Round, refit: bool = False) -> None:
        """Keep the clusters this round was played with: for good offline, as the next start online."""
        if self.config.on == "masked" or (self.settled is not None and not refit):
            return
        self._ids, self.settled = self._fit(round, refit)
        self._fitted = None if refit else self._fitted  # the next fit starts from these centroids

    def _fit(self, round: Round, refit: bool) -> tuple[Tensor, Clusters]:
        """Arm ids, ascending, and their clusters; those of the same tensor again are not computed twice."""
        whole = self.catalogue is not None and not refit
        ids, profiles = self.catalogue if whole and self.catalogue else (round.arm_ids, round.profiles)
        if profiles.shape[1] != round.profiles.shape[1]:
            got = f"{profiles.shape[1]} and {round.profiles.shape[1]}"
            raise DataError(f"catalogue: expected profiles of as many columns as the rounds have, got {got}")
        fitted = self._fitted  # read once: another thread may look at other profiles
        if fitted is None or fitted[0] is not profiles:
            config, start = self._chosen(profiles)
            if self.settled is not None and self.config.warm:
                start = self.settled.centroids
                if not bool(torch.isfinite(start).all()):
                    raise unsound()
            if refit and config.count > len(profiles):  # arms come and go: a round may offer few
                config, start = replace(config, count=len(profiles)), None
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

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        settled, ids = None, self._ids
        if any(name in state for name in ("ids", "labels", "centroids")):
            unknown = self.dim is None and "centroids" in state
            width = tuple(state["centroids"].shape[1:2]) if unknown else (self.dim or 0,)
            centroids = take_rows(state, "centroids", width)
            ids, labels = take_ids(state, "ids"), take_ids(state, "labels")
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
        got = f"got {config.count} clusters for {len(points)} arms; lower clustering.count"
        raise ConfigError(f"clustering.count: expected at most as many clusters as arms, {got}")
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
        got = f"got all {len(points)} in one; their profiles may be identical: use clustering.count=1 or cn-ucb"
        raise DataError(f"clustering: expected arms that form several clusters, {got}")
    return clusters


def _clusterer(config: ClusteringConfig, start: Tensor | None) -> Clusterer:
    from sklearn import cluster, mixture

    count, first = (config.count, None) if start is None else (len(start), start.numpy(force=True))
    shared: dict[str, Any] = {"max_iter": config.max_iter, "random_state": config.seed}
    k_means = shared | ({"n_init": config.n_init} if first is None else {"init": first, "n_init": 1})
    makers: dict[str, Callable[[], Clusterer]] = {
        "kmeans": lambda: cluster.KMeans(count, **k_means),
        "minibatch": lambda: cluster.MiniBatchKMeans(count, **k_means),
        "gaussian-mixture": lambda: mixture.GaussianMixture(count, covariance_type="diag", means_init=first, **shared),
        "agglomerative": lambda: cluster.AgglomerativeClustering(config.count),
        "hdbscan": lambda: cluster.HDBSCAN(min_cluster_size=max(5, config.count), copy=True),
    }
    return makers[config.method]()


def _named(data: Tensor, raw: NDArray[np.int64], noise: str) -> Clusters:
    """Labels 0 … C−1 without gaps, centroids, and a place for points labelled −1."""
    clustered = raw >= 0
    if not clustered.any():
        advice = "lower clustering.count (HDBSCAN's smallest cluster) or use clustering.method=kmeans"
        raise DataError(f"clustering: the clusterer called all {len(raw)} arms noise; {advice}")
    names, labels = np.unique(raw[clustered], return_inverse=True)
    full, known = torch.full((len(raw),), len(names), dtype=torch.int64), torch.from_numpy(clustered)
    full[known] = torch.from_numpy(labels.astype(np.int64))
    centroids = _centroids(data[known], full[known], len(names))
    if clustered.all():
        return Clusters(full, centroids)
    if noise == "own":
        return Clusters(full, _centroids(data, full, len(names) + 1))
    full[~known] = nearest(data[~known], centroids)
    return Clusters(full, _centroids(data, full, len(names)))


def _centroids(data: Tensor, labels: Tensor, count: int) -> Tensor:
    sums = torch.zeros(count, data.shape[1], dtype=torch.float64).index_add_(0, labels, data.to(torch.float64))
    return sums / torch.bincount(labels, minlength=count).clamp(min=1).unsqueeze(1)


def nearest(points: Tensor, centroids: Tensor) -> Tensor:
    """Index of the nearest centroid of every point, (n,)."""
    half_norms = 0.5 * (centroids * centroids).sum(1)
    return torch.argmin(half_norms - points.to(centroids.dtype) @ centroids.T, 1)
