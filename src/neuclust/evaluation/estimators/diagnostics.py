"""How much of a log tells of the target: effective sample size, largest weights, and the same slot by slot."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from neuclust.evaluation.estimators.rows import Floats, Rows
from neuclust.evaluation.estimators.weighting import prefix_weights, slot_weights

SHOWN = 5


@dataclass(frozen=True, slots=True)
class Diagnostics:
    """Of weights (n,): ESS = (Σw)²/Σw², 0 where all are 0; mean, 1 within error; the largest; the share of zeros."""

    rows: int
    ess: float
    mean: float
    largest: tuple[float, ...]  # up to `SHOWN`, the largest first
    zeros: float


def diagnostics(weights: Floats) -> Diagnostics:
    """The diagnostics of weights (n,), which may be below 0 where they are those of the pseudo-inverse."""
    squares = float((weights**2).sum())
    total = float(weights.sum())
    ess = total**2 / squares if squares > 0 else 0.0
    largest = np.sort(weights)[::-1][:SHOWN]
    mean = total / len(weights) if len(weights) else float("nan")
    zeros = float((weights == 0).mean()) if len(weights) else float("nan")
    return Diagnostics(len(weights), ess, mean, tuple(largest.tolist()), zeros)


def overlap(rows: Rows, ratio: Literal["slot", "prefix", "marginal"] = "slot") -> tuple[Diagnostics, ...]:
    """The diagnostics of each slot's weights, over the rows that have it, first slot first.

    slot: ρ_j = π(S_j | S_1, …, S_{j−1}) / μ(S_j | S_1, …, S_{j−1}); prefix: their product up to slot j, the weights of
    `rips`; marginal: π(slot j holds S_j)/μ(slot j holds S_j), the weights of `iips`.
    """
    if ratio == "slot":
        weights = rows.of("target") / rows.of("logging")
    else:
        weights = prefix_weights(rows) if ratio == "prefix" else slot_weights(rows)
    real = rows.real(weights.shape[1])
    return tuple(diagnostics(column[there]) for column, there in zip(weights.T, real.T, strict=True))
