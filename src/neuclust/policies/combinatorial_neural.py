"""Policies on one neural arm model that play the global top K: CN-UCB, CN-TS and ε-greedy.

CN-UCB and CN-TS are Hwang, Chai, Oh (ICML 2023). CN-UCB is NeUClust with one cluster. CN-TS with M = 1 and a diagonal
covariance is NeuralTS (Zhang et al., ICLR 2021).
"""

import math
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import torch
from scipy.special import ndtri
from torch import Tensor

from neuclust.configuration import AT_LEAST_ONE, NON_NEGATIVE, checked
from neuclust.core import Design, Round, Slate
from neuclust.kernels.pruning import best_overall
from neuclust.models.arm_model import ArmModel, ArmModelConfig
from neuclust.models.confidence import ConfidenceConfig
from neuclust.persistence import save_policy
from neuclust.policies.wiring import (
    arm_state,
    failed_arm_trainings,
    learn_arms,
    load_arm_state,
    readable,
    saved_arm_shapes,
    settle_arms,
)
from neuclust.randomness import stream
from neuclust.slates.propensities import one_coin_slate
from neuclust.slates.rules import keeps_rules, within_rules
from neuclust.slates.ties import ones, tie_rank, top_slate


@dataclass(frozen=True, slots=True)
@checked()
class CombinatorialNeuralConfig:
    arms: ArmModelConfig = field(default_factory=ArmModelConfig)
    tie: Literal["id", "random"] = "id"


class CombinatorialNeuralUCB:
    """S_t = top K of v_i = f(x_i; θ_{t−1}) + γ_{t−1} √(ĝ_iᵀ Z_{t−1}⁻¹ ĝ_i)."""

    name = "cn-ucb"
    save = save_policy

    def __init__(self, config: CombinatorialNeuralConfig, dim: int, slate_size: int, seed: int = 0) -> None:
        self.config, self.dim, self.slate_size, self.seed = config, dim, slate_size, seed
        self.arms = ArmModel(config.arms, dim, slate_size, seed)

    @keeps_rules
    def select(self, round: Round) -> Slate:
        round = readable(self, round)
        rank, certain = tie_rank(round, self.config.tie, self.seed), self.config.tie == "id"
        bounds = self.arms.bounds(round)
        if bounds is not None:  # the same slate from bounds
            positions = torch.from_numpy(best_overall(bounds, rank.numpy(), round.slate_size))
            means, bonuses = (torch.from_numpy(part) for part in bounds.scores(positions.numpy()))
            return Slate(positions, means, bonuses, ones(len(positions)) if certain else None)
        scores = self.arms.scores(round)
        return top_slate(scores.means, scores.bonuses, rank, round.slate_size, certain=certain)

    def scores(self, round: Round) -> Tensor:
        """v of every arm, (n,)."""
        return self.arms.scores(readable(self, round)).optimistic

    update, settle, state_dict, load_state_dict = learn_arms, settle_arms, arm_state, load_arm_state
    saved_shapes = staticmethod(saved_arm_shapes)
    failed_trainings = property(failed_arm_trainings)


_OPTIMISTIC = 1 / (4 * math.e * math.sqrt(math.pi))  # a Gaussian draw exceeds mean + 1 s.d. at least this often


@dataclass(frozen=True, slots=True)
@checked(samples=AT_LEAST_ONE)
class CombinatorialSamplingConfig:
    """ν is `arms.schedule`; `samples` is M, None takes what K arms need to be optimistic together."""

    arms: ArmModelConfig = field(default_factory=ArmModelConfig)
    samples: int | None = None
    tie: Literal["id", "random"] = "id"


def samples_needed(slate_size: int) -> int:
    """M = ⌈1 − log K / log(1 − p)⌉, p = 1/(4e√π): the least M with K(1 − p)^M ≤ 1 − p; 32 for K = 5."""
    return math.ceil(1 - math.log(slate_size) / math.log1p(-_OPTIMISTIC))


def largest_normal(uniform: np.ndarray[tuple[int], np.dtype[np.float64]], samples: int) -> Tensor:
    """Φ⁻¹(U^{1/M}), the largest of M standard normals by one uniform each: (n,) -> (n,).
    Taken in the upper tail, −Φ⁻¹(1 − U^{1/M}), where U^{1/M} itself would round to 1."""
    positive = np.maximum(uniform, 2.0**-54)  # a stream may deal 0, whose normal would be −∞
    return torch.from_numpy(-ndtri(-np.expm1(np.log(positive) / samples)))


