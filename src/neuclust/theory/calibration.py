"""Whether what was promised came: optimism and coverage of the arms' scores (Corollary 1), and calibration of F."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

Floats = NDArray[np.float64]
SLACK = 1e-12


@dataclass(frozen=True, slots=True)
class Promises:
    """Shares of arms with v ≥ μ, v + e_t ≥ μ (Corollary 1) and |f − μ| ≤ γw: of all offered, and of the best slate."""

    optimistic: float
    optimistic_offset: float
    covered: float
    best_optimistic: float
    best_covered: float


def promises(means: Tensor, bonuses: Tensor, truth: Tensor, best: Tensor, offset: float) -> Promises:
    """Of predictions f (n,), bonuses γw (n,), true means μ (n,), the best slate's positions (K,) and e_t."""
    optimistic = means + bonuses >= truth - SLACK
    lifted = means + bonuses + offset >= truth - SLACK
    covered = (means - truth).abs() <= bonuses + SLACK
    shares = (each.double().mean() for each in (optimistic, lifted, covered, optimistic[best], covered[best]))
    return Promises(*(float(share) for share in shares))


@dataclass(frozen=True, slots=True)
class Bin:
    """Slates with like predictions: how many, the mean prediction, what they were worth and what they paid."""

    count: int
    predicted: float
    expected: float
    realised: float


@dataclass(frozen=True, slots=True)
class Calibration:
    """F against u(S): mean absolute difference, correlation, the line u ≈ intercept + slope·F, and bins by F."""

    error: float
    correlation: float
    slope: float
    intercept: float
    bins: tuple[Bin, ...]


def calibration(predicted: Floats, expected: Floats, realised: Floats, bins: int = 8) -> Calibration:
    """F(S_t), u(S_t) and R_t of the played slates, (T,) each; R may be NaN where it was not seen."""
    error = float(np.abs(predicted - expected).mean())
    spread = predicted - predicted.mean()
    variance = float(spread @ spread)
    slope = float(spread @ expected) / variance if variance > 0 else math.nan
    other = float(((expected - expected.mean()) ** 2).sum())
    varies = variance > 0 and other > 0
    correlation = float(spread @ expected) / math.sqrt(variance * other) if varies else math.nan
    intercept = float(expected.mean() - slope * predicted.mean()) if variance > 0 else float(expected.mean())
    order = np.argsort(predicted, kind="stable")
    parts = [part for part in np.array_split(order, min(bins, len(order))) if len(part)]
    rows = [Bin(len(p), _mean(predicted[p]), _mean(expected[p]), _mean(realised[p])) for p in parts]
    return Calibration(error, correlation, slope, intercept, tuple(rows))


def _mean(values: Floats) -> float:
    seen = values[~np.isnan(values)]
    return float(seen.mean()) if len(seen) else math.nan
