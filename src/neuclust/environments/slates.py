"""Deals rounds of arms, flips one coin an arm, pays the slate and scores it against the truth."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, is_dataclass
from typing import Protocol

import torch
from scipy.sparse import csr_matrix
from torch import Tensor

from neuclust.core import Feedback, Round, Slate
from neuclust.environments.delivery import Delivery
from neuclust.environments.rewards import SlateReward, threshold
from neuclust.environments.structured import StructuredReward
from neuclust.errors import ConfigError, DataError
from neuclust.kernels.poisson_binomial import pmf
from neuclust.randomness import stream


class MeanRewards(Protocol):
    """The truth: μ of the arms at `positions` (all where None) for one query, (n,) float64 in [0, 1]."""

    def __call__(self, positions: Tensor | None, query: Tensor | None) -> Tensor: ...


class View(Protocol):
    """What a round shows of the offered arms' profiles, (n, d) -> (n, d), where it is not the profiles themselves."""

    def __call__(self, profiles: Tensor, query: Tensor | None) -> Tensor: ...


class RecordedRounds(Protocol):
    """Round t as it is dealt: the rows offered, ascending, (n,), and what each really paid or its μ, (n,) in [0, 1]."""

    def __call__(self, t: int) -> tuple[Tensor, Tensor]: ...


@dataclass(frozen=True, slots=True)
class RoundScore:
    """One round against the truth. R* is the best slate's reward from coins of its own."""

    best_expected: float  # u*
    expected: float  # u(S)
    expected_regret: float  # u* − u(S)
    realised_reward: float  # R
    rival_reward: float  # R*
    clipped_regret: float  # max(0, R* − R): has a noise floor
    expected_clipped_regret: float  # E max(0, R* − R) = u*(1 − u(S)) for 0/1 rewards
    clipped_floor: float  # the same for the best slate itself
    realised_regret: float  # R* − R
    mean_gap: float  # Σ top-K μ − Σ_S μ


@dataclass(frozen=True, slots=True)
class _Truth:
    """What only the environment knows of round t."""

    t: int
    offered: Tensor | None  # (n,) rows of the catalogue; None = all of them
    means: Tensor  # (n,)
    best: Tensor  # (K,) positions, best first
    labels: Tensor  # (n,) the group of every arm; zeros where there are none
    best_values: Tensor  # (V,) what the best slate can pay
    best_chances: Tensor  # (V,) with which chances
    best_expected: float


