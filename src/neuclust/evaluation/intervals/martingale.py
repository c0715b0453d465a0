"""The interval for logs of learning policies: rows depend on those before, their contributions keep one mean.

x_t − ν is a martingale difference: given all rows before t its mean is 0, whatever was learned. The studentised sum is
asymptotically normal where the average conditional variance settles. A logger that learns moves it: rows are worth
little while the target's slates are rare, and much once they are played. Predictable weights h_t ∝ 1/√Var(x_t | past)
level it out (Hadad, Hirshberg, Zhan, Wager and Athey, 2021), and Σh_t x_t / Σh_t still has mean ν in the limit.
"""

import numpy as np
from numpy.typing import ArrayLike

from neuclust.errors import DataError
from neuclust.evaluation.intervals.asymptotic import REASON as MEAN
from neuclust.evaluation.intervals.asymptotic import asymptotic
from neuclust.evaluation.intervals.interval import Floats, Interval, Span, checked_values, interval
from neuclust.evaluation.intervals.self_normalised import REASON as RATIO
from neuclust.evaluation.intervals.self_normalised import self_normalised

PLAIN = "martingale interval: the rows depend on what was learned from those before"
LEVELLED = f"{PLAIN}, and are weighted so that their variance stays level"


def stabilisers(second_moments: ArrayLike) -> Floats:
    """h_t = 1/√E[w_t² | past], (..., n), from E[w_t² | past] = Σ_s π(s)²/e_t(s), averaged over contexts.

    Where the target plays one slate for certain this is the root of its chance under the logger. It may depend on what
    was learned before t and never on row t itself, nor on its context: weights that do move the estimate to the
    contexts that they favour.
    """
    found = checked_values(second_moments, "second moments of the weights")
    if not (found > 0).all():
        raise DataError("second moments of the weights: expected numbers above 0, got others; give E[w²] of each row")
    return np.asarray(1 / np.sqrt(found))


def checked_stabilisers(h: ArrayLike) -> Floats:
    """Weights (..., n) of at least 0, with a sum above 0."""
    weights = checked_values(h, "stabilising weights")
    if (weights < 0).any() or not (weights.sum(-1) > 0).all():
        raise DataError("stabilising weights: expected numbers of at least 0, and some above, got others")
    return weights


def levelled(values: ArrayLike, h: ArrayLike | None = None) -> Floats:
    """Contributions n·h_t(x_t − ν̂)/Σh + ν̂, (..., n), of ν̂ = Σh_t x_t / Σh_t: their mean is ν̂."""
    x = checked_values(values)
    if h is None:
        return x
    weights = np.broadcast_to(checked_stabilisers(h), x.shape)
    share = weights / weights.sum(-1, keepdims=True)
    mean = (share * x).sum(-1, keepdims=True)
    return np.asarray(mean + x.shape[-1] * share * (x - mean))


def martingale(
    values: ArrayLike,
    level: float = 0.95,
    h: ArrayLike | None = None,
    span: Span | None = None,
    weights: ArrayLike | None = None,
) -> Interval:
    """{v: p of Σh_t(x_t − v·w_t) ≥ 1 − level} of contributions x (..., n) in the order they were logged.

    `h` (..., n) are predictable weights (`stabilisers`); None: equal ones, which hold where what was learned settles.
    `weights` w (..., n) make it the interval of the self-normalised estimate Σh_t x_t / Σh_t w_t; None: ones. Each term
    has mean 0 given the rows before it, whatever was learned, if v is the value.
    """
    reason = PLAIN if h is None else LEVELLED
    if h is None and weights is None:
        found, usual = asymptotic(values, level), MEAN
    else:
        x = checked_values(values)
        shares = np.broadcast_to(1.0 if h is None else checked_stabilisers(h), x.shape)
        w = shares if weights is None else shares * checked_values(weights, "weights")
        found, usual = self_normalised(shares * x, w, level, kind="martingale"), RATIO
    return interval(found.low, found.high, "martingale", reason if found.reason == usual else found.reason, span)
