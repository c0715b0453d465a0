"""CUCB (Chen, Wang, Yuan, ICML 2013): every arm's own mean reward plus a bonus, no contexts."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import torch

from neuclust.configuration import NON_NEGATIVE, check_ranges
from neuclust.core import Feedback, Round, Slate, check_round
from neuclust.models.keyed_means import KeyedMeans
from neuclust.persistence import save_policy
from neuclust.policies.wiring import check_update, load_saved_state, saved_state
from neuclust.slates.ties import tie_rank, top_slate


@dataclass(frozen=True, slots=True)
class CountConfig:
    """`bonus` is c in √(c log t / n); arms never played come first, in random order unless `tie` is id."""

    bonus: float = 1.5
    tie: Literal["id", "random"] = "random"

    def __post_init__(self) -> None:
        check_ranges(self, bonus=NON_NEGATIVE)


class CountUCB:
    """S_t = top K of μ̂_i + √(3 log t / 2n_i), for n_i plays of arm i; +∞ where n_i = 0."""

    name = "cucb"
    save = save_policy
    saved = ("arms", "seed")

    def __init__(self, config: CountConfig, dim: int, slate_size: int, seed: int = 0) -> None:
        self.config, self.dim, self.slate_size, self.seed = config, dim, slate_size, seed
        self.arms = KeyedMeans()

    def select(self, round: Round) -> Slate:
        check_round(round, self.dim, self.slate_size)
        counts, means = self.arms.of(round.arm_ids)
        bonuses = torch.sqrt(self.config.bonus * math.log(round.t) / counts.clamp(min=1))
        bonuses = torch.where(counts > 0, bonuses, torch.inf)
        return top_slate(means, bonuses, tie_rank(round, self.config.tie, self.seed), self.slate_size)

    def update(self, round: Round, slate: Slate, feedback: Feedback) -> None:
        check_update(self, round, slate, feedback)
        self.arms.observe(round.arm_ids[slate.positions], feedback.arm_rewards)

    state_dict, load_state_dict = saved_state, load_saved_state
