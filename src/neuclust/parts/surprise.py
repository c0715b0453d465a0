"""Has the world changed? A test of how surprising rewards are to the one who predicted them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from neuclust.errors import ConfigError
from neuclust.parts.history import GrowingTable


@dataclass(frozen=True, slots=True)
class DriftConfig:
    """Alarm where Z of the last `window` slates exceeds `threshold` (none: never). What came before the change is
    forgotten: the `shortest` to `keep` latest slates stay, those for which Z is largest. No alarm before `window`
    slates were seen.
    """

    window: int = 30
    threshold: float | None = 8.0
    keep: int = 20
    shortest: int = 5

    def __post_init__(self) -> None:
        if not 1 <= self.shortest <= self.keep <= self.window:
            raise ConfigError(
                "drift: expected 1 <= shortest <= keep <= window, got "
                f"{self.shortest}, {self.keep} and {self.window} slates"
            )
        if self.threshold is not None and not self.threshold > 0:
            raise ConfigError(f"drift.threshold: expected a number above 0 or none, got {self.threshold}")


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
        config = self.config
        if config.threshold is None or len(self._excess) < 2 * config.window:
            return None
        if self.statistic(config.window) <= config.threshold:
            return None
        return max(range(config.shortest, config.keep + 1), key=self.statistic)

    def state_dict(self) -> dict[str, Tensor]:
        return {"excess": self._excess.rows.clone(), "variance": self._variance.rows.clone()}

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        self._excess.load(state["excess"])
        self._variance.load(state["variance"])
