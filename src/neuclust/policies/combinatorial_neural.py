"""CN-UCB (Hwang, Chai, Oh, ICML 2023): the top K arms by f + γ·width. NeUClust with one cluster."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import torch

from neuclust.configuration import check_entries
from neuclust.core import Round, Slate, check_round
from neuclust.kernels.pruning import best_overall
from neuclust.models.arm_model import ArmModel, ArmModelConfig
from neuclust.persistence import save_policy
from neuclust.policies.wiring import arm_state, failed_arm_trainings, learn_arms, load_arm_state, saved_arm_shapes
from neuclust.slates.ties import tie_rank, top_slate


@dataclass(frozen=True, slots=True)
class CombinatorialNeuralConfig:
    arms: ArmModelConfig = field(default_factory=ArmModelConfig)
    tie: Literal["id", "random"] = "id"

    def __post_init__(self) -> None:
        check_entries(self)


class CombinatorialNeuralUCB:
    """S_t = top K of v_i = f(x_i; θ_{t−1}) + γ_{t−1} √(ĝ_iᵀ Z_{t−1}⁻¹ ĝ_i)."""

    name = "cn-ucb"
    save = save_policy

    def __init__(self, config: CombinatorialNeuralConfig, dim: int, slate_size: int, seed: int = 0) -> None:
        self.config, self.dim, self.slate_size, self.seed = config, dim, slate_size, seed
        self.arms = ArmModel(config.arms, dim, slate_size, seed)

    def select(self, round: Round) -> Slate:
        check_round(round, self.dim, self.slate_size)
        rank = tie_rank(round, self.config.tie, self.seed)
        bounds = self.arms.bounds(round)
        if bounds is not None:  # the same slate from bounds
            positions = torch.from_numpy(best_overall(bounds, rank.numpy(), self.slate_size))
            means, bonuses = (torch.from_numpy(part) for part in bounds.scores(positions.numpy()))
            return Slate(positions, means, bonuses)
        scores = self.arms.scores(round)
        return top_slate(scores.means, scores.bonuses, rank, self.slate_size)

    update, state_dict, load_state_dict = learn_arms, arm_state, load_arm_state
    saved_shapes = staticmethod(saved_arm_shapes)
    failed_trainings = property(failed_arm_trainings)
