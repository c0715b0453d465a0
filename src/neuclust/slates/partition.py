"""A round's arms in clusters that can all fill a slate, and the rules for clusters that are too small."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from neuclust.errors import ConfigError
from neuclust.kernels.ranking import cluster_table, sort_positions, top_of_clusters


class Clusters(NamedTuple):
    """A grouping of arms: label of each, and the centroid of each cluster (C, d)."""

    labels: Tensor
    centroids: Tensor


@dataclass(frozen=True, slots=True)
class SmallCluster:
    """A cluster of fewer than K arms that borrows the best of its neighbours, nearest first."""

    members: Tensor
    neighbours: tuple[Tensor, ...]

    def filled(self, scores: Tensor, rank: Tensor, k: int) -> Tensor:
        """Its own arms and the best of the nearest clusters, (1, k), best first."""
        chosen = self.members
        for others in self.neighbours:
            if len(chosen) < k:
                chosen = torch.cat([chosen, _ordered(others, scores, rank)[: k - len(chosen)]])
        return _ordered(chosen, scores, rank).unsqueeze(0)


def _ordered(positions: Tensor, scores: Tensor, rank: Tensor) -> Tensor:
    return positions[sort_positions(scores[positions], rank[positions])]


@dataclass(frozen=True, slots=True)
class Partition:
    """A round's arms in clusters that can all fill a slate.
    `table` (C, largest) lists members, −1 padded; `kept` are the positions that `labels` and `table` count from
    (None: all arms); `small` are the clusters that borrow from their neighbours (rule `fill`)."""

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


def usable(clusters: Clusters, k: int, rule: str) -> Partition:
    """Apply the rule for clusters with fewer than k of the offered arms."""
    count = len(clusters.centroids)
    sizes = torch.bincount(clusters.labels, minlength=count)
    lacking = (sizes < k) & (sizes > 0)
    if rule == "error" and bool(lacking.any()):
        worst = int(torch.nonzero(lacking)[0])
        got = f"got {int(sizes[worst])} in cluster {worst}; set clustering.small to merge, skip or fill"
        raise ConfigError(f"clustering: expected every cluster to hold at least K = {k} arms, {got}")
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
