"""Deals rounds of arms, flips one coin per arm, pays the slate and scores it against the truth."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

from neuclust.core import Feedback, Round, Slate
from neuclust.environments.dealing import (
    Arms,
    Delivery,
    Offer,
    Recorded,
    Rounds,
    Simulated,
    average_means,
    coins,
    query_at,
    same,
)
from neuclust.environments.payments import draw
from neuclust.environments.problem import ProblemSpec, RoundScore
from neuclust.environments.rewards import Outcomes, SlateReward, expected_clipped, threshold
from neuclust.environments.structured import StructuredReward
from neuclust.errors import ConfigError, DataError


@dataclass(frozen=True, slots=True)
class Truth:
    """What only the environment knows of round t."""

    t: int
    offered: Tensor | None  # (n,) rows of the catalogue; None = all of them
    means: Tensor  # (n,)
    best: Tensor  # (K,) positions, best first
    labels: Tensor  # (n,) the group of every arm; zeros where there are none
    best_outcomes: Outcomes  # what the best slate can pay and with which chances, (V,) each
    best_expected: float

    def rows(self, positions: Tensor) -> Tensor:
        """Rows of the catalogue."""
        return positions if self.offered is None else self.offered[positions]


class SlateEnvironment:
    """A catalogue of arms, rounds with hidden mean rewards, a slate reward and a delivery of feedback.

    A round offers all arms, in the same tensors, or `spec.arms_per_round` at random, ascending. The coin of arm i in
    round t depends on (seed, t, i) alone. `pays` replaces `spec.reward`, which counts rewarded arms; its groups are
    `arms.labels`. `delivery` says which feedback comes late, never or in part; scores ignore it.
    """

    def __init__(
        self,
        name: str,
        arms: Arms,
        rounds: Rounds,
        spec: ProblemSpec,
        *,
        pays: StructuredReward | None = None,
        delivery: Delivery | None = None,
    ) -> None:
        self.n_arms, width = (int(size) for size in arms.profiles.shape)
        self.contexts = rounds.contexts if isinstance(rounds, Recorded) else None
        self.dim = width if self.contexts is None else self.contexts.dim
        _check_sizes(name, self.n_arms, spec.slate_size, spec.arms_per_round)
        self.name, self.slate_size, self.horizon, self.seed = name, spec.slate_size, spec.horizon, spec.seed
        self.arms, self.rounds, self.delivery = arms, rounds, delivery
        self.arm_ids, self.profiles, self.counts, self.true_labels = arms.ids, arms.profiles, arms.counts, arms.labels
        counting = threshold(spec.slate_size) if spec.reward is None else spec.reward
        self.pays: StructuredReward = counting if pays is None else pays
        # whether contexts are x ⊙ a, the slate's reward counts arms, and all feedback comes whole and at once
        self.is_plain = isinstance(self.pays, SlateReward) and delivery is None and self.contexts is None
        self.offer = Offer(self.n_arms, spec.arms_per_round, spec.seed)
        self.coins = partial(coins, spec.seed, "coins", self.n_arms)  # U_{t,i} of every arm of the catalogue, (N,)
        self.rival_coins = partial(coins, spec.seed, "rival", spec.slate_size)  # of the best slate's arms, (K,)
        self._averages: Tensor | None = None
        self._truth: Truth | None = None
        _check_problem(self)

    @property
    def reward(self) -> SlateReward:
        """The reward by the number of rewarded arms; refused where the slate pays by something else."""
        if not isinstance(self.pays, SlateReward):
            raise ConfigError(f"{self.name}: pays by {self.pays.name}, no count of arms; use expected_reward and score")
        return self.pays

    def round(self, t: int) -> Round:
        """What an agent may know of round t = 1, 2, ..., horizon."""
        offered, query = self._truth_at(t).offered, query_at(self.rounds.queries, t)
        arm_ids, profiles = self.arms.shown(offered, query)
        features = None if self.contexts is None else self.contexts(t, offered)
        return Round(t, arm_ids, profiles, query, self.slate_size, features)

    def means(self, round: Round) -> Tensor:
        """μ of every offered arm, (n,) float64."""
        return self._truth_of(round).means

    def labels(self, round: Round) -> Tensor:
        """The group of every offered arm, (n,); zeros where there are none."""
        return self._truth_of(round).labels

    def best_positions(self, round: Round) -> Tensor:
        """The best slate, in its best order: the K arms with the largest μ, ties by arm id, where arms are counted."""
        return self._truth_of(round).best

    def average_means(self) -> Tensor:
        """μ of every arm averaged over the horizon, (N,); recorded arms over the rounds that offered them, or 0."""
        if self._averages is None:
            self._averages = average_means(self.rounds, self.n_arms, self.horizon)
        return self._averages

    def play(self, round: Round, slate: Slate) -> Feedback:
        """r_i = 1[U_{t,i} < μ_i] for the slate's arms, or what `pays` draws, and the slate reward they add up to."""
        truth, positions = self._truth_of(round), _positions(self, round, slate)
        rows = truth.rows(positions)
        arm_rewards = draw(self.pays, self.coins(round.t)[rows], truth.means[positions], rows)
        slate_reward = torch.tensor(self.pays.realised(arm_rewards, truth.labels[positions]), dtype=torch.float64)
        seen = self.pays.seen(arm_rewards)
        if self.delivery is not None:
            seen = self.delivery.seen(round.t, rows, self.n_arms, seen)
        return Feedback(seen.to(slate.positions.device), slate_reward.to(slate.positions.device))

    def arrival(self, t: int) -> int | None:
        """The round whose end brings the feedback of round t: t itself, a later one, or None for never."""
        return t if self.delivery is None else self.delivery.arrival(t)

    def expected_reward(self, round: Round, slate: Slate) -> float:
        """u(S), exact."""
        truth, positions = self._truth_of(round), _positions(self, round, slate)
        values, chances = self.pays.outcomes(truth.means[positions], truth.labels[positions])
        return float(chances @ values)

    def best_expected_reward(self, round: Round) -> float:
        """u* = u(the best slate)."""
        return self._truth_of(round).best_expected

    def score(self, round: Round, slate: Slate, feedback: Feedback) -> RoundScore:
        """Every regret of this round; the rival's coins are its own, never those of the played arms."""
        truth, positions = self._truth_of(round), _positions(self, round, slate)
        best, chosen = truth.means[truth.best], truth.means[positions]
        values, chances = outcomes = self.pays.outcomes(chosen, truth.labels[positions])
        expected = float(chances @ values)
        rival_rewards = draw(self.pays, self.rival_coins(round.t), best, truth.rows(truth.best))
        rival = self.pays.realised(rival_rewards, truth.labels[truth.best])
        realised = float(feedback.slate_reward)
        return RoundScore(
            best_expected=truth.best_expected,
            expected=expected,
            expected_regret=truth.best_expected - expected,
            realised_reward=realised,
            rival_reward=rival,
            clipped_regret=math.nan if math.isnan(realised) else max(0.0, rival - realised),
            expected_clipped_regret=expected_clipped(truth.best_outcomes, outcomes),
            clipped_floor=expected_clipped(truth.best_outcomes, truth.best_outcomes),
            realised_regret=rival - realised,
            mean_gap=float(best.sum() - chosen.sum()),
        )

    def same_truth(self, other: SlateEnvironment) -> bool:
        """Whether both deal the same rounds with the same means, so that only their coins can differ."""
        if not (self.is_plain and other.is_plain):
            return False
        whole = self.offer.is_whole and other.offer.is_whole and isinstance(self.rounds, Simulated)  # no seed in them
        return self is other or (whole and all(map(same, _foundations(self), _foundations(other))))

    def _truth_at(self, t: int) -> Truth:
        if self._truth is None or self._truth.t != t:
            if not 1 <= t <= self.horizon:
                raise DataError(f"{self.name}: expected a round from 1 to {self.horizon}, got {t}")
            offered, means = self.rounds.deal(t, self.offer)
            labels = self.arms.groups(offered)
            best = self.pays.best(means, labels, self.arm_ids if offered is None else self.arm_ids[offered])
            values, chances = self.pays.outcomes(means[best], labels[best])
            self._truth = Truth(t, offered, means, best, labels, (values, chances), float(chances @ values))
        return self._truth

    def _truth_of(self, round: Round) -> Truth:
        truth = self._truth_at(round.t)
        if len(round.arm_ids) != len(truth.means):
            wanted = f"round {round.t} as dealt, with {len(truth.means)} arms"
            raise DataError(f"{self.name}: expected {wanted}, got one with {len(round.arm_ids)}")
        return truth


