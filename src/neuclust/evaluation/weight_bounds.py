"""What weights may be before a slate is drawn: whether it is supported, the largest weight, E[w²] and E[w³]."""

import math
from collections import Counter

import numpy as np
from numpy.typing import NDArray

from neuclust.errors import DataError
from neuclust.evaluation.candidates import Target, parts
from neuclust.evaluation.designs import slot_chances
from neuclust.evaluation.support import check_support, draws_all
from neuclust.logs.decisions import LoggedDecision

Floats = NDArray[np.float64]


def supported(decision: LoggedDecision, target: Target) -> bool:
    """Whether what ran could have shown every slate of the target; an unknown design is not held against it."""
    if decision.design.kind == "unknown" or draws_all(decision.design):
        return True
    try:
        check_support(decision.design, target, decision.round)
    except DataError:
        return False
    return True


def largest_weight(decision: LoggedDecision) -> float | None:
    """1/μ of a slate of the smallest chance that the design promises, Π |A(S)| / (ε · anywhere) per slot."""
    design, counts = decision.design, float(np.prod(decision.sizes, dtype=np.float64))
    if design.kind == "uniform":
        return counts
    if design.share == 0 or design.kind not in ("sequential", "one-coin"):
        return None
    if design.kind == "one-coin":
        return counts / design.share
    each = design.share * design.anywhere
    return counts / each ** len(decision.sizes) if each > 0 else None


def widen(largest: dict[str, float | None], estimator: str, weight: float | None) -> None:
    """The largest weight of all rows, None from the first of which it is not known."""
    known = largest[estimator]
    largest[estimator] = None if known is None or weight is None else max(known, weight)


Moments = tuple[float, float]  # E[w²] and E[w³]
UNKNOWN: Moments = (math.nan, math.nan)


def slot_moments(target: Floats, logging: Floats) -> Moments:
    """Means over slots of E[ρ_j²] = Σ_a π_j(a)²/μ_j(a) and E[ρ_j³] = Σ_a π_j(a)³/μ_j(a)², from marginals (k, n)."""
    shown = target > 0
    if bool(shown[logging == 0].any()):
        return UNKNOWN
    ratios = np.divide(target, logging, out=np.zeros_like(target), where=shown)
    return float((target * ratios).sum(1).mean()), float((target * ratios**2).sum(1).mean())


def slate_moments(target: Target, decision: LoggedDecision) -> tuple[Moments, Moments]:
    """E[w²] and E[w³] of slate and of prefix weights, Σ_T π(T)²/μ(T) and Σ_T π(T)³/μ(T)² over the slates T of a target
    that has few certain ones; NaN for others."""
    shares = Counter(part.base for part in parts(target))
    if decision.design.kind == "unknown" or any(part.kind != "deterministic" for part in parts(target)):
        return UNKNOWN, UNKNOWN
    slate, prefix = np.zeros(2), np.zeros(2)
    for base, count in shares.items():
        chances = np.cumprod(slot_chances(decision.design, decision.round, base))
        if not chances.all():
            return UNKNOWN, UNKNOWN
        share = count / len(parts(target))
        powers = np.array([share**2 / chances, share**3 / chances**2])
        slate += powers[:, -1]
        prefix += powers.mean(1)
    return (float(slate[0]), float(slate[1])), (float(prefix[0]), float(prefix[1]))
