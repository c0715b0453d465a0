"""The best slate inside one cluster, from the true means: what NeUClust could reach if it knew everything."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from neuclust.configuration import check_entries
from neuclust.core import Feedback, Round, Slate, check_round, known_arms
from neuclust.models.state import take_whole
from neuclust.persistence import save_policy
from neuclust.policies.wiring import check_update
from neuclust.slates.clustering import Clusterer, ClusteringConfig, ClusterMap
from neuclust.slates.ties import tie_rank


@dataclass(frozen=True, slots=True)
class ClusterOracleConfig:
    clustering: ClusteringConfig = field(default_factory=ClusteringConfig)

    def __post_init__(self) -> None:
        check_entries(self)


@dataclass(frozen=True, slots=True)
class KnownTruth:
    """`means` gives the true means of a round, `value` the expected reward u(S) of a slate.

    `clusterer` and `catalogue` are as for NeUClust.
    """

    means: Callable[[Round], Tensor]
    value: Callable[[Round, Slate], float]
    clusterer: Clusterer | None = None
    catalogue: tuple[Tensor, Tensor] | None = None


class ClusterOracle:
    """S_t = argmax_c u(b_c), b_c the K arms of cluster c with the largest true means.

    `truth` are entries of `KnownTruth`: `means=`, `value=`, `clusterer=` and `catalogue=`. Clusters are NeUClust's.
    """

    name = "cluster-oracle"
    save = save_policy

    def __init__(self, config: ClusterOracleConfig, dim: int, slate_size: int, seed: int = 0, **truth: Any) -> None:
        self.config, self.dim, self.slate_size, self.seed = config, dim, slate_size, seed
        self._truth = KnownTruth(**truth)
        catalogue = known_arms(self._truth.catalogue, dim, "catalogue")
        self.clusters = ClusterMap(config.clustering.seeded(seed), slate_size, self._truth.clusterer, catalogue, dim)

    def select(self, round: Round) -> Slate:
        check_round(round, self.dim, self.slate_size)
        partition, means = self.clusters.partition(round), self._truth.means(round)
        best = partition.best(means, tie_rank(round, "id", self.seed), self.slate_size)  # b_c, (C, K)
        slates = [
            Slate(positions, means[positions], torch.zeros_like(means[positions]), cluster=int(name))
            for positions, name in zip(best, partition.names, strict=True)
        ]
        return max(slates, key=lambda slate: self._truth.value(round, slate))  # the first among equals

    def update(self, round: Round, slate: Slate, feedback: Feedback) -> None:
        check_update(self, round, slate, feedback)
        self.clusters.partition(round)  # what cannot be clustered is refused before anything changes
        self.clusters.settle(round)

    def state_dict(self) -> dict[str, Tensor]:
        return {"seed": torch.tensor(self.seed), **self.clusters.state_dict()}

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        self.seed = take_whole(state, "seed")
        self.clusters.load_state_dict(state)