class SlateEnvironment:
    """A catalogue of arms, a query a round, hidden mean rewards and a slate reward.

    Without `arms_per_round` every round offers all arms, in the same `arm_ids` and `profiles` objects;
    with it a random subset, ascending. The coin of arm i in round t depends on (seed, t, i) alone, so
    every policy meets the same coins. With `recorded` in place of `means_of` every round is dealt whole: what
    really happened, means of 0 and 1 that leave the coins nothing to decide, or arms and tastes that change.

    `structured` pays in place of a count of rewarded arms, with `true_labels` as groups. `delivery` says which
    feedback comes late, never or in part; the score is of what was played, seen or not.
    """

    def __init__(
        self,
        *,
        name: str,
        profiles: Tensor,
        arm_ids: Tensor,
        queries: Tensor | None,
        means_of: MeanRewards | None = None,
        recorded: RecordedRounds | None = None,
        slate_size: int,
        horizon: int,
        seed: int = 0,
        reward: SlateReward | None = None,
        arms_per_round: int | None = None,
        counts: Tensor | None = None,
        true_labels: Tensor | None = None,
        view: View | None = None,
        structured: StructuredReward | None = None,
        delivery: Delivery | None = None,
    ) -> None:
        _check_sizes(name, len(profiles), slate_size, arms_per_round)
        if (means_of is None) == (recorded is None):
            raise ConfigError(f"{name}: expected either means_of or recorded rounds as the truth, got both or neither")
        self.name = name
        self.horizon = horizon
        self.slate_size = slate_size
        self.seed = seed
        self._count = threshold(slate_size) if reward is None else reward
        self.structured = structured
        self._delivery = delivery
        self.arms_per_round = arms_per_round
        self.arm_ids = arm_ids
        self.profiles = profiles
        self.counts = counts  # (N, d) observations behind each profile entry, where known
        self.true_labels = true_labels  # (N,) the cluster each arm was drawn from, where there is one
        self._queries = queries
        self._means_of = means_of
        self._recorded = recorded
        self._view = view
        self._averages: Tensor | None = None
        self._truth: _Truth | None = None
        _check_problem(self, None if queries is None else len(queries))

    @property
    def reward(self) -> SlateReward:
        """The reward by the number of rewarded arms; refused where the slate pays by something else."""
        if self.structured is not None:
            raise ConfigError(
                f"{self.name}: expected a reward that counts arms, but this problem pays by {self.structured.name}; "
                "ask expected_reward and score instead"
            )
        return self._count

    @property
    def dim(self) -> int:
        return int(self.profiles.shape[1])

    @property
    def n_arms(self) -> int:
        return int(self.profiles.shape[0])

    def round(self, t: int) -> Round:
        """What an agent may know of round t = 1, 2, ..., horizon."""
        offered = self._truth_at(t).offered
        arm_ids = self.arm_ids if offered is None else self.arm_ids[offered]
        profiles = self.profiles if offered is None else self.profiles[offered]
        query = self._query(t)
        shown = profiles if self._view is None else self._view(profiles, query)
        return Round(t, arm_ids, shown, query, self.slate_size)

    def means(self, round: Round) -> Tensor:
        """μ of every offered arm, (n,) float64."""
        return self._truth_of(round).means

    def best_positions(self, round: Round) -> Tensor:
        """The best slate, in its best order: the K arms with the largest μ, ties by arm id, where arms are counted."""
        return self._truth_of(round).best

    def average_means(self) -> Tensor:
        """μ of every arm averaged over the horizon, (N,); recorded arms over the rounds that offered them, or 0."""
        if self._averages is None:
            same = self._queries is None and self._recorded is None  # every round
            self._averages = self._simulated(1, None) if same else self._average()
        return self._averages

    def play(self, round: Round, slate: Slate) -> Feedback:
        """r_i = 1[U_{t,i} < μ_i] for the slate's arms, and the slate reward they add up to."""
        truth = self._truth_of(round)
        positions = self._positions(round, slate)
        rows = positions if truth.offered is None else truth.offered[positions]
        arm_rewards = (self.coins(round.t)[rows] < truth.means[positions]).to(torch.float64)
        slate_reward = torch.tensor(self._paid(arm_rewards, truth.labels[positions]), dtype=torch.float64)
        seen = arm_rewards if self.structured is None else self.structured.seen(arm_rewards)
        if self._delivery is not None:
            seen = self._delivery.seen(round.t, rows, self.n_arms, seen)
        return Feedback(seen.to(slate.positions.device), slate_reward.to(slate.positions.device))

    def arrival(self, t: int) -> int | None:
        """The round whose end brings the feedback of round t: t itself, a later one, or None for never."""
        return t if self._delivery is None else self._delivery.arrival(t)

    def coins(self, t: int) -> Tensor:
        """U_{t,i} of every arm of the catalogue in round t, (N,)."""
        return torch.from_numpy(stream(self.seed, "coins", t).random(self.n_arms))

    def rival_coins(self, t: int) -> Tensor:
        """The coins of the best slate's arms in round t, (K,)."""
        return torch.from_numpy(stream(self.seed, "rival", t).random(self.slate_size))

    @property
    def is_plain(self) -> bool:
        """Whether the slate's reward counts arms, and all feedback comes whole and at once."""
        return self.structured is None and self._delivery is None

    def same_truth(self, other: SlateEnvironment) -> bool:
        """Whether both deal the same rounds with the same means, so that only their coins can differ."""
        if not (self.is_plain and other.is_plain):
            return False
        if self is other:
            return True
        if {self.arms_per_round, other.arms_per_round} - {None, self.n_arms}:
            return False  # the seed deals the offers
        mine, theirs = self._foundations(), other._foundations()
        return mine[0] is not None and all(map(_same, mine, theirs))

    def _foundations(self) -> tuple[object, ...]:
        shape = (self.slate_size, self.horizon, self.reward.values)
        return self._means_of, shape, self._queries, self.arm_ids, self.profiles, self._view

    def expected_reward(self, round: Round, slate: Slate) -> float:
        """u(S), exact."""
        truth, positions = self._truth_of(round), self._positions(round, slate)
        values, chances = self._outcomes(truth.means[positions], truth.labels[positions])
        return float(chances @ values)

    def best_expected_reward(self, round: Round) -> float:
        """u* = u(the best slate)."""
        return self._truth_of(round).best_expected

    def score(self, round: Round, slate: Slate, feedback: Feedback) -> RoundScore:
        """Every regret of this round; the rival's coins are its own, never those of the played arms."""
        truth = self._truth_of(round)
        positions = self._positions(round, slate)
        best, chosen = truth.means[truth.best], truth.means[positions]
        values, chances = self._outcomes(chosen, truth.labels[positions])
        expected = float(chances @ values)
        rival = self._paid((self.rival_coins(round.t) < best).to(torch.float64), truth.labels[truth.best])
        realised = float(feedback.slate_reward)
        return RoundScore(
            best_expected=truth.best_expected,
            expected=expected,
            expected_regret=truth.best_expected - expected,
            realised_reward=realised,
            rival_reward=rival,
            clipped_regret=math.nan if math.isnan(realised) else max(0.0, rival - realised),
            expected_clipped_regret=_clipped(truth.best_values, truth.best_chances, values, chances),
            clipped_floor=_clipped(truth.best_values, truth.best_chances, truth.best_values, truth.best_chances),
            realised_regret=rival - realised,
            mean_gap=float(best.sum() - chosen.sum()),
        )

    def _paid(self, arm_rewards: Tensor, labels: Tensor) -> float:
        if self.structured is None:
            return self._count.realised(arm_rewards)
        return self.structured.realised(arm_rewards, labels)

    def _outcomes(self, means: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
        """What a slate can pay and with which chances, (V,) each."""
        if self.structured is None:
            return self._count.table, pmf(means)
        return self.structured.outcomes(means, labels)

    def best_of(self, values: Tensor, labels: Tensor, arm_ids: Tensor) -> Tensor:
        """The best slate if `values` (n,) were the means: (K,) positions."""
        if self.structured is None:
            return top_by_mean(values, arm_ids, self.slate_size)
        return self.structured.best(values, labels, arm_ids)

    def labels(self, round: Round) -> Tensor:
        """The group of every offered arm, (n,); zeros where there are none."""
        return self._truth_of(round).labels

    def _query(self, t: int) -> Tensor | None:
        # A copy: a view would carry every future query in its storage.
        return None if self._queries is None else self._queries[t - 1].clone()

    def _offer(self, t: int) -> Tensor | None:
        if self.arms_per_round is None or self.arms_per_round == self.n_arms:
            return None
        chosen = stream(self.seed, "offer", t).choice(self.n_arms, self.arms_per_round, replace=False, shuffle=False)
        return torch.from_numpy(chosen).sort().values

    def _deal(self, t: int) -> tuple[Tensor | None, Tensor]:
        """The rows offered in round t (None: all) and their μ."""
        if self._recorded is not None:
            return self._recorded(t)
        offered = self._offer(t)
        return offered, self._simulated(t, offered)

    def _simulated(self, t: int, positions: Tensor | None) -> Tensor:
        assert self._means_of is not None  # checked at the start: the truth is either this or recorded
        return self._means_of(positions, self._query(t))

    def _average(self) -> Tensor:
        sums, times = (torch.zeros(self.n_arms, dtype=torch.float64) for _ in range(2))
        rows: Tensor | slice = slice(None)
        for t in range(1, self.horizon + 1):
            if self._recorded is not None:
                rows, means = self._recorded(t)
            else:
                means = self._simulated(t, None)
            sums[rows] += means
            times[rows] += 1
        return sums / times.clamp(min=1)

    def _truth_at(self, t: int) -> _Truth:
        if self._truth is None or self._truth.t != t:
            if not 1 <= t <= self.horizon:
                raise DataError(f"{self.name}: expected a round from 1 to {self.horizon}, got {t}")
            self._truth = self._reveal(t)
        return self._truth

    def _reveal(self, t: int) -> _Truth:
        offered, means = self._deal(t)
        labels = torch.zeros(self.n_arms, dtype=torch.int64) if self.true_labels is None else self.true_labels
        labels = labels if offered is None else labels[offered]
        best = self.best_of(means, labels, self.arm_ids if offered is None else self.arm_ids[offered])
        values, chances = self._outcomes(means[best], labels[best])
        return _Truth(t, offered, means, best, labels, values, chances, float(chances @ values))

    def _truth_of(self, round: Round) -> _Truth:
        truth = self._truth_at(round.t)
        if len(round.arm_ids) != len(truth.means):
            raise DataError(
                f"{self.name}: expected round {round.t} as dealt, with {len(truth.means)} arms, "
                f"got one with {len(round.arm_ids)}; play rounds of this environment"
            )
        return truth

    def _positions(self, round: Round, slate: Slate) -> Tensor:
        positions = slate.positions.to("cpu")
        wanted, n = self.slate_size, len(round.arm_ids)
        chosen = positions.tolist()
        if len(set(chosen)) != wanted or len(chosen) != wanted or min(chosen) < 0 or max(chosen) >= n:
            raise DataError(
                f"{self.name}, round {round.t}: expected {wanted} distinct positions from 0 to {n - 1}, got {chosen}"
            )
        return positions


def _clipped(ideal: Tensor, ideal_chances: Tensor, played: Tensor, played_chances: Tensor) -> float:
    """E max(0, R* − R) from the values and chances of two independent rewards."""
    return float(ideal_chances @ (ideal[:, None] - played[None, :]).clamp(min=0.0) @ played_chances)


def top_by_mean(means: Tensor, arm_ids: Tensor, size: int) -> Tensor:
    """The `size` positions with the largest means, ordered by (−mean, arm id)."""
    floor = torch.topk(means, size).values[-1]
    rivals = torch.nonzero(means >= floor).flatten()
    rivals = rivals[torch.argsort(arm_ids[rivals], stable=True)]
    return rivals[torch.argsort(means[rivals], descending=True, stable=True)][:size]


def _same(mine: object, theirs: object) -> bool:
    """Equal tensors, sparse matrices, records of such, or plain values."""
    if mine is theirs:
        return True
    if type(mine) is not type(theirs):
        return False
    if isinstance(mine, Tensor) and isinstance(theirs, Tensor):
        return torch.equal(mine, theirs)
    if isinstance(mine, csr_matrix) and isinstance(theirs, csr_matrix):
        return mine.shape == theirs.shape and abs(mine - theirs).max() == 0
    if is_dataclass(mine):
        return all(_same(getattr(mine, part.name), getattr(theirs, part.name)) for part in fields(mine))
    return bool(mine == theirs)


def _check_sizes(name: str, n: int, slate_size: int, arms_per_round: int | None) -> None:
    offered = n if arms_per_round is None else arms_per_round
    if not 1 <= offered <= n:
        raise ConfigError(f"{name}: expected 1 to {n} arms offered a round, got {offered}")
    if not 1 <= slate_size <= offered:
        raise ConfigError(
            f"{name}: expected a slate size from 1 to the {offered} arms offered a round, got {slate_size}"
        )


def _check_problem(problem: SlateEnvironment, n_queries: int | None) -> None:
    n, d = problem.profiles.shape
    reward = problem.structured or problem.reward
    if reward.slate_size != problem.slate_size:
        raise ConfigError(
            f"{problem.name}: expected a reward of slates of {problem.slate_size}, "
            f"got {reward.name} of slates of {reward.slate_size}"
        )
    if problem.horizon < 1 or (n_queries is not None and problem.horizon > n_queries):
        limit = "at least 1" if n_queries is None else f"1 to the {n_queries} prepared rounds"
        raise ConfigError(f"{problem.name}: expected a horizon of {limit}, got {problem.horizon}")
    if problem.arm_ids.shape != (n,) or (problem.counts is not None and problem.counts.shape != (n, d)):
        raise DataError(f"{problem.name}: expected {n} arm ids and counts of {n} x {d}, as the profiles")
