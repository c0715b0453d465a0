"""Statistics of paired differences: signed-rank test, bootstrap interval, and Holm's correction for many tests."""

from collections.abc import Sequence
from itertools import count

import numpy as np
from numpy.typing import NDArray

from neuclust.randomness import stream

EXACT_PAIRS = 50  # up to here the exact distribution without ties is cheap
ENUMERATED_PAIRS = 14  # up to here all 2ⁿ signs are tried where ranks are tied
RESAMPLES = 9999


def signed_rank_p(gaps: Sequence[float]) -> float:
    """Two-sided p of the Wilcoxon signed-rank test that paired gaps (n,) are symmetric around 0; gaps of 0 are dropped.

    Exact up to 50 pairs without ties and up to 14 with them, normal (corrected for ties) beyond; p = 1 without a gap.
    """
    from scipy.stats import PermutationMethod, wilcoxon

    moved = np.asarray([gap for gap in gaps if gap != 0.0])
    if len(moved) == 0:
        return 1.0
    tied = len(np.unique(np.abs(moved))) < len(moved)
    if tied and len(moved) <= ENUMERATED_PAIRS:
        return float(wilcoxon(moved, method=PermutationMethod(n_resamples=2 ** len(moved))).pvalue)
    exact = not tied and len(moved) <= EXACT_PAIRS
    return float(wilcoxon(moved, method="exact" if exact else "approx").pvalue)


def smallest_p(pairs: int) -> float:
    """The smallest p that `pairs` pairs can give in a two-sided signed-rank test: 2 · 2⁻ⁿ."""
    return min(1.0, 2.0 ** (1 - pairs))


def pairs_needed(tests: int, level: float) -> int:
    """The least number of pairs at which one of `tests` corrected differences can have p < level."""
    return next(pairs for pairs in count(1) if tests * smallest_p(pairs) < level)


def bootstrap_interval(gaps: Sequence[float], confidence: float, purpose: str) -> tuple[float, float] | None:
    """BCa interval of the mean of paired gaps (n,), None from one pair; `purpose` names the random stream."""
    from scipy.stats import bootstrap

    values: NDArray[np.float64] = np.asarray(gaps, dtype=np.float64)
    if len(values) < 2:
        return None
    if np.ptp(values) == 0.0:  # no spread to resample, and BCa would divide by it
        return float(values[0]), float(values[0])
    rng = stream(0, f"bootstrap {purpose}")
    found = bootstrap(
        (values,), np.mean, confidence_level=confidence, n_resamples=RESAMPLES, method="BCa", rng=rng
    ).confidence_interval
    return float(found.low), float(found.high)


def holm(ps: Sequence[float]) -> list[float]:
    """Holm's corrected p-values: the i-th smallest of m times (m − i + 1), never falling, at most 1."""
    corrected, running = [0.0] * len(ps), 0.0
    for rank, place in enumerate(sorted(range(len(ps)), key=lambda index: ps[index])):
        running = max(running, min(1.0, (len(ps) - rank) * ps[place]))
        corrected[place] = running
    return corrected
