"""Exploration within a slate: slots drawn at random (ε-greedy) and slots of the largest optimistic score."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar, NamedTuple

import numpy as np
import torch
from scipy.special import logit
from torch import Tensor

from neuclust.configuration import NON_NEGATIVE, checked
from neuclust.kernels.ranking import top
from neuclust.policies.auto.ensemble import Ensemble
from neuclust.policies.auto.features import Features
from neuclust.policies.auto.marginal_gains import assemble_groups

LEAST_LIFT = 0.1
SETTLING = 1_000  # slates after which half of the least share explores: who has run for long will run for long
SURPRISING = 1.0  # log-odds by which an arm was expected to pay less than those chosen by score


@dataclass(frozen=True, slots=True)
@checked(most=(0, 1), least=(0, 1), budget=NON_NEGATIVE, power=NON_NEGATIVE)
class ExplorationConfig:
    """A slot takes any arm, drawn uniformly, with probability

    ε = min(most, max(budget · 4p̄(1 − p̄) · (1 − r̄)^power / (t · lift), least · 4p̄(1 − p̄) · t / (t + 1000))).

    4p̄(1 − p̄) is what a reward tells, r̄ the mean of recent rewards of arms chosen by score, 1 − r̄ what could still be
    gained, lift the log-odds of r̄ less those of arms drawn uniformly (at least `LEAST_LIFT`), t the number of slates
    since the start or a change. Where the learners agree on half of the truth, only such arms can tell: the second term
    is small and stays. With `follow`, a slot of the next slate goes to the arm nearest to one that paid although it was
    expected not to, for as long as these pay."""

    RENAMED: ClassVar[Mapping[str, str]] = {"eps0": "most", "epsc": "budget"}

    most: float = 0.8
    least: float = 0.003
    budget: float = 8.0
    power: float = 4.0
    follow: bool = True

    def chance(self, ensemble: Ensemble) -> float:
        """ε of the next slate."""
        t, informative = ensemble.plays.slates + 1, ensemble.plays.scale.informative
        early = self.budget * (1 - ensemble.mean_reward) ** self.power / (t * max(ensemble.lift, LEAST_LIFT))
        return float(min(self.most, informative * max(early, self.least * t / (t + SETTLING))))


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


def drawn_arms(cache: ScoreCache, slots: int, rng: np.random.Generator) -> list[int]:
    """Distinct positions for `slots` slots, drawn uniformly."""
    return [int(position) for position in rng.choice(len(cache.group), slots, replace=False)]


def surprise(chances: Tensor, rewards: Tensor, mean_reward: float) -> int | None:
    """The last arm that was expected to pay much less than arms chosen by score do, and paid more: chances predicted
    before the rewards were seen, and rewards (k,)."""
    low = torch.logit(chances.clamp(1e-9, 1 - 1e-9)) < logit(mean_reward) - SURPRISING
    found = torch.nonzero(low & (rewards > mean_reward)).flatten().tolist()
    return found[-1] if found else None


def nearest_arm(cache: ScoreCache, context: Tensor, rank: Tensor) -> int:
    """The arm whose context is nearest to a played one, z (d,)."""
    gaps = (cache.features.x - cache.ensemble.blocks.scaled(context.unsqueeze(0))).square().sum(1)
    return int(top(-gaps[cache.group], rank, 1)[0])


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
