"""Slate rewards: what a slate pays when j of its K Bernoulli arms were rewarded, a table of K + 1 values.

Expectations are exact by the Poisson-binomial distribution. Tables never fall: the best slate is the K best arms.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from neuclust.errors import ConfigError
from neuclust.kernels.bernoulli import poisson_binomial

TOLERANCE = 1e-9
DEFAULT_FRACTION = 0.8  # the paper's
DEFAULT_REWARD = f"threshold:{DEFAULT_FRACTION:g}"
REWARD_FORMS = "threshold, threshold:FRACTION, mean, product, at-least-one or table:V0,V1,...,VK"


@dataclass(frozen=True)
class SlateReward:
    """R = values[j] when j of the K arms were rewarded; `values` has K + 1 entries and never falls."""

    name: str
    values: tuple[float, ...]

    def __post_init__(self) -> None:
        at = f"slate reward {self.name}"
        if len(self.values) < 2:
            raise ConfigError(f"{at}: expected K + 1 >= 2 values, got {len(self.values)}")
        if not all(map(math.isfinite, self.values)):
            raise ConfigError(f"{at}: expected finite values, got {self.values}")
        for j, (lower, upper) in enumerate(itertools.pairwise(self.values)):
            if upper < lower - TOLERANCE:
                got = f"{lower:g} for {j} rewarded arms and {upper:g} for {j + 1}"
                raise ConfigError(f"{at}: expected values that never fall, so that the K best arms win, got {got}")

    @property
    def slate_size(self) -> int:
        return len(self.values) - 1

    @cached_property
    def table(self) -> Tensor:
        """The values as a tensor, (K + 1,)."""
        return torch.tensor(self.values, dtype=torch.float64)

    def realised(self, arm_rewards: Tensor, labels: Tensor | None = None) -> float:  # noqa: ARG002  # groups do not count
        """The slate's reward for arm rewards (K,) of 0 and 1; NaN where one was not observed."""
        rewarded = float(arm_rewards.sum())
        return math.nan if math.isnan(rewarded) else self.values[round(rewarded)]

    def expected(self, means: Tensor) -> Tensor:
        """u = Σ_j P(j of K) values[j] for independent arms with means (..., K) -> (...)."""
        return poisson_binomial(means) @ self.table.to(means.device)

    def value_of(self, tally: Tensor) -> float:
        """Σ_j tally_j values[j] for a distribution (K + 1,) of the number of rewarded arms."""
        return float(tally @ self.table)

    def outcomes(self, means: Tensor, labels: Tensor | None = None) -> Outcomes:  # noqa: ARG002
        """The K + 1 values and the chance of each, for independent arms with means (K,)."""
        return self.table, poisson_binomial(means)

    def best(self, means: Tensor, labels: Tensor, arm_ids: Tensor) -> Tensor:  # noqa: ARG002
        """The K positions with the largest means, since the table never falls."""
        return top_by_mean(means, arm_ids, self.slate_size)

    def seen(self, arm_rewards: Tensor) -> Tensor:
        return arm_rewards


Outcomes = tuple[Tensor, Tensor]  # what a slate can pay and with which chances, (V,) each


def expected_clipped(best: Outcomes, played: Outcomes) -> float:
    """E max(0, R* − R) of two independent rewards; u*(1 − u) for 0/1 rewards."""
    return float(best[1] @ (best[0][:, None] - played[0][None, :]).clamp(min=0.0) @ played[1])


def top_by_mean(means: Tensor, arm_ids: Tensor, size: int) -> Tensor:
    """The `size` positions with the largest means, ordered by (−mean, arm id)."""
    floor = torch.topk(means, size).values[-1]
    rivals = torch.nonzero(means >= floor).flatten()
    rivals = rivals[torch.argsort(arm_ids[rivals], stable=True)]
    return rivals[torch.argsort(means[rivals], descending=True, stable=True)][:size]


def threshold(slate_size: int, fraction: float = DEFAULT_FRACTION) -> SlateReward:
    """1 when at least k = ⌈fraction · K⌉ arms were rewarded, else 0 (the paper: 80 %)."""
    if not 0.0 < fraction <= 1.0:
        raise ConfigError(f"threshold reward: expected a fraction in (0, 1], got {fraction}; 0.8 is the paper's")
    needed = max(1, math.ceil(fraction * slate_size - TOLERANCE))
    return SlateReward(f"threshold:{fraction:g}", tuple(float(j >= needed) for j in range(slate_size + 1)))


def mean(slate_size: int) -> SlateReward:
    """The share of the arms that were rewarded, j / K."""
    return SlateReward("mean", tuple(j / max(1, slate_size) for j in range(slate_size + 1)))


def product(slate_size: int) -> SlateReward:
    """1 when every arm was rewarded, else 0."""
    return SlateReward("product", (0.0,) * slate_size + (1.0,))


def at_least_one(slate_size: int) -> SlateReward:
    """1 when any arm was rewarded, else 0."""
    return SlateReward("at-least-one", (0.0,) + (1.0,) * slate_size)


def from_table(values: Sequence[float]) -> SlateReward:
    """values[j] when j of K = len(values) − 1 arms were rewarded."""
    numbers = tuple(float(value) for value in values)
    return SlateReward("table:" + ",".join(f"{value:.12g}" for value in numbers), numbers)


def parse_reward(text: str, slate_size: int) -> SlateReward:
    """The reward of a name: `threshold`, `threshold:0.6`, `mean`, `table:0,0,0.2,0.5,1,1`, ..."""
    kind, _, argument = text.strip().partition(":")
    plain = {"threshold": threshold, "mean": mean, "product": product, "at-least-one": at_least_one}
    if slate_size < 1:
        raise ConfigError(f"slate reward: expected a slate of at least 1 arm, got K = {slate_size}")
    if kind in plain and not argument:
        return plain[kind](slate_size)
    if kind == "threshold":
        return threshold(slate_size, *_numbers(text, argument))
    if kind == "table":
        reward = from_table(_numbers(text, argument))
        if reward.slate_size != slate_size:
            wanted = f"{slate_size + 1} values for slates of {slate_size} (0 to {slate_size} rewarded arms)"
            raise ConfigError(f"slate reward {reward.name}: expected {wanted}, got {len(reward.values)}")
        return reward
    raise ConfigError(f"slate reward: expected {REWARD_FORMS}, got {text!r}")


def _numbers(text: str, argument: str) -> list[float]:
    try:
        numbers = [float(part) for part in argument.split(",")]
    except ValueError:
        raise ConfigError(f"slate reward {text!r}: expected numbers, as in {REWARD_FORMS}") from None
    if text.strip().startswith("threshold") and len(numbers) != 1:
        raise ConfigError(f"slate reward {text!r}: expected one fraction after the colon, got {len(numbers)}")
    return numbers