def _positions(problem: SlateEnvironment, round: Round, slate: Slate) -> Tensor:
    positions = slate.positions.to("cpu")
    k, n, chosen = problem.slate_size, len(round.arm_ids), positions.tolist()
    if len(set(chosen)) != k or len(chosen) != k or min(chosen) < 0 or max(chosen) >= n:
        at = f"{problem.name}, round {round.t}"
        raise DataError(f"{at}: expected {k} distinct positions from 0 to {n - 1}, got {chosen}")
    return positions


def _foundations(problem: SlateEnvironment) -> tuple[object, ...]:
    shape = (problem.slate_size, problem.horizon, problem.reward.values)
    return problem.rounds, shape, problem.arm_ids, problem.profiles, problem.arms.view


def _check_sizes(name: str, n: int, slate_size: int, arms_per_round: int | None) -> None:
    offered = n if arms_per_round is None else arms_per_round
    if not 1 <= offered <= n:
        raise ConfigError(f"{name}: expected 1 to {n} arms offered per round, got {offered}")
    if not 1 <= slate_size <= offered:
        raise ConfigError(f"{name}: expected a slate size from 1 to the {offered} arms offered, got {slate_size}")


def _check_problem(problem: SlateEnvironment) -> None:
    n, d, queries = problem.n_arms, problem.profiles.shape[1], problem.rounds.queries
    if problem.pays.slate_size != problem.slate_size:
        got = f"{problem.pays.name} of slates of {problem.pays.slate_size}"
        raise ConfigError(f"{problem.name}: expected a reward of slates of {problem.slate_size}, got {got}")
    if problem.horizon < 1 or (queries is not None and problem.horizon > len(queries)):
        limit = "at least 1" if queries is None else f"1 to the {len(queries)} prepared rounds"
        raise ConfigError(f"{problem.name}: expected a horizon of {limit}, got {problem.horizon}")
    if problem.arm_ids.shape != (n,) or (problem.counts is not None and problem.counts.shape != (n, d)):
        raise DataError(f"{problem.name}: expected {n} arm ids and counts of {n} x {d}, as the profiles")
