"""The interval of a mean of bounded values that holds at every n."""

import numpy as np
from numpy.typing import ArrayLike

from neuclust.errors import DataError
from neuclust.evaluation.intervals.interval import (
    Interval,
    Span,
    checked_level,
    checked_span,
    checked_values,
    interval,
)  # fmt: skip

REASON = "empirical Bernstein bound: holds at every number of rows, for independent rows of bounded values"


def empirical_bernstein(values: ArrayLike, bounds: Span, level: float = 0.95, span: Span | None = None) -> Interval:
    """x̄ ± (√(2s²·ln(4/α)/n) + 7(b − a)·ln(4/α)/(3(n − 1))) of independent values (..., n) inside `bounds` (a, b).

    Maurer and Pontil (2009), theorem 4, on both sides at α/2. The bounds are known beforehand: the largest possible
    weight times the largest reward, not the largest value seen.
    """
    x, (least, most) = checked_values(values), checked_span(bounds, "bounds")
    if x.min() < least or x.max() > most:
        got = f"got values from {x.min():g} to {x.max():g}"
        raise DataError(f"empirical Bernstein: expected values from {least:g} to {most:g}, {got}; widen the bounds")
    n, mean = x.shape[-1], x.mean(-1)
    if n == 1:
        half = np.full_like(mean, np.inf)
    else:
        log = np.log(4 / (1 - checked_level(level)))
        half = np.sqrt(2 * x.var(-1, ddof=1) * log / n) + 7 * (most - least) * log / (3 * (n - 1))
    inside = interval(mean - half, mean + half, "empirical-bernstein", REASON, (least, most))
    return inside if span is None else interval(inside.low, inside.high, inside.kind, REASON, span)
