"""NeUClust, offline (Algorithm 2) and online (Algorithm 1): the top K of the cluster with the best score.

For every arm v_i = f(x_i; θ_{t−1}) + γ_{t−1} √(ĝ_iᵀ Z_{t−1}⁻¹ ĝ_i); for every cluster c its top K by v, b_c, and
V_c = Σ_{a ∈ b_c} v_a + ωK·F(σ(f(x_{b_c}))). The slate is b_c of the cluster with the largest V_c.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from neuclust.configuration import checked
from neuclust.core import Feedback, Round, Slate, check_round, known_arms
from neuclust.errors import ConfigError, DataError, NeuclustError
from neuclust.kernels.compiled import top_of_groups
from neuclust.kernels.jit import Floats, Integers
from neuclust.kernels.pruning import Bounds, Clusters, best_cluster
from neuclust.kernels.ranking import first_largest, sound
from neuclust.kernels.regions import group_rows
from neuclust.kernels.widths import diagonal_gain, diagonal_squares
from neuclust.models.arm_model import ArmModel, ArmModelConfig, arm_shapes
from neuclust.models.arm_scoring import ArmScores
from neuclust.models.confidence import DiagonalConfidence
from neuclust.models.state import Shape, load_saved_state, nested_shapes, saved_state
from neuclust.models.tracker import ProfileTracker, TrackerConfig
from neuclust.persistence import save_policy
from neuclust.policies.wiring import check_update
from neuclust.slates.clustering import Clusterer, ClusteringConfig, ClusterMap
from neuclust.slates.partition import Partition
from neuclust.slates.rules import keeps_rules
from neuclust.slates.slate_model import SlateModel, SlateModelConfig, slate_shapes
from neuclust.slates.ties import ones, tie_rank


@dataclass(frozen=True, slots=True)
@checked()
class NeUClustConfig:
    """NeUClust; with a `tracker` the online variant.
    The paper's b_c are the top K by v (`rank_by` optimistic), the authors' code takes f (mean). `covariance` slate adds
    the gradients of the played arms once per round (the paper); scan adds those of the best cluster so far after every
    cluster (the authors' code), which needs a diagonal covariance."""

    arms: ArmModelConfig = field(default_factory=ArmModelConfig)
    clustering: ClusteringConfig = field(default_factory=ClusteringConfig)
    slate: SlateModelConfig = field(default_factory=SlateModelConfig)
    tracker: TrackerConfig | None = None
    rank_by: Literal["optimistic", "mean"] = "optimistic"
    covariance: Literal["slate", "scan"] = "slate"
    tie: Literal["id", "random"] = "id"

    def __post_init__(self) -> None:
        if self.covariance == "scan" and self.arms.confidence.form != "diagonal":
            got = f"got {self.arms.confidence.form!r}; use covariance=slate"
            raise ConfigError(f"covariance=scan expects confidence.form=diagonal, {got}")


@dataclass(frozen=True, slots=True)
class KnownArms:
    """Any `clusterer` with `fit_predict`; `catalogue` = (arm ids, profiles) of all arms, where rounds offer only some;
    `counts` = (arm ids, (N, d) counts) of observations behind the shown profiles, for the online variant."""

    clusterer: Clusterer | None = None
    catalogue: tuple[Tensor, Tensor] | None = None
    counts: tuple[Tensor, Tensor] | None = None


class NeUClust:
    """Neural arm model with exact widths, clusters, and a monotone slate model; `known` are entries of `KnownArms`."""

    name = "neuclust"
    save = save_policy
    saved = ("arms", "clusters", "slates", "tracker")

    def __init__(self, config: NeUClustConfig, dim: int, slate_size: int, seed: int = 0, **known: Any) -> None:
        self.config, self.dim, self.slate_size, self.seed = config, dim, slate_size, seed
        given = KnownArms(**known)
        catalogue, counts = known_arms(given.catalogue, None, "catalogue"), known_arms(given.counts, dim, "counts")
        self.arms = ArmModel(config.arms, dim, slate_size, seed, config.slate.training.memory)  # θ_0, Z_0 = λI
        self.clusters = ClusterMap(config.clustering.seeded(seed), slate_size, given.clusterer, catalogue)
        self.slates = SlateModel(config.slate, slate_size, seed)  # Θ_0
        self.tracker = ProfileTracker(config.tracker, dim, counts) if config.tracker else None

    @keeps_rules
    def select(self, round: Round) -> Slate:
        check_round(round, self.dim, self.slate_size)
        seen = self.view(round)  # online: the tracked contexts
        partition = self.clusters.partition(seen, refit=self.online)  # Alg. 1 line 4; Alg. 2 before the loop
        bounds = self.arms.bounds(seen.read) if self._prunable(partition) else None
        if bounds is not None:
            return self._pruned(seen, partition, bounds)
        scores = self.arms.scores(seen.read)  # f, γ_{t−1} w and v of every arm
        ranked = scores.optimistic if self.config.rank_by == "optimistic" else scores.means
        best = partition.best(ranked, tie_rank(seen, self.config.tie, self.seed), round.slate_size)  # b_c
        if self.config.covariance == "scan":
            winner, bonuses, _ = scan(self.arms, self.slates, seen.read, best, scores)
        else:
            winner = first_largest(self._cluster_scores(best, scores))  # c' = argmax V_c
            bonuses = scores.bonuses[best[winner]]
        positions = best[winner]  # S_t = b_{c'}
        chances = ones(len(positions)) if self.config.tie == "id" else None
        return Slate(positions, scores.means[positions], bonuses, chances, cluster=int(partition.names[winner]))

    def scores(self, round: Round) -> Tensor:
        """v of every arm, (n,)."""
        check_round(round, self.dim, self.slate_size)
        return self.arms.scores(self.view(round).read).optimistic

    def settle(self, round: Round) -> None:
        """Fix the scale of contexts and the clusters by this round, as the first update does with its round."""
        check_round(round, self.dim, self.slate_size)
        self.arms.settle(round.read)
        self.clusters.settle(self.view(round), refit=self.online)

    def update(self, round: Round, slate: Slate, feedback: Feedback) -> None:
        check_update(self, round, slate, feedback)
        seen = self.view(round)
        self.clusters.partition(seen, refit=self.online)  # what cannot be clustered is refused before anything changes
        before = self.tracker.moment() if self.tracker is not None and self._moves_first else None
        taken = self._moved(round, slate, feedback) if self._moves_first else seen
        try:
            self._observe(taken, slate, feedback)  # Z_t = Z_{t−1} + Σ_{i ∈ S_t} ĝ_i ĝ_iᵀ at θ_{t−1}; history
        except NeuclustError:  # refused: nothing is learned
            if self.tracker is not None and before is not None:
                self.tracker.go_back(before)
            raise
        self.clusters.settle(seen, refit=self.online)
        if not self._moves_first:
            self._moved(round, slate, feedback)
        self.arms.train()  # θ_t: J steps on L(θ)
        self.slates.train(self.arms.history, self.arms.predict_history(), self.arms.updates)  # Θ_t: J steps on L(Θ)
        self.arms.watch.speak()
        self.slates.watch.speak()

    @property
    def online(self) -> bool:
        """Whether profiles are tracked and clustered anew each round."""
        return self.tracker is not None

    @property
    def _moves_first(self) -> bool:
        """Whether rewards move the profiles before Z and the history take them."""
        return self.config.tracker is not None and self.config.tracker.order == "before"

    def _moved(self, round: Round, slate: Slate, feedback: Feedback) -> Round:
        """x_{t+1,i} for i ∈ S_t where profiles are tracked, and the round with them."""
        if self.tracker is not None:
            self.tracker.observe(round, slate, feedback)
        return self.view(round)

    def view(self, round: Round) -> Round:
        """The round with tracked profiles in the place of those it shows, where profiles are tracked."""
        if self.tracker is None:
            return round
        if round.features is not None:
            advice = "play neuclust, whose models read features"
            raise DataError(f"round {round.t}: expected profiles and a query to track, got features; {advice}")
        return self.tracker.view(round)

    def _prunable(self, partition: Partition) -> bool:
        """Whether upper bounds of v bound V: b_c by v, one covariance for all clusters, none that borrows arms."""
        config = self.config
        return config.rank_by == "optimistic" and config.covariance == "slate" and partition.kept is None

    def _pruned(self, seen: Round, partition: Partition, bounds: Bounds) -> Slate:
        """The same slate from bounds: exact widths only for arms and clusters that can still win."""
        rank = tie_rank(seen, self.config.tie, self.seed).numpy()
        members, labels = partition.members(), partition.labels.numpy()
        means = bounds.means[bounds.group]
        k = seen.slate_size
        peaks = top_of_groups(means, rank, labels, len(members), k)  # the k largest f of every cluster
        if not self.config.slate.sort_input:  # F reads arms in another order: none of them is above the largest f
            peaks = np.repeat(peaks[:, :1], k, 1)
        highest = torch.from_numpy(means[peaks])

        def value(values: Floats, means: Tensor) -> float:
            return float(self.slates.score(torch.from_numpy(values).unsqueeze(0), means.unsqueeze(0)))

        def ceiling(c: int, upper: Floats) -> float:
            return value(upper, highest[c])

        def exact(positions: Integers) -> float:
            rows = bounds.group[positions]
            return value(bounds.upper[rows], torch.from_numpy(bounds.means[rows]))

        winner, chosen = best_cluster(bounds, Clusters(labels, members, rank), k, ceiling, exact)
        chosen_means, bonuses = (torch.from_numpy(part) for part in bounds.scores(chosen))
        chances, cluster = ones(k) if self.config.tie == "id" else None, int(partition.names[winner])
        return Slate(torch.from_numpy(chosen), chosen_means, bonuses, chances, cluster)

    def _cluster_scores(self, best: Tensor, scores: ArmScores) -> Tensor:
        """V_c = Σ_{a ∈ b_c} v_a + ωK·F(b_c) (or its average), for b (C, K): (C,)."""
        values, means = scores.optimistic[best], scores.means[best]
        # once for equal rows: a library may round them differently, by where they stand, and undo a tie
        first, same = group_rows(torch.cat([values, means], 1))
        return self.slates.score(values[first], means[first])[same]

    def _observe(self, seen: Round, slate: Slate, feedback: Feedback) -> None:
        read = seen.read
        if self.config.covariance == "slate":
            self.arms.observe(read, slate, feedback)
            return
        partition = self.clusters.partition(seen, refit=self.online)
        scores = self.arms.scores(read)
        best = partition.best(scores.means, tie_rank(seen, self.config.tie, self.seed), seen.slate_size)
        _, _, diagonal = scan(self.arms, self.slates, read, best, scores)
        contexts = self.arms.encode(read, slate.positions)
        self.arms.settle(read)
        diagonal_of(self.arms).diagonal = diagonal
        self.arms.remember(contexts, feedback)

    @staticmethod
    def saved_shapes(config: NeUClustConfig, dim: int, slate_size: int) -> Iterator[tuple[str, Shape]]:
        """What a save holds at least."""
        yield from nested_shapes("arms", arm_shapes(config.arms, dim))
        yield from nested_shapes("slates", slate_shapes(config.slate, slate_size))

    state_dict, load_state_dict = saved_state, load_saved_state

    @property
    def failed_trainings(self) -> int:
        """How many fits of either net blew up or found no step that helped."""
        return self.arms.failures + self.slates.failures


def scan(
    arms: ArmModel, slates: SlateModel, seen: Round, best: Tensor, scores: ArmScores
) -> tuple[int, Tensor, tuple[Tensor, ...]]:
    """The authors' loop over clusters: after each one, U grows by the gradients of the best cluster so far, so that
    later clusters have narrower widths. Returns the winner, its bonuses (K,) and the new U, which `update` stores."""
    gamma, diagonal = arms.gamma(), diagonal_of(arms).diagonal
    features = [arms.features(arms.encode(seen, positions)) for positions in best]
    slate_values = slates.config.weight * slates.value(scores.means[best])
    winner, highest, winning_bonuses = 0, -torch.inf, torch.zeros(0)
    sound(slate_values)
    for c, positions in enumerate(best):
        bonuses = gamma * diagonal_squares(features[c], diagonal).sqrt()
        value = float((scores.means[positions] + bonuses).mean() + slate_values[c])
        if value > highest:
            winner, highest, winning_bonuses = c, value, bonuses
        diagonal = tuple(u + gain for u, gain in zip(diagonal, diagonal_gain(features[winner]), strict=True))
    return winner, winning_bonuses, diagonal


def diagonal_of(arms: ArmModel) -> DiagonalConfidence:
    """U, where the configuration requires a diagonal covariance."""
    assert isinstance(arms.confidence, DiagonalConfidence)
    return arms.confidence
