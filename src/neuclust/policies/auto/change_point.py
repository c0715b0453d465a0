"""Has the world changed? A test of how surprising rewards are to the one who predicted them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from neuclust.configuration import check_entries
from neuclust.errors import ConfigError
from neuclust.models.history import GrowingTable
from neuclust.models.state import check_lengths, expect, take_count


@dataclass(frozen=True, slots=True)
class DriftConfig:
    """Alarm where Z of the last `window` slates exceeds `threshold` (none: never), for changes at a stroke, or that of
    the last `long_window` slates `long_threshold`, for slow ones. What came before the change would be forgotten: of
    the first kind the `shortest` to `keep` latest slates stay, those for which Z is largest, of the second the
    `long_keep` latest. No alarm before two windows of slates were seen, nor in the `window` slates after a false one.

    An alarm counts if a learner of the kept slates alone foresaw the later half of them better by `gain` nats.
    """

    window: int = 30
    threshold: float | None = 6.0
    keep: int = 20
    shortest: int = 5
    long_window: int = 120
    long_threshold: float = 5.0
    long_keep: int = 60
    gain: float = 5.0

    def __post_init__(self) -> None:
        check_entries(self)
        if not (1 <= self.shortest <= self.keep <= self.window and 1 <= self.long_keep <= self.long_window):
            raise ConfigError(
                "drift: expected 1 <= shortest <= keep <= window and 1 <= long_keep <= long_window, got "
                f"{self.shortest}, {self.keep} and {self.window}, {self.long_keep} and {self.long_window} slates"
            )
        if self.threshold is not None and not (self.threshold > 0 and self.long_threshold > 0):
            raise ConfigError(
                "drift: expected a threshold above 0 or none and a long_threshold above 0, got "
                f"{self.threshold} and {self.long_threshold}"
            )


def log_likelihood(chances: Tensor, rewards: Tensor) -> Tensor:
    """r log p + (1 − r) log(1 − p), summed over the last dimension: (…, k), (k,) -> (…)."""
    return (rewards * chances.log() + (1 - rewards) * torch.log1p(-chances)).sum(-1)


def surprise(chances: Tensor, rewards: Tensor) -> tuple[float, float]:
    """Σ[−log-likelihood − H(p)] and its variance Σ p(1 − p) log²(p/(1 − p)) under p: expectation 0 if p is right."""
    odds = torch.logit(chances)
    excess = -((rewards - chances) * odds).sum()
    return float(excess), float((chances * (1 - chances) * odds * odds).sum())


class SurpriseTest:
    """Z = Σ excess / √Σ variance over the latest slates."""

    def __init__(self, config: DriftConfig) -> None:
        self.config = config
        self._excess, self._variance = GrowingTable(), GrowingTable()
        self._quiet_until = 0  # slates seen, before which there is no alarm

    def __len__(self) -> int:
        return len(self._excess)

    def observe(self, chances: Tensor, rewards: Tensor) -> None:
        """Predictions (k,) made before the rewards (k,) were seen."""
        excess, variance = surprise(chances, rewards)
        self._excess.append(excess)
        self._variance.append(variance)

    def statistic(self, slates: int) -> float:
        """Z of the latest slates."""
        spread = math.sqrt(float(self._variance.rows[-slates:].sum()))
        return float(self._excess.rows[-slates:].sum()) / spread if spread > 0 else 0.0

    def change(self) -> int | None:
        """How many slates ago the world seems to have changed; None: it has not."""
        config, seen = self.config, len(self._excess)
        if config.threshold is None or seen < self._quiet_until:
            return None
        if seen >= 2 * config.window and self.statistic(config.window) > config.threshold:
            return max(range(config.shortest, config.keep + 1), key=self.statistic)
        if seen >= 2 * config.long_window and self.statistic(config.long_window) > config.long_threshold:
            return config.long_keep
        return None

    def dismiss(self) -> None:
        """The alarm was false: none for a while."""
        self._quiet_until = len(self._excess) + self.config.window

    def state_dict(self) -> dict[str, Tensor]:
        return {
            "excess": self._excess.rows.clone(),
            "variance": self._variance.rows.clone(),
            "quiet_until": torch.tensor(self._quiet_until),
        }

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        excess, variance = self._excess.taken(state, "excess"), self._variance.taken(state, "variance")
        check_lengths(excess=excess, variance=variance)
        expect(bool((variance >= 0).all()), "variance of at least 0", "less")
        self._excess.load(excess)
        self._variance.load(variance)
        self._quiet_until = take_count(state, "quiet_until")
