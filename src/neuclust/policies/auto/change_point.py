"""Change-point detection: a z-test on the leader's excess log-loss over two windows of slates."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from neuclust.configuration import POSITIVE, check_ranges, checked
from neuclust.models.history import GrowingTable, load_tables
from neuclust.models.state import check_lengths, expect, take_count


@dataclass(frozen=True, slots=True)
@checked(threshold=POSITIVE, long_threshold=POSITIVE)
class DriftConfig:
    """Alarm where Z over the last `window` slates exceeds `threshold` (none: never), for abrupt changes, or Z over the
    last `long_window` slates exceeds `long_threshold`, for gradual ones. After an abrupt change the n latest slates are
    kept, `shortest` <= n <= `keep`, with n maximising Z; after a gradual one the `long_keep` latest. There is no alarm
    before two windows of slates, nor within `window` slates of a false one. An alarm leads to a restart if an ensemble
    refitted on the kept slates alone predicts the later half of them better by `gain` nats."""

    window: int = 30
    threshold: float | None = 6.0
    keep: int = 20
    shortest: int = 5
    long_window: int = 120
    long_threshold: float = 5.0
    long_keep: int = 60
    gain: float = 5.0

    @property
    def longest(self) -> int:
        """Slates of the longer window."""
        return max(self.window, self.long_window)

    def __post_init__(self) -> None:
        check_ranges(self, shortest=(1, self.keep), keep=(1, self.window), long_keep=(1, self.long_window))


def log_likelihood(chances: Tensor, rewards: Tensor) -> Tensor:
    """r log p + (1 − r) log(1 − p), summed over the last dimension: (…, k), (k,) -> (…)."""
    return (rewards * chances.log() + (1 - rewards) * torch.log1p(-chances)).sum(-1)


def excess_log_loss(chances: Tensor, rewards: Tensor) -> tuple[float, float]:
    """Σ[−log-likelihood − H(p)], of mean 0 where p is right, and its variance then, Σ p(1 − p) log²(p/(1 − p))."""
    odds = torch.logit(chances)
    excess = -((rewards - chances) * odds).sum()
    return float(excess), float((chances * (1 - chances) * odds * odds).sum())


def keep_latest(table: GrowingTable, most: int) -> None:
    """Drop the oldest rows of a table that has twice as many as are read."""
    if len(table) >= 2 * most:
        table.load(table.rows[-most:])


class ChangePointTest:
    """Z = Σ excess / √Σ variance over the latest slates."""

    def __init__(self, config: DriftConfig) -> None:
        self.config = config
        self._excess, self._variance = GrowingTable(), GrowingTable()
        self._seen = 0  # number of slates
        self._quiet_until = 0  # number of slates before which there is no alarm

    def __len__(self) -> int:
        return self._seen

    def observe(self, chances: Tensor, rewards: Tensor) -> None:
        """Predictions (k,) made before the rewards (k,) were seen."""
        excess, variance = excess_log_loss(chances, rewards)
        self._seen += 1
        for table, value in ((self._excess, excess), (self._variance, variance)):
            table.append(value)
            keep_latest(table, self.config.longest)

    def statistic(self, slates: int) -> float:
        """Z of the latest slates."""
        spread = math.sqrt(float(self._variance.rows[-slates:].sum()))
        return float(self._excess.rows[-slates:].sum()) / spread if spread > 0 else 0.0

    def change(self) -> int | None:
        """How many slates to keep after a detected change; None: no change is detected."""
        config, seen = self.config, self._seen
        if config.threshold is None or seen < self._quiet_until:
            return None
        if seen >= 2 * config.window and self.statistic(config.window) > config.threshold:
            return max(range(config.shortest, config.keep + 1), key=self.statistic)
        if seen >= 2 * config.long_window and self.statistic(config.long_window) > config.long_threshold:
            return config.long_keep
        return None

    def suspend(self) -> None:
        """After a false alarm: none for `window` slates."""
        self._quiet_until = self._seen + self.config.window

    def state_dict(self) -> dict[str, Tensor]:
        tables = {"excess": self._excess.rows.clone(), "variance": self._variance.rows.clone()}
        return tables | {"seen": torch.tensor(self._seen), "quiet_until": torch.tensor(self._quiet_until)}

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        seen = take_count(state, "seen")

        def check(tables: Mapping[str, Tensor]) -> None:
            check_lengths(**tables)
            expect(len(tables["excess"]) >= min(seen, self.config.longest), f"the latest of {seen} slates", "fewer")
            expect(bool((tables["variance"] >= 0).all()), "variance of at least 0", "less")

        load_tables({"excess": self._excess, "variance": self._variance}, state, check)
        self._seen, self._quiet_until = seen, take_count(state, "quiet_until")
