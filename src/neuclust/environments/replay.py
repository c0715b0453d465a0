"""Recorded feedback as an environment: every round offers the arms that were there and pays what each paid, 0 or 1.

There is no noise: the best slate is the best in hindsight, and clipped regret equals expected regret with floor 0.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from neuclust.data.dataset import ProfileDataset
from neuclust.data.offers import Offers
from neuclust.environments.dealing import Arms, Recorded
from neuclust.environments.problem import ProblemSpec
from neuclust.environments.slates import SlateEnvironment
from neuclust.errors import ConfigError, DataError
from neuclust.randomness import stream

Floats = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class PlayedBack:
    """Round t is the recorded round at `order[t - 1]`: rows offered (n,) and what each paid (n,)."""

    offers: Offers
    order: NDArray[np.int64]

    def __call__(self, t: int) -> tuple[Tensor, Tensor]:
        arms, rewards = self.offers.of(int(self.order[t - 1]))
        return torch.tensor(arms, dtype=torch.int64), torch.tensor(rewards, dtype=torch.float64)


def replay_environment(dataset: ProfileDataset, spec: ProblemSpec | None = None, **fields: Any) -> SlateEnvironment:
    """The recorded rounds of a dataset, in an order dealt by the seed; a shorter horizon plays the first of them."""
    spec = ProblemSpec.of(spec, fields, horizon=len(dataset.rounds))
    if dataset.offers is None:
        raise DataError(f"{dataset.name}: expected recorded offers to play back, got a dataset without")
    smallest = int(dataset.offers.sizes.min())
    if spec.slate_size > smallest:
        wanted = f"a slate size from 1 to the {smallest} arms of the smallest round"
        advice = "prepare the replay with more arms per round"
        raise ConfigError(f"{dataset.name}: expected {wanted}, got {spec.slate_size}; {advice}")
    order = stream(spec.seed, "replay order").permutation(len(dataset.rounds))
    rounds = Recorded(PlayedBack(dataset.offers, order), torch.tensor(dataset.rounds[order], dtype=torch.float64))
    return SlateEnvironment(dataset.name, dataset_arms(dataset, dataset.arms, dataset.counts), rounds, spec)


def dataset_arms(dataset: ProfileDataset, profiles: Floats, counts: Floats | None) -> Arms:
    """The arms of a dataset with these profiles and counts, (N, d) each."""
    known = None if counts is None else torch.tensor(counts, dtype=torch.float64)
    ids = torch.tensor(dataset.arm_ids, dtype=torch.int64)
    return Arms(torch.tensor(profiles, dtype=torch.float64), ids, known)
