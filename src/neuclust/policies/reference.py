"""Reference policies: uniform at random, and those given the true means, with or without NeUClust's clusters."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from neuclust.configuration import checked
from neuclust.core import Design, Feedback, Round, Slate, check_round, known_arms
from neuclust.errors import StateError
from neuclust.models.history import found_among
from neuclust.models.state import check_lengths, expect, load_saved_state, saved_state, take_ids, take_rows, take_whole
from neuclust.persistence import save_policy
from neuclust.policies.wiring import check_update
from neuclust.randomness import stream
from neuclust.slates.clustering import Clusterer, ClusteringConfig, ClusterMap
from neuclust.slates.propensities import uniform_slate
from neuclust.slates.rules import keeps_rules, within_rules
from neuclust.slates.ties import ones, tie_rank, top_slate

Averages = tuple[Tensor, Tensor]  # arm ids (N,), average means (N,)


@dataclass(frozen=True, slots=True)
class ReferenceConfig:
    """Nothing to configure."""


class Uniform:
    """k of n arms, slot by slot evenly from those allowed: every slate is equally likely where there are no rules."""

    name = "uniform"
    save = save_policy
    saved = ("seed",)

    def __init__(self, config: ReferenceConfig, dim: int, slate_size: int, seed: int = 0) -> None:
        self.config, self.dim, self.slate_size, self.seed = config, dim, slate_size, seed

    def select(self, round: Round) -> Slate:
        check_round(round, self.dim, self.slate_size)
        drawn = uniform_slate(round, stream(self.seed, "uniform", round.key))
        zeros = torch.zeros(len(drawn.positions), dtype=torch.float64)
        return Slate(drawn.positions, zeros, zeros, drawn.propensities, design=Design("uniform"))

    update, state_dict, load_state_dict = check_update, saved_state, load_saved_state  # nothing is learned


class Oracle:
    """The K arms with the largest true means: the optimum for any symmetric, monotone slate reward."""

    name = "oracle"
    save = save_policy
    saved = ("seed",)

    def __init__(
        self, config: ReferenceConfig, dim: int, slate_size: int, seed: int = 0, *, means: Callable[[Round], Tensor]
    ) -> None:
        self.config, self.dim, self.slate_size, self.seed = config, dim, slate_size, seed
        self._means = means

    def select(self, round: Round) -> Slate:
        means = self.scores(round)

        def best(some: Round) -> Slate:
            own = means if some is round else means[found_among(round.arm_ids, some.arm_ids)[1]]
            return top_slate(own, torch.zeros_like(own), tie_rank(some, "id", self.seed), some.slate_size)

        return within_rules(round, best)

    def scores(self, round: Round) -> Tensor:
        """The true mean of every arm, (n,)."""
        check_round(round, self.dim, self.slate_size)
        return self._means(round)

    update, state_dict, load_state_dict = check_update, saved_state, load_saved_state  # nothing is learned


class Static:
    """The K offered arms with the largest average true mean: one slate for all rounds that offer every arm.
    `averages` = (arm ids (N,), average means (N,)). Arms that are not among them count as 0."""

    name = "static"
    save = save_policy
    saved = ("seed", "ids", "averages")

    def __init__(
        self, config: ReferenceConfig, dim: int, slate_size: int, seed: int = 0, *, averages: Averages | None = None
    ) -> None:
        self.config, self.dim, self.slate_size, self.seed = config, dim, slate_size, seed
        self.ids, self.averages = torch.zeros(0, dtype=torch.int64), torch.zeros(0, dtype=torch.float64)
        if averages is not None:
            order = torch.argsort(averages[0])
            self.ids, self.averages = averages[0][order], averages[1][order]

    @keeps_rules
    def select(self, round: Round) -> Slate:
        averages = self.scores(round)
        return top_slate(averages, torch.zeros_like(averages), tie_rank(round, "id", self.seed), round.slate_size)

    def scores(self, round: Round) -> Tensor:
        """The average true mean of every arm, (n,)."""
        check_round(round, self.dim, self.slate_size)
        if len(self.ids) == 0:
            raise StateError("static: expected the arms' average means, got none; pass averages= or load a save")
        place = torch.searchsorted(self.ids, round.arm_ids).clamp(max=len(self.ids) - 1)
        return torch.where(self.ids[place] == round.arm_ids, self.averages[place], 0.0)

    update, state_dict = check_update, saved_state

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        ids, averages = take_ids(state, "ids"), take_rows(state, "averages", ())
        check_lengths(ids=ids, averages=averages)
        expect(bool((ids[1:] >= ids[:-1]).all()), "ids in ascending order", "another one")
        self.seed, self.ids, self.averages = take_whole(state, "seed"), ids, averages


@dataclass(frozen=True, slots=True)
@checked()
class ClusterOracleConfig:
    clustering: ClusteringConfig = field(default_factory=ClusteringConfig)


@dataclass(frozen=True, slots=True)
class KnownTruth:
    """True means of a round, expected reward u(S) of a slate; `clusterer` and `catalogue` are as for NeUClust."""

    means: Callable[[Round], Tensor]
    value: Callable[[Round, Slate], float]
    clusterer: Clusterer | None = None
    catalogue: tuple[Tensor, Tensor] | None = None


class ClusterOracle:
    """S_t = argmax_c u(b_c), b_c the K arms of cluster c with the largest true means; `truth`: see `KnownTruth`."""

    name = "cluster-oracle"
    save = save_policy

    def __init__(self, config: ClusterOracleConfig, dim: int, slate_size: int, seed: int = 0, **truth: Any) -> None:
        self.config, self.dim, self.slate_size, self.seed = config, dim, slate_size, seed
        self._truth = KnownTruth(**truth)
        catalogue = known_arms(self._truth.catalogue, None, "catalogue")
        self.clusters = ClusterMap(config.clustering.seeded(seed), slate_size, self._truth.clusterer, catalogue, dim)

    def select(self, round: Round) -> Slate:
        check_round(round, self.dim, self.slate_size)
        means = self._truth.means(round)

        def best(some: Round) -> Slate:
            if some is round:
                return self._best(some, means, lambda slate: self._truth.value(round, slate))
            own = means[found_among(round.arm_ids, some.arm_ids)[1]]  # a part of a slate has no value of its own
            return self._best(some, own, lambda slate: float(slate.means.sum()))

        return within_rules(round, best)

    def _best(self, round: Round, means: Tensor, value: Callable[[Slate], float]) -> Slate:
        partition, k = self.clusters.partition(round), round.slate_size
        best = partition.best(means, tie_rank(round, "id", self.seed), k)  # b_c, (C, k)
        slates = [
            Slate(positions, means[positions], torch.zeros(k, dtype=torch.float64), ones(k), cluster=int(name))
            for positions, name in zip(best, partition.names, strict=True)
        ]
        return max(slates, key=value)  # the first among equals

    def update(self, round: Round, slate: Slate, feedback: Feedback) -> None:
        check_update(self, round, slate, feedback)
        self.clusters.partition(round)  # what cannot be clustered is refused before anything changes
        self.clusters.settle(round)

    def state_dict(self) -> dict[str, Tensor]:
        return {"seed": torch.tensor(self.seed), **self.clusters.state_dict()}

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        self.seed = take_whole(state, "seed")
        self.clusters.load_state_dict(state)
