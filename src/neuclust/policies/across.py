"""NeUClust across clusters: with its arm model, clusters and slate model, the slate of all arms with the largest
U(S) = Σ v + ωK·F(r_S) + δ·D(S) among those that keep to the constraints (`slates.assembly`)."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import torch
from torch import Tensor

from neuclust.configuration import NON_NEGATIVE, checked
from neuclust.core import Feedback, Round, Slate, check_round
from neuclust.errors import ConfigError, DataError
from neuclust.kernels.ranking import top
from neuclust.models.arm_model import ArmModelConfig, arm_shapes
from neuclust.models.arm_scoring import ArmScores
from neuclust.models.state import Shape, check_lengths, expect, nested, nested_shapes, take_ids, under
from neuclust.models.tracker import TrackerConfig
from neuclust.persistence import save_policy
from neuclust.policies.neuclust import NeUClust, NeUClustConfig
from neuclust.policies.wiring import check_update
from neuclust.slates.assembly import AssemblyConfig, SlateUtility, assemble
from neuclust.slates.cluster_choice import responsibilities
from neuclust.slates.clustering import ClusteringConfig
from neuclust.slates.constraints import Constraints, Rules, rules
from neuclust.slates.partition import Partition
from neuclust.slates.rules import within_rules
from neuclust.slates.slate_model import SlateModelConfig, slate_shapes
from neuclust.slates.ties import ones, tie_rank


@dataclass(frozen=True, slots=True)
@checked(explore=NON_NEGATIVE)
class AcrossConfig:
    """NeUClust's parts, how slates are assembled, and what every slate must keep to.
    F reads v (`slate.input` optimistic) or f (mean, as in the paper). `explore` > 0 gives one slot per round to the
    best arm of the least played cluster, if that was played fewer than explore·log(1 + updates) times."""

    arms: ArmModelConfig = field(default_factory=ArmModelConfig)
    clustering: ClusteringConfig = field(default_factory=ClusteringConfig)
    slate: SlateModelConfig = field(default_factory=lambda: SlateModelConfig(input="optimistic"))
    tracker: TrackerConfig | None = None
    assembly: AssemblyConfig = field(default_factory=AssemblyConfig)
    constraints: Constraints = field(default_factory=Constraints)
    explore: float = 0.0
    tie: Literal["id", "random"] = "id"

    def __post_init__(self) -> None:
        if not self.slate.sort_input:
            raise ConfigError("slate.sort_input: expected true, since a slate across clusters has no order of its own")
        if self.constraints.categories is not None:
            instead = "give categories=(arm ids, labels) when the policy is made, or constraints with a single select"
            raise ConfigError(f"constraints.categories: expected none in a configuration; {instead}")


class NeUClustAcross:
    """S_t = argmax_S Σ_{i ∈ S} v_i + ωK·F(r_S) + δ·D(S), over all clusters; `known` is as for NeUClust.
    `categories` = (arm ids, labels) are what `at_most` and the diversity weight count instead of clusters."""

    name = "neuclust-across"
    save = save_policy

    def __init__(
        self, config: AcrossConfig, dim: int, slate_size: int, seed: int = 0,
        *, categories: tuple[Tensor, Tensor] | None = None, **known: Any,
    ) -> None:  # fmt: skip
        self.config, self.dim, self.slate_size, self.seed = config, dim, slate_size, seed
        inner = NeUClustConfig(config.arms, config.clustering, config.slate, config.tracker, tie=config.tie)
        self.model = NeUClust(inner, dim, slate_size, seed, **known)
        self.categories = None if categories is None else _by_id(*categories)
        self._plays = torch.zeros(0, dtype=torch.int64)  # rewards seen of every cluster

    def select(self, round: Round, constraints: Constraints | None = None) -> Slate:
        """The best slate found; `constraints`, or the round's rules, take the place of the configured ones."""
        check_round(round, self.dim, self.slate_size)
        if round.rules is not None and constraints is None:
            return within_rules(round, self.select)
        seen, k = self.model.view(round), round.slate_size
        partition = self.model.clusters.partition(seen, refit=self.model.online)
        scores = self.model.arms.scores(seen.read)
        rank = tie_rank(seen, self.config.tie, self.seed)
        kept = self.config.constraints if constraints is None else constraints
        if self._plain(kept):
            candidates = torch.unique(partition.best(scores.optimistic, rank, k))  # each cluster's top k
            positions = candidates[top(scores.optimistic[candidates], rank[candidates], k)]
        else:
            positions = self._assembled(seen, partition, scores, rank, kept, strict=constraints is not None)
        chances = ones(k) if self.config.tie == "id" else None
        return Slate(positions, scores.means[positions], scores.bonuses[positions], chances)

    def scores(self, round: Round) -> Tensor:
        """v of every arm, (n,)."""
        check_round(round, self.dim, self.slate_size)
        return self.model.scores(round)

    def settle(self, round: Round) -> None:
        """Fix the scale of contexts and the clusters by this round, as the first update does with its round."""
        self.model.settle(round)

    def update(self, round: Round, slate: Slate, feedback: Feedback) -> None:
        check_update(self, round, slate, feedback)
        seen = self.model.view(round)
        clusters = self.model.clusters.partition(seen, refit=self.model.online).cluster_of(len(seen.arm_ids))
        self.model.update(round, slate, feedback)
        observed = clusters[slate.positions][~torch.isnan(feedback.arm_rewards)]
        self._plays = _grown(self._plays, observed[observed >= 0])

    @property
    def failed_trainings(self) -> int:
        """How many fits of either net blew up or found no step that helped."""
        return self.model.failed_trainings

    def _plain(self, kept: Constraints) -> bool:
        """Nothing but v decides: the slate is the top K of the clusters' top Ks."""
        free = not (kept.required or kept.excluded or kept.at_most or kept.diversity_weight or self.config.explore)
        return free and (self.config.slate.input == "optimistic" or self.config.slate.weight == 0)

    def _assembled(
        self, seen: Round, partition: Partition, scores: ArmScores, rank: Tensor, kept: Constraints, strict: bool
    ) -> Tensor:
        clusters = partition.cluster_of(len(seen.arm_ids))
        categories = clusters if self.categories is None else _looked_up(seen, *self.categories)
        values = scores.optimistic
        found = rules(kept, seen, categories, strict, eligible=clusters >= 0)
        found = self._exploring(found, clusters, values, rank) if len(found.required) < seen.slate_size else found
        own = kept.categories is None and self.categories is None
        utility = SlateUtility(
            values=values,
            reads=values if self.config.slate.input == "optimistic" else scores.means,
            rank=rank,
            slate_value=self.model.slates.value,
            slate_weight=self.config.slate.weight * self.slate_size,
            membership=self._membership(seen, found.categories, own) if kept.diversity_weight else None,
            diversity=kept.diversity_weight,
        )
        return assemble(utility, found, seen.slate_size, self.config.assembly, clusters).positions

    def _membership(self, seen: Round, categories: Tensor, own: bool) -> Tensor:
        """p (n, C): soft over the policy's own clusters where asked for, else one category per arm."""
        category = torch.unique(categories, return_inverse=True)[1]
        hard = torch.nn.functional.one_hot(category).to(torch.float64)
        if not (self.config.assembly.soft and own):
            return hard
        points = seen.contexts if self.config.clustering.on == "masked" else seen.profiles
        centroids = hard.T @ points / hard.sum(0).unsqueeze(1)
        return responsibilities(points, centroids, labels=category)

    def _exploring(self, found: Rules, clusters: Tensor, values: Tensor, rank: Tensor) -> Rules:
        """The rules with the best arm of the least played cluster required, where it lags behind and fits."""
        if self.config.explore == 0:
            return found
        taken = found.categories[found.required]
        fits = found.allowed & ((found.categories.unsqueeze(1) == taken).sum(1) < found.cap)
        fits[found.required] = False
        names = torch.unique(clusters[fits])
        plays = torch.nn.functional.pad(self._plays, (0, max(0, int(names.max()) + 1 - len(self._plays))))[names]
        least = int(torch.argmin(plays))
        if int(plays[least]) >= self.config.explore * math.log1p(self.model.arms.updates):
            return found
        members = torch.nonzero(fits & (clusters == names[least])).flatten()
        best = members[top(values[members], rank[members], 1)]
        return replace(found, required=torch.cat([found.required, best]))

    @staticmethod
    def saved_shapes(config: AcrossConfig, dim: int, slate_size: int) -> Iterator[tuple[str, Shape]]:
        """What a save holds at least."""
        yield from nested_shapes("model.arms", arm_shapes(config.arms, dim))
        yield from nested_shapes("model.slates", slate_shapes(config.slate, slate_size))

    def state_dict(self) -> dict[str, Tensor]:
        given = {} if self.categories is None else dict(zip(("ids", "labels"), self.categories, strict=True))
        state = nested("model", self.model.state_dict()) | nested("categories", given)
        return state | {"plays": self._plays.clone()}

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        self.model.load_state_dict(under("model", state))
        given = under("categories", state)
        self.categories = None
        if given:
            ids, labels = take_ids(given, "ids"), take_ids(given, "labels")
            check_lengths(ids=ids, labels=labels)
            expect(bool((ids[1:] >= ids[:-1]).all()), "ids of categories in ascending order", "another one")
            self.categories = ids, labels
        plays = take_ids(state, "plays")
        expect(bool((plays >= 0).all()), "plays of at least 0", "less")
        self._plays = plays


def _by_id(ids: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
    if ids.shape != labels.shape or ids.ndim != 1 or labels.is_floating_point():
        kind = str(labels.dtype).removeprefix("torch.")
        got = f"got {tuple(ids.shape)} ids and {tuple(labels.shape)} labels of {kind}"
        raise ConfigError(f"categories: expected arm ids and as many whole numbers, {got}")
    order = torch.argsort(ids, stable=True)
    return ids[order], labels[order].to(torch.int64)


def _looked_up(round: Round, ids: Tensor, labels: Tensor) -> Tensor:
    """The category of every offered arm, (n,); ids ascend."""
    place = torch.searchsorted(ids, round.arm_ids).clamp(max=len(ids) - 1)
    missing = ids[place] != round.arm_ids
    if bool(missing.any()):
        arm = int(round.arm_ids[missing][0])
        raise DataError(f"round {round.t}: expected a category for every arm, got none for arm {arm}; add it")
    return labels[place]


def _grown(plays: Tensor, clusters: Tensor) -> Tensor:
    length = max(len(plays), int(clusters.max()) + 1 if len(clusters) else 0)
    return torch.nn.functional.pad(plays, (0, length - len(plays))) + torch.bincount(clusters, minlength=length)
