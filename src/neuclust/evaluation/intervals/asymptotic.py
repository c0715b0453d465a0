"""The interval of a mean from its first four moments: Student's t, corrected for skewness and for heavy tails.

Contributions of off-policy estimators are skewed: a few rows carry large weights. The studentised mean T is then skewed
the other way, and a plain t-interval misses above. Two corrections are made, both of which fade as n grows:

- Hall's cubic transformation g(T) = T + aγT² + a²γ²T³/3 + γ/(6√n), a = 1/(3√n), γ the skewness, which is monotone and
  removes the term of order 1/√n (Hall, 1992, "On the removal of skewness by transformation");
- Satterthwaite's degrees of freedom 2n/(κ − 1), κ the kurtosis, at most n − 1: the variance is known less well
  than from n normal rows (κ = 3), since few rows decide it.
"""

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import stdtr, stdtrit

from neuclust.errors import DataError
from neuclust.evaluation.intervals.interval import (
    EQUAL,
    Floats,
    Interval,
    Span,
    checked_level,
    checked_values,
    interval,
)

SKEWLESS = 1e-8  # of aγ, below which the cubic is the identity to the last digits
REASON = "t-interval of the mean, corrected for skewness and heavy tails"


@dataclass(frozen=True, slots=True)
class Moments:
    """n, mean and the central sums Σ(x − x̄)², Σ(x − x̄)³, Σ(x − x̄)⁴ of rows, (...) each; parts of a log merge."""

    count: int
    mean: Floats
    second: Floats
    third: Floats
    fourth: Floats

    @classmethod
    def of(cls, values: ArrayLike) -> Self:
        """Of contributions (..., n)."""
        x = checked_values(values)
        mean = np.where(np.ptp(x, -1) == 0, x[..., 0], x.mean(-1))  # equal rows have no spread, not one of rounding
        gaps = x - mean[..., None]
        squares = gaps * gaps
        return cls(x.shape[-1], mean, squares.sum(-1), (squares * gaps).sum(-1), (squares * squares).sum(-1))

    def merged(self, other: Self) -> Self:
        """Of the rows of both (Pébay, 2008)."""
        n, m = self.count, other.count
        both, gap = n + m, other.mean - self.mean
        mean = self.mean + gap * m / both
        second = self.second + other.second + gap**2 * n * m / both
        third = self.third + other.third + gap**3 * n * m * (n - m) / both**2
        third = third + 3 * gap * (n * other.second - m * self.second) / both
        fourth = self.fourth + other.fourth + gap**4 * n * m * (n * n - n * m + m * m) / both**3
        fourth = fourth + 6 * gap**2 * (n * n * other.second + m * m * self.second) / both**2
        fourth = fourth + 4 * gap * (n * other.third - m * self.third) / both
        return type(self)(both, mean, second, third, fourth)

    @property
    def error(self) -> Floats:
        """Standard error of the mean, infinite from one row."""
        if self.count == 1:
            return np.full_like(self.mean, np.inf)
        return np.asarray(np.sqrt(self.second / (self.count - 1) / self.count))

    @property
    def skewness(self) -> Floats:
        """γ = √n Σ(x − x̄)³ / (Σ(x − x̄)²)^{3/2}, 0 where nothing varies."""
        return _ratio(np.sqrt(self.count) * self.third, self.second * np.sqrt(self.second))

    @property
    def degrees(self) -> Floats:
        """min(n − 1, 2n/(κ − 1)) degrees of freedom, at least 1."""
        n = self.count
        excess = _ratio(n * self.fourth, self.second * self.second) - 1
        return np.clip(_ratio(np.full_like(excess, 2.0 * n), excess, where=excess > 0, other=n), 1, max(n - 1, 1))


def _ratio(above: Floats, below: Floats, where: ArrayLike | None = None, other: float = 0.0) -> Floats:
    fits = below > 0 if where is None else np.asarray(where)
    return np.asarray(np.divide(above, below, out=np.full_like(np.asarray(above), other), where=fits))


def asymptotic(values: ArrayLike | Moments, level: float = 0.95, span: Span | None = None) -> Interval:
    """x̄ − s/√n·g⁻¹(±q), q the quantile of Student's t with `Moments.degrees`; g⁻¹(x) = ((1 + 3aγ(x − bγ))^⅓ − 1)/(aγ).

    `values` are contributions (..., n) of independent rows, or their moments where a log is read in parts. For a
    self-normalised estimate they are linearised, ν̂ + w(r − ν̂)/w̄, or better `self_normalised` takes the place of this.
    From one row it is unbounded but for `span`. Where all rows are equal it has no width, which says little of a mean
    and all of a difference of equal policies.
    """
    found = values if isinstance(values, Moments) else Moments.of(values)
    if found.count == 1:
        far = np.full_like(found.mean, np.inf)
        return interval(-far, far, "asymptotic", "one row has no spread, so every value is possible", span)
    q = np.asarray(stdtrit(found.degrees, (1 + checked_level(level)) / 2), np.float64)
    low, high = (found.mean - found.error * _restored(end, found) for end in (q, -q))
    return interval(low, high, "asymptotic", REASON if found.second.any() else EQUAL, span)


def _coefficients(found: Moments) -> tuple[Floats, Floats]:
    """aγ, kept away from 0, and bγ."""
    slope = found.skewness / (3 * np.sqrt(found.count))
    return np.where(np.abs(slope) < SKEWLESS, SKEWLESS, slope), slope / 2


def _restored(x: Floats, found: Moments) -> Floats:
    """g⁻¹(x)."""
    slope, shift = _coefficients(found)
    return np.asarray((np.cbrt(1 + 3 * slope * (x - shift)) - 1) / slope)


def p_value(values: ArrayLike | Moments, mean: float = 0.0) -> Floats:
    """Two-sided p of the hypothesis E[x] = mean, (...): below 1 − level just where `asymptotic` leaves the mean out."""
    found = values if isinstance(values, Moments) else Moments.of(values)
    if found.count == 1:
        raise DataError("p value: expected at least two rows, got one; a single row has no spread")
    gap = found.mean - mean
    t = np.divide(gap, found.error, out=np.where(gap == 0, 0.0, np.copysign(np.inf, gap)), where=found.error > 0)
    slope, shift = _coefficients(found)
    moved = np.where(np.isfinite(t), t, 0.0)
    moved = moved + slope * moved**2 + slope**2 * moved**3 / 3 + shift
    return np.asarray(np.where(np.isfinite(t), 2 * stdtr(found.degrees, -np.abs(moved)), 0.0))
