"""When feedback arrives: late, never, or with some of the arms' rewards missing."""

from dataclasses import dataclass

import torch
from torch import Tensor

from neuclust.environments.dealing import coins
from neuclust.errors import ConfigError
from neuclust.randomness import stream


@dataclass(frozen=True, slots=True)
class Delivery:
    """Feedback of a share `late` of the rounds arrives `delay` rounds later, of a share `lost` never; of the others'
    arms a share `unseen` has no reward. Draws depend on (seed, t, arm) alone: all policies miss the same rewards."""

    seed: int
    late: float = 0.0
    delay: int = 0
    lost: float = 0.0
    unseen: float = 0.0

    def __post_init__(self) -> None:
        if min(self.late, self.lost, self.unseen, self.delay) < 0 or self.late + self.lost > 1 or self.unseen > 1:
            wanted = "shares from 0 to 1 (late and lost together at most 1) and a delay of at least 0"
            raise ConfigError(f"delivery: expected {wanted}, got {self}")

    def arrival(self, t: int) -> int | None:
        """The round whose end brings the feedback of round t; None: it never comes."""
        luck = float(stream(self.seed, "delivery", t).random())
        if luck < self.lost:
            return None
        return t + self.delay if luck < self.lost + self.late else t

    def seen(self, t: int, rows: Tensor, n_arms: int, arm_rewards: Tensor) -> Tensor:
        """The rewards of the catalogue rows (K,), NaN where one did not come."""
        if self.unseen == 0.0:
            return arm_rewards
        return torch.where(coins(self.seed, "unseen", n_arms, t)[rows] < self.unseen, torch.nan, arm_rewards)
