"""What weights may be before a slate is drawn: whether it is supported, the largest weight, and E[w²]."""

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


def slot_moment(target: Floats, logging: Floats) -> float:
    """Mean over slots of E[ρ_j²] = Σ_a π_j(a)²/μ_j(a), from marginals (k, n): what slot weights vary by."""
    if bool((target > 0)[logging == 0].any()):
        return math.nan
    return float(np.divide(target**2, logging, out=np.zeros_like(target), where=target > 0).sum(1).mean())


def slate_moments(target: Target, decision: LoggedDecision) -> tuple[float, float]:
    """E[w²] of slate and of prefix weights, Σ_T π(T)²/μ(T) over the slates T of a target that has few certain ones; NaN
    for others."""
    shares = Counter(part.base for part in parts(target))
    if decision.design.kind == "unknown" or any(part.kind != "deterministic" for part in parts(target)):
        return math.nan, math.nan
    slate = prefix = 0.0
    for base, count in shares.items():
        chances = np.cumprod(slot_chances(decision.design, decision.round, base))
        if not chances.all():
            return math.nan, math.nan
        share = (count / len(parts(target))) ** 2
        slate += share / float(chances[-1])
        prefix += share * float((1 / chances).mean())
    return slate, prefix
