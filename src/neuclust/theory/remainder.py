"""What a low-rank part leaves of log det(I + H/λ), from both sides by two moments of what remains.

With A = I + H_r/λ, E = H − H_r and X = A^{−1/2}(E/λ)A^{−1/2} ≥ 0: log det(I + H/λ) = log det A + log det(I + X). For
μ_1 = tr X and μ_2 = tr X², n eigenvalues x ≥ 0 have

    μ_1 g(μ_2/μ_1) ≤ Σ log(1 + x) ≤ n log(1 + μ_1/n),   g(x) = log(1 + x)/x,

the first by Jensen's inequality with weights x/μ_1, since g is convex, the second since log is concave. μ_1 is
(tr E − Σ_ij B_ij E_ij)/λ with B = F(λI + FᵀF)⁻¹Fᵀ, and μ_2 ≤ Σ_ij E_ij²/λ². Both sums over pairs are sums of columns i:
of a small set all are taken, of a large one some at random, each over all j, with a standard error over the columns.
"""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from neuclust.theory.pivoting import LowRank

SURE = 3.0  # standard errors that an estimated moment is moved by, away from where it helps


@dataclass(frozen=True, slots=True)
class Remainder:
    """log det(I + X) from below and above; `columns` 0 where all of them were taken."""

    low: float
    high: float
    columns: int


def remainder(part: LowRank, ridge: float) -> Remainder:
    """The ends, from the columns of E that were looked at when `part` was made."""
    core = torch.linalg.inv(part.inner + ridge * torch.eye(part.rank, dtype=torch.float64))
    looked = part.looked
    crossed = ((looked.factor @ core) * looked.products).sum(1)  # Σ_j B_ij E_ij of every column looked at
    n, b = part.rows, len(crossed)
    if b == n:
        return ends(part.left - float(crossed.sum()), float(looked.squares.sum()), n, ridge)
    (first, spread), (second, other) = (_scaled(each, n) for each in (crossed, looked.squares))
    # both moments moved to where the remainder is worth less, then the first to where it is worth more
    low = ends(part.left - first - SURE * spread, second + SURE * other, n, ridge).low
    high = ends(part.left - max(first - SURE * spread, 0.0), 0.0, n, ridge).high
    return Remainder(low, high, b)


def _scaled(values: Tensor, n: int) -> tuple[float, float]:
    """The sum over n columns from some of them, and its standard error."""
    return n * float(values.mean()), n * float(values.std()) / math.sqrt(len(values))


def ends(trace: float, squares: float, n: int, ridge: float) -> Remainder:
    """Of tr E − Σ B_ij E_ij and Σ E_ij², nothing of them estimated."""
    first, second = max(trace, 0.0) / ridge, squares / ridge**2
    if first <= 0:
        return Remainder(0.0, 0.0, 0)
    at = second / first
    low = first * (math.log1p(at) / at if at > 0 else 1.0)
    high = n * math.log1p(first / n)
    return Remainder(min(low, high), high, 0)
