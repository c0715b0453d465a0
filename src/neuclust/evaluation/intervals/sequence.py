"""Confidence sequences: intervals that hold at every n at once, for learning loggers too, with unbounded weights.

Scores ξ_t ≥ 0 with E[ξ_t | past] = μ ≤ 1 and predictable bets λ_t ∈ [0, 1) give two processes that stay below 1/α
for ever with probability at least 1 − α, if m = μ:

    betting    Π (1 + λ_t(ξ_t − m)),                                 a martingale at m = μ, falling in m;
    Bernstein  Π exp(λ_t(ξ_t − m) − ψ(λ_t)(ξ_t − ξ̂_{t−1})²),        ψ(λ) = −log(1 − λ) − λ, a supermartingale,

so that the m at which one reaches 1/α is a lower bound of μ (Waudby-Smith, Wu, Ramdas, Karampatziakis and Mineiro,
"Anytime-valid off-policy inference for contextual bandits"; Waudby-Smith and Ramdas, "Estimating means of bounded
random variables by betting"). With rewards r inside a span (a, b) and weights of mean 1, w(r − a)/(b − a) bounds the
value from below and w(b − r)/(b − a) from above; no largest weight is needed.
"""

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from neuclust.errors import ConfigError, DataError
from neuclust.evaluation.intervals.interval import (
    Floats,
    Interval,
    Span,
    checked_level,
    checked_span,
    checked_values,
    interval,
)  # fmt: skip

Form = Literal["betting", "bernstein"]
LARGEST_BET = {"betting": 0.9, "bernstein": 0.5}  # ψ grows without limit at 1
PRIOR_VARIANCE = 0.25  # of the scores, before any was seen; counts as one row
STEPS = 12  # of Newton's method, which doubles its digits
ROUNDING = 1e-9  # by which a score may be below 0
REASON = "confidence sequence: holds at every number of rows and for loggers that learn, without a largest weight"


def bets(scores: Floats, log: float, form: Form, horizon: int | None) -> tuple[Floats, Floats]:
    """λ_t = min(c, √(2·log/(σ̂²_{t−1}·h_t))) and ξ̂_{t−1} ≤ 1, (..., n) each, from the rows before t alone.

    h_t is the horizon n, for which the interval at n is the narrowest, or t·log(1 + t) where every t matters.
    """
    t = np.arange(1, scores.shape[-1] + 1)
    before = np.cumsum(scores, -1)
    before = (0.5 + before - scores) / t  # a guess of one half counts as one row
    means = np.minimum(before, 1.0)
    squares = np.cumsum((scores - means) ** 2, -1)
    variances = (PRIOR_VARIANCE + np.concatenate([np.zeros((*scores.shape[:-1], 1)), squares[..., :-1]], -1)) / t
    h = t * np.log1p(t) if horizon is None else np.full(len(t), float(horizon))
    return np.minimum(LARGEST_BET[form], np.sqrt(2 * log / (variances * h))), means


def lower_bound(scores: ArrayLike, alpha: float, form: Form = "betting") -> Floats:
    """A lower bound of the mean μ ≤ 1 of scores (..., n) ≥ 0 that holds with probability 1 − α at this n: (...)."""
    xi, log = _checked_scores(scores), float(np.log(1 / alpha))
    bet, means = bets(xi, log, form, xi.shape[-1])
    bernstein = _bernstein(xi, bet, means, log)[..., -1]
    if form == "bernstein":
        return np.clip(bernstein, 0.0, 1.0)
    return _root(xi, bet, log)


def running_lower_bounds(scores: ArrayLike, alpha: float) -> Floats:
    """Lower bounds (..., n) of the mean of scores that hold at all n together; they never fall.

    The Bernstein form, which is closed: L_t = (Σλ_i ξ_i − log(1/α) − Σψ(λ_i)(ξ_i − ξ̂_{i−1})²)/Σλ_i.
    """
    xi, log = _checked_scores(scores), float(np.log(1 / alpha))
    bet, means = bets(xi, log, "bernstein", None)
    return np.clip(np.maximum.accumulate(_bernstein(xi, bet, means, log), -1), 0.0, 1.0)


def _bernstein(xi: Floats, bet: Floats, means: Floats, log: float) -> Floats:
    psi = -np.log1p(-bet) - bet
    gains = np.cumsum(bet * xi - psi * (xi - means) ** 2, -1)
    return np.asarray((gains - log) / np.cumsum(bet, -1))


def _root(xi: Floats, bet: Floats, log: float) -> Floats:
    """The m in [0, 1] at which Σ log(1 + λ_t(ξ_t − m)) = log(1/α), 0 where the sum is smaller everywhere: (...).

    The sum is concave and falls in m, so that Newton's steps come down to the root from above after the first.
    """
    m = np.zeros(xi.shape[:-1])
    for _ in range(STEPS):
        wealth = 1 + bet * (xi - m[..., None])
        step = (np.log(wealth).sum(-1) - log) / (bet / wealth).sum(-1)
        m = np.clip(m + step, 0.0, 1.0)
        if (np.abs(step) < 1e-12).all():
            break
    return m


def _checked_scores(scores: ArrayLike) -> Floats:
    xi = checked_values(scores, "scores")
    if xi.min() < -ROUNDING:
        said = "check the weights and the span of the rewards"
        raise DataError(f"confidence sequence: expected scores of at least 0, got {xi.min():g}; {said}")
    return np.maximum(xi, 0.0)


def confidence_sequence(
    values: ArrayLike, weights: ArrayLike, span: Span, level: float = 0.95, running: bool = False,
    form: Form = "betting",
) -> Interval:  # fmt: skip
    """Bounds of the mean of contributions `values` (..., n), with `weights` (..., n) of mean 1 and a·w ≤ values ≤ b·w.

    `span` (a, b) holds the value. Slate weights: values w·r. Sums over K slots with slot or prefix weights w_k:
    values Σ_k w_k r_k, weights Σ_k w_k/K, span K times that of a slot. Values that have known bounds themselves, and
    no such weights: weights of 1 and these bounds as the span. Rows are in the order they were logged.

    At the end of a log (...): the betting form with bets made for this n, fixed beforehand. `running`: ends (..., n)
    that hold at all n together, for logs that are looked at while they grow; always the Bernstein form.
    """
    if form not in LARGEST_BET:
        raise ConfigError(f"expected betting or bernstein, got {form!r}", field="form")
    x, w = checked_values(values), checked_values(weights, "weights")
    (least, most), alpha = checked_span(span), (1 - checked_level(level)) / 2
    scores = ((x - least * w) / (most - least), (most * w - x) / (most - least))
    if running:
        below, above = (running_lower_bounds(each, alpha) for each in scores)
    else:
        below, above = (lower_bound(each, alpha, form) for each in scores)
    low, high = least + (most - least) * below, most - (most - least) * above
    return interval(np.minimum(low, high), np.maximum(low, high), "confidence-sequence", REASON, (least, most))
