"""What every interval returns, and what it is made from: contributions (..., n) whose mean is the estimate."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from neuclust.errors import ConfigError, DataError

Floats = NDArray[np.float64]
Kind = Literal["asymptotic", "bootstrap", "empirical-bernstein", "martingale", "confidence-sequence"]
KINDS: tuple[Kind, ...] = get_args(Kind)
Span = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Interval:
    """Both ends, (...) each, the kind of the interval and one sentence on how it was made."""

    low: Floats
    high: Floats
    kind: Kind
    reason: str

    @property
    def width(self) -> Floats:
        return np.asarray(self.high - self.low)

    def covers(self, value: ArrayLike) -> NDArray[np.bool_]:
        """Whether low ≤ value ≤ high, (...)."""
        at = np.asarray(value, np.float64)
        return np.asarray((self.low <= at) & (at <= self.high))


def interval(low: ArrayLike, high: ArrayLike, kind: Kind, reason: str, span: Span | None = None) -> Interval:
    """An interval, clipped to the values that are possible where `span` is given."""
    ends = [np.asarray(end, np.float64) for end in (low, high)]
    if span is not None:
        least, most = checked_span(span)
        ends = [np.clip(end, least, most) for end in ends]
    return Interval(ends[0], ends[1], kind, reason)


EQUAL = "all rows are equal, which leaves no spread to judge by"


def checked_values(values: ArrayLike, name: str = "contributions") -> Floats:
    """Finite numbers (..., n) with n ≥ 1, as float64."""
    found = np.asarray(values, np.float64)
    if found.ndim == 0 or found.shape[-1] == 0:
        raise DataError(f"{name}: expected at least one row, got shape {found.shape}; give one number for each row")
    if not np.isfinite(found).all():
        raise DataError(f"{name}: expected finite numbers, got NaN or infinity; drop rows without a reward")
    return found


def checked_level(level: float) -> float:
    """A confidence level inside (0, 1)."""
    if not 0 < level < 1:
        raise ConfigError(f"expected a number above 0 and below 1, got {level!r}; 0.95 is usual", field="level")
    return float(level)


def checked_span(span: Sequence[float], name: str = "span") -> Span:
    """(low, high) with low < high."""
    low, high = (float(end) for end in span)
    if not low < high:
        raise ConfigError(f"expected its lower end below its upper one, got ({low:g}, {high:g})", field=name)
    return low, high


def effective_sample_size(weights: ArrayLike) -> Floats:
    """(Σw)² / Σw² of weights (..., n): (...), 0 where all weights are 0."""
    found = checked_values(weights, "weights")
    squares = (found * found).sum(-1)
    return np.asarray(np.divide(found.sum(-1) ** 2, squares, out=np.zeros_like(squares), where=squares > 0))


def expected_sample_size(second_moments: ArrayLike) -> Floats:
    """n² / Σ_t E[w_t²] of E[w_t² | past] (..., n), which target and design of a row have before it is drawn: (...).

    A log that happens to lack the large weights has a large (Σw)²/Σw², and an estimate that is too low with it; the
    smaller of both sizes is what a normal approximation should be trusted by.
    """
    found = checked_values(second_moments, "second moments of the weights")
    if not (found > 0).all():
        raise DataError("second moments of the weights: expected numbers above 0, got others; give E[w²] of each row")
    return np.asarray(found.shape[-1] ** 2 / found.sum(-1))
