"""Real feedback as an environment: every round offers who was really there and pays what really happened.

There is no noise: an arm's mean reward is what it paid, 0 or 1, so the expected reward of a slate is the one it
gets, the best slate is the best in hindsight, and clipped regret equals expected regret with a floor of 0.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from neuclust.data.dataset import ProfileDataset
from neuclust.data.offers import Offers
from neuclust.environments.rewards import SlateReward
from neuclust.environments.slates import SlateEnvironment
from neuclust.errors import ConfigError, DataError
from neuclust.randomness import stream


@dataclass(frozen=True, slots=True)
class PlayedBack:
    """Round t is the recorded round at `order[t - 1]`: rows offered (n,) and what each paid (n,)."""

    offers: Offers
    order: NDArray[np.int64]

    def __call__(self, t: int) -> tuple[Tensor, Tensor]:
        arms, rewards = self.offers.of(int(self.order[t - 1]))
        return torch.tensor(arms, dtype=torch.int64), torch.tensor(rewards, dtype=torch.float64)


def replay_environment(
    dataset: ProfileDataset,
    *,
    slate_size: int = 5,
    horizon: int | None = None,
    seed: int = 0,
    reward: SlateReward | None = None,
) -> SlateEnvironment:
    """The recorded rounds of a dataset, in an order dealt by the seed; a shorter horizon plays the first of them."""
    if dataset.offers is None:
        raise DataError(
            f"{dataset.name}: expected recorded offers to play back, got a dataset without; "
            "`neuclust data prepare replay` writes them"
        )
    smallest = int(dataset.offers.sizes.min())
    if slate_size > smallest:
        raise ConfigError(
            f"{dataset.name}: expected a slate size from 1 to the {smallest} arms of the smallest round, "
            f"got {slate_size}; prepare the replay with a larger --min-arms"
        )
    order = stream(seed, "replay order").permutation(len(dataset.rounds))
    return SlateEnvironment(
        name=dataset.name,
        profiles=torch.tensor(dataset.arms, dtype=torch.float64),
        arm_ids=torch.tensor(dataset.arm_ids, dtype=torch.int64),
        queries=torch.tensor(dataset.rounds[order], dtype=torch.float64),
        recorded=PlayedBack(dataset.offers, order),
        slate_size=slate_size,
        horizon=len(order) if horizon is None else horizon,
        seed=seed,
        reward=reward,
        counts=None if dataset.counts is None else torch.tensor(dataset.counts, dtype=torch.float64),
    )
