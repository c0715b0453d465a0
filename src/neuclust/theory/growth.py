"""How regret grows: the exponent b of R_t ≈ c·t^b, with an interval.

Regret of consecutive stretches of rounds has mean ∝ t^{b−1} in a log-linear model, fitted by iterated weighted least
squares (a quasi-Poisson regression: variance ∝ mean, zeros allowed). One run's interval is from a covariance that
allows for dependent stretches (Newey and West); several runs are bootstrapped by the run.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from neuclust.errors import DataError
from neuclust.randomness import stream

Floats = NDArray[np.float64]
Curve = Sequence[tuple[int, float]]  # (t, regret so far)

FEW_POINTS = 8
DRAWS = 1000
NORMAL = 1.959963984540054  # 97.5 % quantile


@dataclass(frozen=True, slots=True)
class Growth:
    """b with its 95 % interval, and the regret at the end."""

    exponent: float
    low: float
    high: float
    runs: int
    final: float

    @property
    def verdict(self) -> str:
        """Against √t, in a word."""
        if self.high < 0.5:
            return "slower than √t"
        return "faster than √t" if self.low > 0.5 else "as √t could"


def growth(curves: Sequence[Curve]) -> Growth:
    """The exponent of the mean regret of runs that have their curve's points in common."""
    if not curves or min(map(len, curves)) < FEW_POINTS:
        got = min(map(len, curves)) if curves else 0
        raise DataError(f"expected curves of at least {FEW_POINTS} points to fit, got {got}; play more rounds")
    times = np.array([t for t, _ in curves[0]], dtype=np.float64)
    if any([t for t, _ in curve] != times.tolist() for curve in curves):
        raise DataError("expected runs with the same points on their curves, got others; name runs of equal length")
    sums = np.array([[value for _, value in curve] for curve in curves])
    gains, lengths, middles = _stretches(times, sums)
    exponent, error = exponent_of(gains.mean(0), lengths, middles)
    if len(curves) >= 3:
        rng = stream(0, "growth of regret")
        drawn = [
            exponent_of(gains[rng.integers(len(gains), size=len(gains))].mean(0), lengths, middles)[0]
            for _ in range(DRAWS)
        ]
        low, high = (float(end) for end in np.quantile(drawn, (0.025, 0.975)))
    else:
        low, high = exponent - NORMAL * error, exponent + NORMAL * error
    return Growth(exponent, low, high, len(curves), float(sums[:, -1].mean()))


def _stretches(times: Floats, sums: Floats) -> tuple[Floats, Floats, Floats]:
    """Regret between the points (runs, p), the rounds of each stretch (p,) and its geometric middle (p,)."""
    starts = np.concatenate([[0.0], times[:-1]])
    gains = np.diff(sums, axis=1, prepend=0.0).clip(min=0.0)
    return gains, times - starts, np.sqrt(np.maximum(starts, 0.5) * times)


def exponent_of(gains: Floats, lengths: Floats, middles: Floats) -> tuple[float, float]:
    """b and its standard error from the regret of stretches (p,) of `lengths` rounds around `middles`."""
    if gains.sum() <= 0:
        return 0.0, 0.0  # no regret at all
    design = np.stack([np.ones_like(middles), np.log(middles)], 1)
    beta = np.array([math.log(gains.sum() / lengths.sum()), -0.5])
    for _ in range(100):
        mean = np.exp(np.clip(design @ beta, -60, 60)) * lengths
        hessian = (design * mean[:, None]).T @ design + 1e-9 * np.eye(2)
        step = np.linalg.solve(hessian, design.T @ (gains - mean))
        step *= min(1.0, 2.0 / max(float(np.abs(step).max()), 1e-12))  # no step over a cliff
        beta = beta + step
        if float(np.abs(step).max()) < 1e-10:
            break
    mean = np.exp(np.clip(design @ beta, -60, 60)) * lengths
    bread = np.linalg.inv((design * mean[:, None]).T @ design + 1e-9 * np.eye(2))
    scores = design * (gains - mean)[:, None]
    lags = int(4 * (len(gains) / 100) ** (2 / 9)) + 1
    meat = scores.T @ scores
    for lag in range(1, min(lags, len(gains) - 1) + 1):
        shifted = scores[lag:].T @ scores[:-lag]
        meat += (1 - lag / (lags + 1)) * (shifted + shifted.T)
    variance = float((bread @ meat @ bread)[1, 1])
    return 1.0 + float(beta[1]), math.sqrt(max(variance, 0.0))


def power_slope(times: Floats, values: Floats) -> float:
    """The slope of log value against log t: −1 for C/t, ½ for C√t, 0 for what stays; NaN without positive values."""
    kept = (values > 0) & (times > 0)
    if kept.sum() < 2:
        return math.nan
    x, y = np.log(times[kept]), np.log(values[kept])
    centred = x - x.mean()
    return float(centred @ y / max(float(centred @ centred), 1e-300))
