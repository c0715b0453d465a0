"""The range of rewards: amounts, counts and negative values as numbers from 0 to 1, which is what learners read."""

from dataclasses import dataclass
from typing import NamedTuple, Self

import torch
from torch import Tensor

from neuclust.configuration import check_ranges
from neuclust.errors import ConfigError, DataError

MOST = 1e12  # of a reward: beside larger ones no digits are left for the others
ROOM = 1.5  # sizes of a reward from 0 that an end moves to
MOST_ZERO = 0.9  # of the range below 0, at most
FARTHEST = 8.0  # widths outside the range, up to which a reward counts towards the size


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
    """y = (r − low) / (high − low), at least 0 and at most 1. A learned end follows the size Σr²/Σr of the rewards on
    its side of 0; for an amount that is paid or not this is the amount. Where a reward lies outside an end that is
    nearer than the size, the end moves to `ROOM` sizes: logarithmically often. Rewards farther out count as the
    end, and a single huge one, of which the size takes up to `FARTHEST` widths, hardly moves it."""

    low: float
    high: float
    above: tuple[float, float] = (0.0, 0.0)  # Σr and Σr² of rewards above 0, or above the declared low
    below: tuple[float, float] = (0.0, 0.0)  # of −r of those below 0, or below the declared high

    @classmethod
    def first(cls, config: RewardRangeConfig) -> Self:
        """The range before any reward: [0, 1], or next to the end that is declared."""
        low = config.low if config.low is not None else 0.0 if config.high is None else min(0.0, config.high - 1)
        return cls(low, config.high if config.high is not None else max(1.0, low + 1))

    @property
    def width(self) -> float:
        return self.high - self.low

    @property
    def zero(self) -> float:
        """y of the reward 0, or of the end next to it."""
        return min(max(-self.low / self.width, 0.0), MOST_ZERO)

    @property
    def all_zero(self) -> bool:
        """Whether every reward so far was 0, or the end next to it."""
        return self.above[0] == 0 == self.below[0]

    @property
    def tensor(self) -> Tensor:
        """All numbers, (6,)."""
        return torch.tensor([self.low, self.high, *self.above, *self.below], dtype=torch.float64)

    def covering(self, rewards: Tensor, config: RewardRangeConfig) -> Self:
        """The range after rewards (k,); refused are those outside a declared end."""
        least, most = (float(end) for end in torch.aminmax(rewards))
        bottom, top = (-MOST if config.low is None else config.low), (MOST if config.high is None else config.high)
        if least < bottom or most > top:
            got = f"got {most if most > top else least:g}; scale rewards, or change rewards.low and rewards.high"
            raise DataError(f"auto: expected arm rewards from {bottom:g} to {top:g}, {got}")
        zero, limit = min(max(0.0, bottom), top), FARTHEST * self.width
        offset = rewards.clamp(self.low - limit, self.high + limit) - zero
        above, below = _added(self.above, offset), _added(self.below, -offset)
        low, high = self.low, self.high
        if most > high:
            high = zero + _reach(high - zero, above)
        if least < low:
            low = zero - _reach(zero - low, below)
        return type(self)(low, high, above, below)

    def read(self, rewards: Tensor) -> Tensor:
        """y of rewards, not yet cut off at 0 and 1."""
        return (rewards - self.low) / self.width

    def own(self, y: Tensor) -> Tensor:
        """Rewards in their own units, from y."""
        return self.low + self.width * y

    def onto(self, wider: "RewardRange") -> Rescaling:
        """How y changes where rewards are read on a wider range."""
        return Rescaling(self.width / wider.width, (self.low - wider.low) / wider.width)


def _added(sums: tuple[float, float], values: Tensor) -> tuple[float, float]:
    """Σv and Σv² with the positive ones of values (k,)."""
    positive = values.clamp(min=0)
    return sums[0] + float(positive.sum()), sums[1] + float(positive @ positive)


def _reach(reach: float, sums: tuple[float, float]) -> float:
    """How far from 0 an end lies, given Σv and Σv²."""
    size = sums[1] / sums[0]
    return ROOM * size if size > reach else reach
