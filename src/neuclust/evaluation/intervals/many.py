"""Differences of two estimates on the same rows, and statements on m candidates that hold together.

Intervals: candidates scored on one log are strongly correlated, so the largest |T| of all is drawn with their
correlations (`joint_level`), which is narrower than Bonferroni; finite-sample forms, which know no distribution of T,
take Bonferroni's level. Tests: Holm, which is never weaker than Bonferroni and assumes nothing on the dependence.
"""

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtr

from neuclust.errors import ConfigError, DataError
from neuclust.evaluation.intervals.asymptotic import asymptotic
from neuclust.evaluation.intervals.interval import (
    Floats,
    Interval,
    Span,
    checked_level,
    checked_span,
    checked_values,
    interval,
)  # fmt: skip
from neuclust.evaluation.intervals.sequence import lower_bound, running_lower_bounds
from neuclust.randomness import stream

DRAWS = 20_000  # a joint coverage known to 0.15 %


def difference(first: ArrayLike, second: ArrayLike) -> Floats:
    """Contributions (..., n) of the difference of two means over the same rows, for any interval of a mean."""
    a, b = checked_values(first), checked_values(second)
    if a.shape[-1] != b.shape[-1]:
        got = f"got {a.shape[-1]} and {b.shape[-1]}"
        raise DataError(f"paired difference: expected contributions of the same rows, {got}; score both on one log")
    return np.asarray(a - b)


def difference_sequence(
    first: tuple[ArrayLike, ArrayLike], second: tuple[ArrayLike, ArrayLike], span: Span, level: float = 0.95,
    running: bool = False,
) -> Interval:  # fmt: skip
    """The confidence sequence of ν₁ − ν₂, each given by its (values, weights) as in `confidence_sequence`.

    (w₁(r − a) + w₂(b − r))/(2(b − a)) ≥ 0 has mean (ν₁ − ν₂ + b − a)/(2(b − a)) ≤ 1, which bounds the difference from
    below; the same with 1 and 2 exchanged bounds it from above. Where w₁ = w₂ the rewards cancel.
    """
    (least, most), alpha = checked_span(span), (1 - checked_level(level)) / 2
    width = most - least
    (x, w), (y, v) = ((checked_values(values), checked_values(weights)) for values, weights in (first, second))
    scores = [(p - least * q + most * s - r) / (2 * width) for p, q, r, s in ((x, w, y, v), (y, v, x, w))]
    bound = running_lower_bounds if running else lower_bound
    below, above = (2 * width * bound(each, alpha) - width for each in scores)
    reason = "confidence sequence of a paired difference: holds for loggers that learn"
    ends = np.minimum(below, -above), np.maximum(below, -above)
    return interval(*ends, "confidence-sequence", reason, (-width, width))


def bonferroni_level(candidates: int, level: float = 0.95) -> float:
    """1 − α/m, the level of each of m intervals that hold together at 1 − α, whatever their dependence."""
    if candidates < 1:
        raise ConfigError(f"expected at least one, got {candidates}", field="candidates")
    return 1 - (1 - checked_level(level)) / candidates


def joint_level(values: ArrayLike, level: float = 0.95, seed: int = 0) -> float:
    """The level of each of m intervals that hold together at `level`, from contributions (m, n) on the same rows.

    The Gaussian multiplier bootstrap of max_j |T_j|: given the rows, Σ_t g_t z_jt/√n with g_t ~ N(0, 1) is exactly
    N(0, R) with the correlations R (m, m) of the contributions, so R is drawn from, and the rows are read once.
    """
    x, alpha = checked_values(values), 1 - checked_level(level)
    if x.ndim != 2:
        raise DataError(f"joint level: expected contributions (candidates, rows), got shape {x.shape}")
    gaps = x - x.mean(-1, keepdims=True)
    norms = np.sqrt((gaps * gaps).sum(-1))
    gaps = gaps[norms > 0] / norms[norms > 0, None]  # a constant has no error to correct for
    if len(gaps) < 2:
        return 1 - alpha
    values_of, vectors = np.linalg.eigh(gaps @ gaps.T)
    root = vectors * np.sqrt(np.maximum(values_of, 0))
    largest = np.abs(stream(seed, "joint level").standard_normal((DRAWS, len(gaps))) @ root.T).max(1)
    own = 1 - 2 * ndtr(-float(np.quantile(largest, 1 - alpha)))
    return float(np.clip(own, 1 - alpha, bonferroni_level(len(gaps), level)))


def simultaneous(values: ArrayLike, level: float = 0.95, seed: int = 0, span: Span | None = None) -> Interval:
    """`asymptotic` intervals (m,) of contributions (m, n) that all hold together with probability `level`."""
    found = asymptotic(values, joint_level(values, level, seed), span)
    count = found.low.shape[0]
    reason = f"{found.reason}, for {count} candidates together by the largest of their correlated t-values"
    return interval(found.low, found.high, found.kind, reason, span)


def holm(ps: ArrayLike) -> Floats:
    """Holm's corrected p-values (m,): the i-th smallest times (m − i + 1), never falling, at most 1."""
    p = checked_values(ps, "p-values")
    order = np.argsort(p)
    raised = np.minimum(1.0, p[order] * np.arange(len(p), 0, -1))
    found = np.empty_like(p)
    found[order] = np.maximum.accumulate(raised)
    return found