class CombinatorialNeuralTS:
    """S_t = top K of ṽ_i = f(x_i; θ_{t−1}) + ν σ_i Φ⁻¹(U_i^{1/M}), σ_i² = λ ĝ_iᵀ Z_{t−1}⁻¹ ĝ_i.
    A slate's `bonuses` are νσ, the spread of a sample, not the draw."""

    name = "cn-ts"
    save = save_policy

    def __init__(self, config: CombinatorialSamplingConfig, dim: int, slate_size: int, seed: int = 0) -> None:
        self.config, self.dim, self.slate_size, self.seed = config, dim, slate_size, seed
        self.arms = ArmModel(config.arms, dim, slate_size, seed)
        self.samples = samples_needed(slate_size) if config.samples is None else config.samples

    @keeps_rules
    def select(self, round: Round) -> Slate:
        means, spread, sampled = self._sampled(readable(self, round))
        rank = tie_rank(round, self.config.tie, self.seed)
        return top_slate(means, spread, rank, round.slate_size, scores=sampled, certain=False)

    def scores(self, round: Round) -> Tensor:
        """ṽ of every arm, (n,)."""
        return self._sampled(readable(self, round))[2]

    def _sampled(self, round: Round) -> tuple[Tensor, Tensor, Tensor]:
        """f, νσ and ṽ of every arm, (n,) each."""
        scores = self.arms.scores(round)
        spread = math.sqrt(self.config.arms.confidence.ridge) * scores.bonuses  # νσ = ν√λ·w
        draws = largest_normal(stream(self.seed, "cn-ts", round.key).random(len(spread)), self.samples)
        return scores.means, spread, scores.means + spread * draws

    update, settle, state_dict, load_state_dict = learn_arms, settle_arms, arm_state, load_arm_state
    saved_shapes = staticmethod(saved_arm_shapes)
    failed_trainings = property(failed_arm_trainings)


@dataclass(frozen=True, slots=True)
@checked(exploration=NON_NEGATIVE)
class EpsilonGreedyConfig:
    """`exploration` is c in ε_t = min(1, c/t); widths are not used, so the cheapest kind is the default."""

    arms: ArmModelConfig = field(default_factory=lambda: ArmModelConfig(confidence=ConfidenceConfig(form="diagonal")))
    exploration: float = 10.0
    tie: Literal["id", "random"] = "id"


class EpsilonGreedy:
    """With probability ε_t = min(1, c/t) K arms at random, otherwise the top K of f(x; θ_{t−1})."""

    name = "epsilon-greedy"
    save = save_policy

    def __init__(self, config: EpsilonGreedyConfig, dim: int, slate_size: int, seed: int = 0) -> None:
        self.config, self.dim, self.slate_size, self.seed = config, dim, slate_size, seed
        self.arms = ArmModel(config.arms, dim, slate_size, seed)

    def select(self, round: Round) -> Slate:
        means = self.scores(round)

        def greedy(some: Round) -> Slate:
            own = means if some is round else self.scores(some)
            rank = tie_rank(some, self.config.tie, self.seed)
            return top_slate(own, torch.zeros_like(own), rank, some.slate_size)

        epsilon = min(1.0, self.config.exploration / round.t)
        rng = stream(self.seed, "epsilon-greedy", round.key)
        base = within_rules(round, greedy).positions
        positions, chances = one_coin_slate(base, round, epsilon, rng)
        bonuses = torch.zeros(len(positions), dtype=torch.float64)
        if self.config.tie != "id":
            return Slate(positions, means[positions], bonuses)
        design = Design("one-coin", tuple(base.tolist()), epsilon)
        return Slate(positions, means[positions], bonuses, chances, design=design)

    def scores(self, round: Round) -> Tensor:
        """f of every arm, (n,)."""
        return self.arms.scores(readable(self, round)).means

    update, settle, state_dict, load_state_dict = learn_arms, settle_arms, arm_state, load_arm_state
    saved_shapes = staticmethod(saved_arm_shapes)
    failed_trainings = property(failed_arm_trainings)
