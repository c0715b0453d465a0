"""The range of rewards: amounts, counts and negative values as numbers from 0 to 1, which is what learners read."""

from dataclasses import dataclass
from typing import NamedTuple, Self

import torch
from torch import Tensor

from neuclust.configuration import check_ranges
from neuclust.errors import ConfigError, DataError

MOST = 1e12  # of a reward: beside larger ones no digits are left for the others
ROOM = 1.25  # a range that grows becomes so many times as wide as needed
GROWTH = 8.0  # times the width that one slate adds to it at each end, at most


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
    """y' = slope · y + shift: y of a range, read on a wider one."""

    slope: float
    shift: float


class RewardRange(NamedTuple):
    """y = (r − low) / (high − low). A reward outside a learned end makes the range `ROOM` times as wide as needed, but
    by at most `GROWTH` times its width wider; one still outside counts as the end. So a range grows logarithmically
    often, rewards that keep coming are covered after a few, and a single huge one costs a factor of 1 + `GROWTH` in
    scale, which learners hardly depend on."""

    low: float
    high: float

    @classmethod
    def first(cls, config: RewardRangeConfig) -> Self:
        """The range before any reward: [0, 1], or next to the end that is declared."""
        low = config.low if config.low is not None else 0.0 if config.high is None else min(0.0, config.high - 1)
        return cls(low, config.high if config.high is not None else max(1.0, low + 1))

    @property
    def width(self) -> float:
        return self.high - self.low

    def covering(self, rewards: Tensor, config: RewardRangeConfig) -> Self:
        """The range for rewards (k,); refused are those outside a declared end."""
        least, most = (float(end) for end in torch.aminmax(rewards))
        bottom, top = (-MOST if config.low is None else config.low), (MOST if config.high is None else config.high)
        if least < bottom or most > top:
            got = f"got {most if most > top else least:g}; scale rewards, or change rewards.low and rewards.high"
            raise DataError(f"auto: expected arm rewards from {bottom:g} to {top:g}, {got}")
        (low, high), step = self, GROWTH * self.width
        if least < low:
            low = max(high - ROOM * (high - least), low - step)
        if most > high:
            high = min(low + ROOM * (most - low), high + step)
        return type(self)(low, high)

    def read(self, rewards: Tensor) -> Tensor:
        """y of rewards, outside [0, 1] where they are outside the range."""
        return (rewards - self.low) / self.width

    def own(self, y: Tensor) -> Tensor:
        """Rewards in their own units, from y."""
        return self.low + self.width * y

    def onto(self, wider: "RewardRange") -> Rescaling:
        """How y changes where rewards are read on a wider range."""
        return Rescaling(self.width / wider.width, (self.low - wider.low) / wider.width)
