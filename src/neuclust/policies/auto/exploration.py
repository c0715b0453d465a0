"""Exploration within a slate: slots drawn at random (ε-greedy) and slots of the largest optimistic score."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar, NamedTuple

import numpy as np
import torch
from torch import Tensor

from neuclust.configuration import NON_NEGATIVE, checked
from neuclust.kernels.improvement import expected_improvement
from neuclust.kernels.ranking import top
from neuclust.policies.auto.ensemble import Ensemble, uniform_better
from neuclust.policies.auto.features import Features
from neuclust.policies.auto.learners.local_regression import LocalRegression
from neuclust.policies.auto.marginal_gains import assemble_groups

LEAST_GAP = 1e-3
PROBED_FROM = 50  # slates: before that leaders change
DOUBTED_FROM = 200  # slates: before that optimistic slots reach most clusters, for less
AHEAD = 4.0  # rounds to come that a test of a cluster is held to pay in, for each round that was played
TELLING = 0.5  # of 4p̄(1 − p̄): where rewards are rarer, one of them refutes nobody


@dataclass(frozen=True, slots=True)
@checked(most=(0, 1), power=NON_NEGATIVE, probes=NON_NEGATIVE)
class ExplorationConfig:
    """A slot takes any arm, uniformly, with probability ε = min(most, (1 − 4p̄(1 − p̄)) P^power), P the posterior
    probability that arms drawn uniformly pay more than those chosen by score (`uniform_better`) and 4p̄(1 − p̄) what a
    reward tells: the rarer rewards are, the longer it takes to see that what is chosen pays nothing.
    Where contexts have no clusters and 4p̄(1 − p̄) is at least `TELLING`, from slate `PROBED_FROM` on, one slot goes with
    probability min(most, probes · 4p̄(1 − p̄) · (1 − r̄) / t) to the arm of the linear learner's lowest mean if it lies
    opposite to the best one (xᵀx' < 0), r̄ the mean of recent rewards of arms chosen by score, t the number of slates:
    learners that are wrong there are not refuted by what they play themselves."""

    RENAMED: ClassVar[Mapping[str, str]] = {"eps0": "most"}
    RETIRED: ClassVar[frozenset[str]] = frozenset({"budget", "epsc", "rival"})

    most: float = 0.8
    power: float = 2.0
    probes: float = 15.0

    def chance(self, ensemble: Ensemble) -> float:
        """ε of the next slate."""
        rare = 1 - ensemble.plays.scale.informative
        return float(min(self.most, rare * uniform_better(ensemble) ** self.power))

    def probe_chance(self, ensemble: Ensemble) -> float:
        """The probability that a slot of the next slate tests the lowest mean."""
        plays = ensemble.plays
        if plays.slates < PROBED_FROM or not uses_probes(ensemble):
            return 0.0
        gain = self.probes * plays.scale.informative * (1 - plays.above_zero(ensemble.mean_reward))
        return float(min(self.most, gain / plays.slates))


def uses_probes(ensemble: Ensemble) -> bool:
    """Whether probes test the lowest mean; elsewhere slates have optimistic slots."""
    return ensemble.blocks.clusters is None and ensemble.plays.scale.informative >= TELLING


@dataclass(slots=True)
class ScoreCache:
    """Scores and means of a round's distinct contexts (u,) per learner, each computed on first use."""

    ensemble: Ensemble
    features: Features
    group: Tensor  # (n,) the distinct context of every arm
    t: int
    gains: Tensor | float = 0.0  # (n,) what an arm's id adds to its scores
    _known: dict[str, tuple[Tensor, Tensor]] = field(default_factory=dict)

    def of(self, name: str) -> tuple[Tensor, Tensor]:
        """Scores and means of one learner."""
        if name not in self._known:
            self._known[name] = self.ensemble.learners[name].scores(self.features, self.t)
        return self._known[name]

    def arm_scores(self, name: str) -> Tensor:
        """Scores of one learner for every arm, (n,)."""
        return self.of(name)[0][self.group] + self.gains


def opposite_arm(cache: ScoreCache, rank: Tensor) -> list[int]:
    """The position of the lowest mean of the first learner, the linear one, if its context points away from that of its
    largest mean. A learner of squares that leads has no lowest mean at either end of an axis, and forgets the one that
    is not played."""
    means = cache.of(next(iter(cache.ensemble.learners)))[1]
    away = float(cache.features.x[means.argmin()] @ cache.features.x[means.argmax()]) < 0
    return [int(top(-means[cache.group], rank, 1)[0])] if away else []


class Ranking(NamedTuple):
    """What the slots of a slate are filled by: combined scores (n,), the rank of ties (n,), and the number of slots."""

    scores: Tensor
    rank: Tensor
    slots: int


def optimistic_slots(cache: ScoreCache, ranking: Ranking, taken: Tensor, wanted: int, penalty: float) -> Tensor:
    """Arms for the `wanted` optimistic slots; none unless a slot is left to the combined scores."""
    own = ranking.slots - len(taken) - wanted
    if wanted == 0 or own < 1:
        return torch.empty(0, dtype=torch.int64)
    left = ranking.scores.clone()
    left[taken] = -torch.inf
    filled = torch.cat([taken, top(left, ranking.rank, own)])
    return optimistic_arms(cache, filled, ranking.rank, wanted, penalty)


def doubtful_cluster(cache: ScoreCache, ranking: Ranking, taken: Tensor) -> Tensor:
    """The arm of the largest score by `local` in the cluster that is most worth a test, (1,); (0,) where none is.

    Under `local` the level of a cluster c without an arm in the slate is X_c ~ N(m_c, s_c²); b is the mean level of the
    slate's arms. About σ²/s_c² plays, each of which costs b − m_c, tell X_c. They are worth E[(X_c − b)₊] in every slot
    of the rounds to come. A cluster whose few plays failed by chance is otherwise never looked at again."""
    ensemble, own = cache.ensemble, ranking.slots - len(taken) - 1
    local = ensemble.learners.get("local")
    none = torch.empty(0, dtype=torch.int64)
    if not isinstance(local, LocalRegression) or own < 1 or ensemble.plays.slates < DOUBTED_FROM:
        return none
    left = ranking.scores.clone()
    left[taken] = -torch.inf
    labels = cache.features.groups[0]
    played = labels[cache.group[torch.cat([top(left, ranking.rank, own), taken])]]
    levels, spread, noise = local.levels()
    gap = np.maximum(levels[played[:own]].mean() - levels, LEAST_GAP)
    plays = noise / np.square(spread)
    slots = AHEAD * ranking.slots * ensemble.plays.slates
    worth = np.where(np.bincount(labels.numpy(), minlength=len(gap)) > 0, slots / (plays * gap), 0.0)
    worth[played.numpy()] = 0.0
    worth *= expected_improvement(gap, spread)
    if worth.max() <= 1:
        return none
    outside = cache.of("local")[0].masked_fill(labels != int(worth.argmax()), -torch.inf)
    return top(outside[cache.group], ranking.rank, 1)


def best_of_the_rest(cache: ScoreCache, ranking: Ranking, taken: Tensor, steps: Tensor | None) -> Tensor:
    """The best of the other arms for the slots that are left, best first; by marginal gains `steps` where known."""
    scores, rank, wanted = ranking.scores, ranking.rank, ranking.slots - len(taken)
    free = torch.ones(len(scores), dtype=torch.bool)
    free[taken] = False
    left = torch.nonzero(free).flatten()
    clusters = cache.ensemble.blocks.clusters
    if wanted == 0:
        return left[:0]
    if steps is None or clusters is None:
        return left[top(scores[left], rank[left], wanted)]
    labels = cache.features.groups[0][cache.group]
    return left[assemble_groups(scores[left], labels[left], steps, rank[left], wanted)]


def optimistic_arms(cache: ScoreCache, filled: Tensor, rank: Tensor, slots: int, penalty: float) -> Tensor:
    """The `slots` arms outside `filled` of the largest max_m [min(1, score_m) − penalty · lost evidence_m], (slots,).
    A learner that scores arms higher than the leader does is never refuted unless they are played."""
    best = torch.full(cache.group.shape, -torch.inf, dtype=torch.float64)
    penalty *= cache.ensemble.plays.scale.unit
    losses = dict(zip(cache.ensemble.learners, (penalty * cache.ensemble.lost_evidence).tolist(), strict=True))
    for name in sorted(losses, key=lambda name: losses[name]):
        if 1 - losses[name] < float(best.topk(slots).values[-1]):
            break  # scores are at most 1: neither this learner nor those behind it can change the choice
        best = best.maximum(cache.arm_scores(name).clamp(max=1) - losses[name])
        best[filled] = -torch.inf
    return top(best, rank, slots)
