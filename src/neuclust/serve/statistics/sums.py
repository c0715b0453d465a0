"""Sums of powers of numbers that come one by one and may be taken back, and intervals of their means."""

import functools
import math
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from neuclust.errors import StateError
from neuclust.evaluation.intervals import Interval, Moments, asymptotic, confidence_sequence

LEVEL = 0.95
ROUNDING = 1e-12  # of a mean square, below which a spread is none
MOST_EQUAL = 1_000  # rows of one value that an interval is made from; more would be narrower by little
Span = tuple[float, float]


@dataclass(slots=True)
class Sums:
    """n, Σx, Σx², Σx³ and Σx⁴: sums of parts add up, and a number that turns out to be another is taken back."""

    count: int = 0
    first: float = 0.0
    second: float = 0.0
    third: float = 0.0
    fourth: float = 0.0

    def add(self, x: float, times: int = 1) -> None:
        """Count a number, or with `times` −1 take back one that was counted."""
        square = x * x
        self.count += times
        self.first += times * x
        self.second += times * square
        self.third += times * square * x
        self.fourth += times * square * square

    def merge(self, other: Self) -> None:
        """Count all numbers of another."""
        self.count += other.count
        self.first += other.first
        self.second += other.second
        self.third += other.third
        self.fourth += other.fourth

    @property
    def mean(self) -> float | None:
        """None where nothing was counted."""
        return self.first / self.count if self.count > 0 else None

    def moments(self) -> Moments:
        """Central sums, as the evaluation package's intervals read them; at least one number was counted."""
        n = self.count
        m1, m2, m3, m4 = (each / n for each in (self.first, self.second, self.third, self.fourth))
        second = m2 - m1 * m1
        if second <= ROUNDING * m2:  # equal rows have no spread, not one of rounding
            return Moments(n, np.asarray(m1), *(np.asarray(0.0) for _ in range(3)))
        third = m3 - 3 * m1 * m2 + 2 * m1**3
        fourth = max(m4 - 4 * m1 * m3 + 6 * m1 * m1 * m2 - 3 * m1**4, second * second)
        return Moments(n, np.asarray(m1), *(np.asarray(n * each) for each in (second, third, fourth)))

    def to_json(self) -> list[float]:
        return [self.count, self.first, self.second, self.third, self.fourth]

    @classmethod
    def from_json(cls, saved: Any) -> Self:
        """What `to_json` wrote."""
        if not isinstance(saved, list) or len(saved) != 5 or type(saved[0]) is not int:
            raise StateError(f"statistics: expected a count and four sums, got {saved!r:.100}; is the save damaged?")
        return cls(saved[0], *(finite(each) for each in saved[1:]))


def finite(value: Any) -> float:
    """A number of a save."""
    if type(value) not in (int, float) or not math.isfinite(value):
        raise StateError(f"statistics: expected a finite number, got {value!r:.100}; is the save damaged?")
    return float(value)


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean with its interval and the number of rows behind it; `low` and `high` None: too few rows for one."""

    mean: float
    low: float | None
    high: float | None
    count: int

    def to_json(self) -> dict[str, float | int | None]:
        return {"mean": self.mean, "low": self.low, "high": self.high, "count": self.count}


def mean_estimate(sums: Sums, span: Span | None = None) -> Estimate | None:
    """The mean and its interval inside `span`; None where nothing was counted.

    Where all rows are equal, as without a click, the confidence sequence says how much may have been missed.
    """
    if sums.count < 1:
        return None
    moments = sums.moments()
    if span is not None and not moments.second.any():
        found = _equal_rows(float(moments.mean), min(sums.count, MOST_EQUAL), span)
    else:
        found = asymptotic(moments, LEVEL, span)
    return _estimate(float(moments.mean), found, sums.count)


def difference_estimate(first: Sums, second: Sums) -> Estimate | None:
    """The difference of the means of two independent groups; None where one of them has fewer than two rows.

    Row i of the first group, of n of N rows, contributes d + (x_i − x̄)N/n, one of the second, of m rows,
    d − (y_i − ȳ)N/m: the mean is d = x̄ − ȳ and the variance of that mean is the sum of both groups' own.
    """
    if first.count < 2 or second.count < 2:
        return None
    a, b, total = first.moments(), second.moments(), first.count + second.count
    p, q = total / a.count, -total / b.count
    joined = Moments(
        total,
        a.mean - b.mean,
        p**2 * a.second + q**2 * b.second,
        p**3 * a.third + q**3 * b.third,
        p**4 * a.fourth + q**4 * b.fourth,
    )
    if not joined.second.any():
        return Estimate(float(joined.mean), None, None, total)
    return _estimate(float(joined.mean), asymptotic(joined, LEVEL), total)


@functools.lru_cache(1024)
def _equal_rows(value: float, count: int, span: Span) -> Interval:
    inside = min(max(value, span[0]), span[1])
    return confidence_sequence(np.full(count, inside), np.ones(count), span, LEVEL)


def _estimate(mean: float, found: Interval, count: int) -> Estimate:
    low, high = float(found.low), float(found.high)
    known = math.isfinite(low) and math.isfinite(high)
    return Estimate(mean, low if known else None, high if known else None, count)
