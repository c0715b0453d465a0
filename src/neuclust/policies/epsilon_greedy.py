"""ε-greedy on the neural arm model: a random slate with probability ε, otherwise the top K by predicted mean."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import torch

from neuclust.configuration import NON_NEGATIVE, check_ranges
from neuclust.core import Round, Slate, check_round
from neuclust.kernels.ranking import top
from neuclust.models.arm_model import ArmModel, ArmModelConfig
from neuclust.models.confidence import ConfidenceConfig
from neuclust.models.schedules import epsilon_greedy
from neuclust.persistence import save_policy
from neuclust.policies.wiring import arm_state, failed_arm_trainings, learn_arms, load_arm_state, saved_arm_shapes
from neuclust.randomness import stream
from neuclust.slates.ties import tie_rank


def _cheap_arms() -> ArmModelConfig:
    """Widths are not used, so the cheapest kind will do."""
    return ArmModelConfig(confidence=ConfidenceConfig(form="diagonal"))


@dataclass(frozen=True, slots=True)
class EpsilonGreedyConfig:
    """`exploration` is c in ε_t = min(1, c/t)."""

    arms: ArmModelConfig = field(default_factory=_cheap_arms)
    exploration: float = 10.0
    tie: Literal["id", "random"] = "id"

    def __post_init__(self) -> None:
        check_ranges(self, exploration=NON_NEGATIVE)


class EpsilonGreedy:
    """With probability ε_t = min(1, c/t) K arms at random, otherwise the top K of f(x; θ_{t−1})."""

    name = "epsilon-greedy"
    save = save_policy

    def __init__(self, config: EpsilonGreedyConfig, dim: int, slate_size: int, seed: int = 0) -> None:
        self.config, self.dim, self.slate_size, self.seed = config, dim, slate_size, seed
        self.arms = ArmModel(config.arms, dim, slate_size, seed)

    def select(self, round: Round) -> Slate:
        check_round(round, self.dim, self.slate_size)
        n, k = len(round.arm_ids), self.slate_size
        means = self.arms.scores(round).means
        greedy = top(means, tie_rank(round, self.config.tie, self.seed), k)
        epsilon = min(1.0, self.config.exploration / round.t)
        positions, chance = epsilon_greedy(greedy, n, epsilon, stream(self.seed, "epsilon-greedy", round.t))
        return Slate(positions, means[positions], torch.zeros(k, dtype=torch.float64), probabilities=chance)

    update, state_dict, load_state_dict = learn_arms, arm_state, load_arm_state
    saved_shapes = staticmethod(saved_arm_shapes)
    failed_trainings = property(failed_arm_trainings)
