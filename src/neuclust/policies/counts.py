"""CUCB (Chen, Wang, Yuan, ICML 2013): every arm's own mean reward plus a bonus, no contexts."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from neuclust.configuration import check_entries
from neuclust.core import Feedback, Round, Slate, check_feedback, check_round
from neuclust.errors import ConfigError
from neuclust.kernels.ranking import top
from neuclust.models.keyed_means import KeyedMeans
from neuclust.models.state import nested, take_whole, under
from neuclust.persistence import save_policy
from neuclust.slates.ties import tie_rank


@dataclass(frozen=True, slots=True)
class CountConfig:
    """`bonus` is c in √(c log t / n); arms never played come first, in random order unless `tie` is id."""

    bonus: float = 1.5
    tie: Literal["id", "random"] = "random"

    def __post_init__(self) -> None:
        check_entries(self)
        if not self.bonus >= 0:
            raise ConfigError(f"bonus: expected a number of at least 0, got {self.bonus}")


class CountUCB:
    """S_t = top K of μ̂_i + √(3 log t / 2n_i), for n_i plays of arm i; +∞ where n_i = 0."""

    name = "cucb"
    save = save_policy

    def __init__(self, config: CountConfig, dim: int, slate_size: int, seed: int = 0) -> None:
        self.config, self.dim, self.slate_size, self.seed = config, dim, slate_size, seed
        self.arms = KeyedMeans()

    def select(self, round: Round) -> Slate:
        check_round(round, self.dim, self.slate_size)
        counts, means = self.arms.of(round.arm_ids)
        bonuses = torch.sqrt(self.config.bonus * math.log(round.t) / counts.clamp(min=1))
        bonuses = torch.where(counts > 0, bonuses, torch.inf)
        positions = top(means + bonuses, tie_rank(round, self.config.tie, self.seed), self.slate_size)
        return Slate(positions, means[positions], bonuses[positions])

    def update(self, round: Round, slate: Slate, feedback: Feedback) -> None:
        check_round(round, self.dim, self.slate_size)
        check_feedback(round, slate, feedback)
        self.arms.observe(round.arm_ids[slate.positions], feedback.arm_rewards)

    def state_dict(self) -> dict[str, Tensor]:
        return {"seed": torch.tensor(self.seed), **nested("arms", self.arms.state_dict())}

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        self.arms.load_state_dict(under("arms", state))
        self.seed = take_whole(state, "seed")
