"""The interval of a ratio of means ν = E[x]/E[w]: all v at which x − v·w could have mean 0.

At v = ν the rows x_i − v·w_i have mean 0 exactly, so the test of `asymptotic.p_value` holds for them as it does for any
mean, skewness included; linearised at the estimate, as usual, its variance would come out too small where few weights
decide (Fieller, 1954, with Hall's correction in the place of a normal quantile). Narrower than the linearised form and
nearer to its level (docs/evaluation_intervals.md).
"""

from dataclasses import dataclass
from math import comb
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from neuclust.errors import DataError
from neuclust.evaluation.intervals.asymptotic import Moments, p_value
from neuclust.evaluation.intervals.interval import (
    EQUAL,
    Floats,
    Interval,
    Kind,
    Span,
    checked_level,
    checked_values,
    interval,
)  # fmt: skip

DOUBLINGS, HALVINGS = 40, 50
REASON = "every value at which the weighted residuals could have mean 0, corrected for skewness and heavy tails"
UNWEIGHTED = "no row has a weight, so every value is possible"


@dataclass(frozen=True, slots=True)
class CrossMoments:
    """Means of uᵃ·wᵇ, a + b ≤ 4, (...) each, of u = x − ν̂·w: all that rows x − v·w have moments from."""

    count: int
    estimate: Floats  # ν̂ = Σx/Σw
    powers: dict[tuple[int, int], Floats]

    @classmethod
    def of(cls, values: Floats, weights: Floats) -> Self:
        total = weights.sum(-1)
        known = total != 0
        estimate = np.divide(values.sum(-1), total, out=np.zeros_like(total), where=known)
        residuals = values - estimate[..., None] * weights
        found, left = {}, np.ones_like(values)
        for a in range(5):
            product = left
            for b in range(5 - a):
                found[a, b] = np.asarray(product.mean(-1))
                product = product * weights if a + b < 4 else product
            left = left * residuals
        return cls(values.shape[-1], estimate, found)

    def at(self, shift: Floats) -> Moments:
        """Of x − (ν̂ + shift)·w."""
        raw = [
            sum((comb(k, b) * self.powers[k - b, b] * (-shift) ** b for b in range(k + 1)), np.zeros_like(shift))
            for k in range(5)
        ]
        n, mean = self.count, raw[1]
        second = np.maximum(raw[2] - mean**2, 0)
        third = raw[3] - 3 * mean * raw[2] + 2 * mean**3
        fourth = np.maximum(raw[4] - 4 * mean * raw[3] + 6 * mean**2 * raw[2] - 3 * mean**4, 0)
        return Moments(n, mean, n * second, n * third, n * fourth)


def self_normalised(
    values: ArrayLike, weights: ArrayLike, level: float = 0.95, span: Span | None = None, kind: Kind = "asymptotic"
) -> Interval:
    """{v: p(x − v·w) ≥ 1 − level} around ν̂ = Σx/Σw of values x = w·r and weights w (..., n), of independent rows or of
    martingale differences; unbounded but for `span` on a side where even large v cannot be ruled out."""
    x, w = checked_values(values), checked_values(weights, "weights")
    if x.shape != w.shape:
        got = f"got {x.shape} values and {w.shape} weights"
        raise DataError(f"self-normalised: expected one weight for each value, {got}")
    alpha, everything = 1 - checked_level(level), np.full(x.shape[:-1], np.inf)
    if x.shape[-1] == 1 or not w.any():
        reason = UNWEIGHTED if x.shape[-1] > 1 else "one row has no spread, so every value is possible"
        return interval(-everything, everything, kind, reason, span)
    found = CrossMoments.of(x, w)
    start = np.maximum(found.at(np.zeros_like(everything)).error, 1e-9 * (1 + np.abs(found.estimate)))
    low, high = (found.estimate + _end(found, side * start, alpha) for side in (-1.0, 1.0))
    low, high = (np.where(w.any(-1), end, far) for end, far in ((low, -everything), (high, everything)))
    spread = bool((found.powers[2, 0] > 0).any())
    return interval(low, high, kind, REASON if spread else EQUAL, span)


def _end(found: CrossMoments, step: Floats, alpha: float) -> Floats:
    """The shift at which p falls below α, by doubling and halving; infinite where it never does."""
    outside = step
    for _ in range(DOUBLINGS):
        inside = p_value(found.at(outside)) >= alpha
        if not inside.any():
            break
        outside = np.where(inside, 2 * outside, outside)
    never = p_value(found.at(outside)) >= alpha
    near = np.zeros_like(step)
    for _ in range(HALVINGS):
        middle = (near + outside) / 2
        inside = p_value(found.at(middle)) >= alpha
        near, outside = np.where(inside, middle, near), np.where(inside, outside, middle)
    return np.where(never, np.copysign(np.inf, step), near)
