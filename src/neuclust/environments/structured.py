"""Slate rewards that depend on groups or on the order of the arms, with exact distributions and best slates."""

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol

import torch
from torch import Tensor

from neuclust.environments.rewards import Outcomes, top_by_mean
from neuclust.errors import ConfigError

LARGEST_ENUMERATED_SLATE = 16  # 2^16 reward vectors are enumerated in well under a second


class StructuredReward(Protocol):
    """What a slate pays for its arms' rewards, given the group of every arm.

    `outcomes` are the values the reward can take and their chances, (V,) each; `best` the slate with the largest
    expected value among n arms with means and labels (n,), in the order it is shown: (K,) positions.
    """

    @property
    def name(self) -> str: ...

    @property
    def slate_size(self) -> int: ...

    def realised(self, arm_rewards: Tensor, labels: Tensor) -> float: ...

    def outcomes(self, means: Tensor, labels: Tensor) -> Outcomes: ...

    def best(self, means: Tensor, labels: Tensor, arm_ids: Tensor) -> Tensor: ...

    def seen(self, arm_rewards: Tensor) -> Tensor: ...


@dataclass(frozen=True, slots=True)
class DiminishingReturns:
    """R = Σ_groups (1 + δ + … + δ^{j−1}) / K where j of a group's arms were rewarded.

    δ = 0 counts the groups that were hit (coverage), δ = 1 the rewarded arms (the mean).
    """

    slate_size: int
    discount: float

    def __post_init__(self) -> None:
        if not 0.0 <= self.discount <= 1.0:
            raise ConfigError(f"diminishing returns: expected a discount from 0 to 1, got {self.discount}")
        if not 1 <= self.slate_size <= LARGEST_ENUMERATED_SLATE:
            wanted = f"slates of 1 to {LARGEST_ENUMERATED_SLATE} arms (all 2^K cases are counted)"
            raise ConfigError(f"diminishing returns: expected {wanted}, got {self.slate_size}")

    @property
    def name(self) -> str:
        return "coverage" if self.discount == 0 else f"diminishing:{self.discount:g}"

    def realised(self, arm_rewards: Tensor, labels: Tensor) -> float:
        return float(self._values(arm_rewards.unsqueeze(0), labels)[0])

    def outcomes(self, means: Tensor, labels: Tensor) -> Outcomes:
        """All 2^K reward vectors of the K arms."""
        cases = _cases(self.slate_size)
        chances = torch.where(cases > 0, means, 1.0 - means).prod(1)
        return self._values(cases, labels), chances

    def best(self, means: Tensor, labels: Tensor, arm_ids: Tensor) -> Tensor:
        """Greedy, which is exact here.

        Adding arm i to a group's arms G gains μ_i ∏_{l∈G} (1 − μ_l(1 − δ)). Within a group the largest means are
        best, taken in that order their gains never rise, and groups do not influence each other: K times the
        largest gain is the optimum of such a sum.
        """
        order = top_by_mean(means, arm_ids, len(means))
        gains = torch.empty_like(means)
        for label in torch.unique(labels):
            members = order[labels[order] == label]
            kept = (1.0 - means[members] * (1.0 - self.discount)).cumprod(0)
            gains[members] = means[members] * torch.cat([kept.new_ones(1), kept[:-1]])
        # a group's gains fall in the order of its means, so ties cannot take a later member first
        return order[torch.argsort(gains[order], descending=True, stable=True)][: self.slate_size]

    def seen(self, arm_rewards: Tensor) -> Tensor:
        return arm_rewards

    def _values(self, rewards: Tensor, labels: Tensor) -> Tensor:
        """R of reward vectors (V, K): (V,)."""
        _, groups = torch.unique(labels, return_inverse=True)
        hits = rewards.new_zeros(len(rewards), int(groups.max()) + 1).index_add_(1, groups, rewards)
        worth = torch.tensor([0.0, *itertools.accumulate(self.discount**j for j in range(self.slate_size))])
        return worth.to(rewards.dtype)[hits.to(torch.int64)].sum(1) / self.slate_size


@dataclass(frozen=True, slots=True)
class Cascade:
    """R = δ^{j−1} where the first rewarded arm stands at place j, 0 without one; later arms are not seen.

    A reader goes down the slate and leaves with the first arm that pays. The best slate is the K largest means in
    falling order: exchanging neighbours so that the larger mean comes first, or an arm for a better one, never
    lowers Σ_j δ^{j−1} μ_j ∏_{l<j} (1 − μ_l).
    """

    slate_size: int
    patience: float = 0.9  # δ

    def __post_init__(self) -> None:
        if not 0.0 < self.patience <= 1.0 or self.slate_size < 1:
            raise ConfigError(f"cascade: expected a patience in (0, 1] and slates of at least 1 arm, got {self}")

    @property
    def name(self) -> str:
        return f"cascade:{self.patience:g}"

    def realised(self, arm_rewards: Tensor, labels: Tensor) -> float:  # noqa: ARG002  # order is all that matters
        paid = torch.nonzero(arm_rewards).flatten()
        return float(self.patience ** int(paid[0])) if len(paid) else 0.0

    def outcomes(self, means: Tensor, labels: Tensor) -> Outcomes:  # noqa: ARG002
        missed = (1.0 - means).cumprod(0)
        first = means * torch.cat([missed.new_ones(1), missed[:-1]])
        values = self.patience ** torch.arange(self.slate_size, dtype=means.dtype)
        return torch.cat([values, values.new_zeros(1)]), torch.cat([first, missed[-1:]])

    def best(self, means: Tensor, labels: Tensor, arm_ids: Tensor) -> Tensor:  # noqa: ARG002
        return top_by_mean(means, arm_ids, self.slate_size)

    def seen(self, arm_rewards: Tensor) -> Tensor:
        """NaN after the first rewarded arm."""
        after = (arm_rewards.cumsum(0) - arm_rewards) > 0
        return torch.where(after, torch.nan, arm_rewards)


RewardOf = Callable[[int], StructuredReward]


@lru_cache(maxsize=4)
def _cases(size: int) -> Tensor:
    return torch.tensor(list(itertools.product((0.0, 1.0), repeat=size)), dtype=torch.float64)
