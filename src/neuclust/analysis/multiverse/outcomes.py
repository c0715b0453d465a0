"""Cells of a grid of readings as numbers: paired differences with intervals, beside the published regrets."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from neuclust.analysis.published import published

NEUCLUST, CN_UCB, WITHOUT_F = "neuclust", "cn-ucb", "without-f"
EXPECTED, CLIPPED = "expected", "clipped"
CONFIDENCE = 0.95
PUBLISHED_RUNS = 10  # behind every printed mean on MovieLens
PRINTED = {
    NEUCLUST: published("movielens", NEUCLUST).regret or 0.0,
    CN_UCB: published("movielens", CN_UCB).regret or 0.0,
}
INFERRED = {NEUCLUST: 14.7, CN_UCB: 34.0}  # expected regret behind the printed numbers: see docs/reproduction.md
FEW_FAILURES = 0.01  # of a run's trainings
AHEAD, LEVEL, BEHIND, FAILED = "ahead", "level", "behind", "failed"
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean over seeds with its standard error and the interval mean ± t·s.e.; no interval from one seed."""

    mean: float
    error: float
    low: float
    high: float
    count: int

    @property
    def decided(self) -> bool:
        """Whether the interval leaves out 0."""
        return self.low > 0.0 or self.high < 0.0


def estimate(values: Sequence[float] | Floats, tests: int = 1) -> Estimate:
    """Mean of (n,) values; with several tests the interval is Bonferroni's, 1 − 0.05/tests."""
    array = np.asarray(values, dtype=np.float64)
    mean, count = float(array.mean()), len(array)
    if count < 2:
        return Estimate(mean, math.nan, -math.inf, math.inf, count)
    error = float(array.std(ddof=1)) / math.sqrt(count)
    reach = _quantile(tests, count) * error
    return Estimate(mean, error, mean - reach, mean + reach, count)


@lru_cache
def _quantile(tests: int, count: int) -> float:
    """Of Student's t, two-sided; a page asks for the same few thousands of times."""
    from scipy.stats import t

    return float(t.ppf(1.0 - (1.0 - CONFIDENCE) / (2 * tests), count - 1))


def covers_printed(values: Sequence[float] | Floats, printed: float) -> bool:
    """Whether a printed mean of ten runs is one that ten further runs would give: |x̄ − printed| ≤ t·s·√(1/n + 1/10)."""
    array = np.asarray(values, dtype=np.float64)
    count = len(array)
    if count < 2:
        return False
    spread = float(array.std(ddof=1)) * math.sqrt(1.0 / count + 1.0 / PUBLISHED_RUNS)
    return abs(float(array.mean()) - printed) <= _quantile(1, count) * spread


@dataclass(frozen=True)
class Outcome:
    """A cell: its options, per role and measure the regret of every seed, and the share of trainings that failed."""

    options: tuple[str, ...]
    engine: str
    regret: Mapping[str, Mapping[str, Mapping[int, float]]]  # role → measure → seed → sum over the rounds
    failed_share: float  # of the rounds whose training failed, the larger of NeUClust's and CN-UCB's

    def gaps(self, one: str = NEUCLUST, other: str = CN_UCB, measure: str = EXPECTED) -> dict[int, float]:
        """Paired differences one − other of the seeds that both have played."""
        left, right = self.regret[one][measure], self.regret[other][measure]
        return {seed: left[seed] - right[seed] for seed in left if seed in right}

    @property
    def played(self) -> bool:
        return len(self.gaps()) > 1

    @property
    def sound(self) -> bool:
        """Played, and its networks trained in almost all rounds: the two algorithms are compared, not an accident."""
        return self.played and self.failed_share <= FEW_FAILURES

    @cached_property
    def gap(self) -> Estimate:
        """NeUClust − CN-UCB, expected regret: below 0 the paper's order holds."""
        return estimate(list(self.gaps().values()))

    @property
    def order(self) -> str:
        """Whether NeUClust is ahead of CN-UCB, by the interval."""
        if not self.played:
            return FAILED
        return AHEAD if self.gap.high < 0 else BEHIND if self.gap.low > 0 else LEVEL

    @property
    def effect_of_f(self) -> Estimate:
        """NeUClust − NeUClust without F, expected regret: below 0 F helps."""
        return estimate(list(self.gaps(NEUCLUST, WITHOUT_F).values()))

    def mean(self, role: str, measure: str = EXPECTED) -> Estimate:
        return estimate(list(self.regret[role][measure].values()))

    def size_fits(self, role: str) -> bool:
        """Whether the printed clipped regret of a role is one this cell gives."""
        return covers_printed(list(self.regret[role][CLIPPED].values()), PRINTED[role])

    @property
    def near(self) -> bool:
        """Whether CN-UCB, the yardstick, has half to twice the expected regret behind its printed number.

        NeUClust's own size is not asked for: with both sizes the order would be asked for, too.
        """
        return 0.5 <= self.mean(CN_UCB).mean / INFERRED[CN_UCB] <= 2.0

    @property
    def gap_fits(self) -> bool:
        """Whether the printed difference is one this cell gives, runs taken as pairs."""
        clipped = list(self.gaps(measure=CLIPPED).values())
        return covers_printed(clipped, PRINTED[NEUCLUST] - PRINTED[CN_UCB])


def outcomes_of(record: Mapping[str, Any]) -> tuple[Outcome, ...]:
    """The cells of a record in their order."""
    return tuple(_outcome(cell, record["rounds"]) for cell in record["cells"])


def _outcome(cell: Mapping[str, Any], rounds: int) -> Outcome:
    regret = {
        role: {measure: dict(zip(runs["seeds"], runs[measure], strict=True)) for measure in (EXPECTED, CLIPPED)}
        for role, runs in cell["runs"].items()
    }
    counts = (cell["runs"][role]["failed"] for role in (NEUCLUST, CN_UCB))
    shares = [sum(failed) / (rounds * len(failed)) for failed in counts if failed]
    return Outcome(tuple(cell["options"]), cell["engine"], regret, max(shares, default=0.0))
