"""The range of rewards: amounts, counts and negative values as numbers from 0 to 1, which is what learners read."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple, Self

import torch
from torch import Tensor

from neuclust.configuration import check_ranges
from neuclust.errors import ConfigError, DataError
from neuclust.models.state import expect, take_numbers

MOST = 1e12  # of a reward: with larger ones no digits are left for the others
ROOM = 1.25  # a range that grows is so many times as wide as needed
GROWTH = 8.0  # times the width that one slate can add at each end


@dataclass(frozen=True, slots=True)
class RewardRangeConfig:
    """The least and the largest reward there can be; None: learned from the rewards, starting at 0 and at 1."""

    low: float | None = None
    high: float | None = None

    def __post_init__(self) -> None:
        check_ranges(self, low=(-MOST, MOST), high=(-MOST, MOST))
        if self.low is not None and self.high is not None and not self.low < self.high:
            raise ConfigError(f"expected low below high, got {self.low:g} and {self.high:g}", field="rewards")


class Rescaling(NamedTuple):
    """y' = slope · y + shift: rewards on a range, read on a wider one."""

    slope: float
    shift: float


@dataclass(frozen=True, slots=True)
class RewardRange:
    """y = (r − low) / (high − low). Where a reward lies outside a learned end, the end moves: past it, by a quarter of
    the new width, but at most `GROWTH` times the old width at once, and the reward counts as the end if that is still
    nearer. So a range grows logarithmically often, and a single huge reward costs learners at most a factor of 1 +
    `GROWTH` in scale, of which they are nearly independent; rewards that keep coming are covered after a few."""

    low: float
    high: float

    @classmethod
    def first(cls, config: RewardRangeConfig) -> Self:
        """The range before any reward."""
        low = config.low if config.low is not None else min(0.0, math.inf if config.high is None else config.high - 1)
        return cls(low, config.high if config.high is not None else max(1.0, low + 1))

    @property
    def width(self) -> float:
        return self.high - self.low

    def covering(self, rewards: Tensor, config: RewardRangeConfig) -> Self:
        """The range for rewards (k,), this one where it holds them; refused are those outside a declared end."""
        least, most = (float(end) for end in torch.aminmax(rewards))
        low, high = (-MOST if config.low is None else config.low), (MOST if config.high is None else config.high)
        if least < low or most > high:
            got = f"got {least if least < low else most:g}; give rewards.low and rewards.high others, or scale rewards"
            raise DataError(f"auto: expected arm rewards from {low:g} to {high:g}, {got}")
        grown, step = self, GROWTH * self.width
        if least < grown.low:
            grown = replace(grown, low=max(grown.high - ROOM * (grown.high - least), grown.low - step))
        if most > grown.high:
            grown = replace(grown, high=min(grown.low + ROOM * (most - grown.low), grown.high + step))
        return grown

    def read(self, rewards: Tensor) -> Tensor:
        """y of rewards; those outside are not cut off."""
        return (rewards - self.low) / self.width

    def own(self, y: Tensor) -> Tensor:
        """Rewards of y, in their own units."""
        return self.low + self.width * y

    def onto(self, wider: Self) -> Rescaling:
        """How y changes on another range."""
        return Rescaling(self.width / wider.width, (self.low - wider.low) / wider.width)

    def state_dict(self) -> dict[str, Tensor]:
        return {"range": torch.tensor([self.low, self.high], dtype=torch.float64)}

    @classmethod
    def from_state(cls, state: Mapping[str, Tensor], config: RewardRangeConfig) -> Self:
        """A saved range; declared ends are as declared."""
        low, high = take_numbers(state, "range", 2)
        kept = config.low in (None, low) and config.high in (None, high)
        expect(low < high and kept, "a range of rewards with the declared ends", (low, high))
        return cls(low, high)
