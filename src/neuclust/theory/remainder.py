"""What a low-rank part leaves of log det(I + H/λ), from both sides by two moments of what remains.

With A = I + H_r/λ, E = H − H_r and X = A^{−1/2}(E/λ)A^{−1/2} ≥ 0: log det(I + H/λ) = log det A + log det(I + X). For
μ_1 = tr X and μ_2 = tr X², n eigenvalues x ≥ 0 have

    μ_1 g(μ_2/μ_1) ≤ Σ log(1 + x) ≤ n log(1 + μ_1/n),   g(x) = log(1 + x)/x,

the first by Jensen's inequality with weights x/μ_1, since g is convex, the second since log is concave. μ_1 is
(tr E − Σ_ij B_ij E_ij)/λ with B = F(λI + FᵀF)⁻¹Fᵀ, and μ_2 ≤ Σ_ij E_ij²/λ². Both sums run over all pairs of rows: of a
large set they are estimated from blocks of rows drawn at random, with a standard error over the blocks.
"""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from neuclust.randomness import stream
from neuclust.theory.ntk import TangentKernel
from neuclust.theory.pivoting import LowRank

BLOCK, BLOCKS = 3000, 8
SURE = 3.0  # standard errors that an estimated moment is moved by, away from where it helps


@dataclass(frozen=True, slots=True)
class Remainder:
    """log det(I + X) from below and above; `blocks` 0 where all pairs were summed."""

    low: float
    high: float
    blocks: int


def remainder(rows: Tensor, kernel: TangentKernel, part: LowRank, ridge: float) -> Remainder:
    """The ends for the rows (n, d) that `part` was made of."""
    n = len(rows)
    core = torch.linalg.inv(part.inner + ridge * torch.eye(part.rank, dtype=torch.float64))
    if n <= BLOCK:
        crossed, squares = _sums(rows, kernel, part, core)
        return _ends(part.left - crossed, squares, n, ridge, 0)
    drawn = [stream(0, "remainder", i).choice(n, BLOCK, replace=False) for i in range(BLOCKS)]
    found = torch.tensor([_sums(rows[torch.from_numpy(each)], kernel, part, core, n) for each in drawn])
    middle, error = found.mean(0), found.std(0) / math.sqrt(BLOCKS)
    crossed, squares = (middle + SURE * error).tolist()  # both lower what the remainder is worth at least
    least = _ends(part.left - crossed, squares, n, ridge, BLOCKS)
    most = part.left - max(float(middle[0] - SURE * error[0]), 0.0)
    return Remainder(least.low, _ends(most, squares, n, ridge, BLOCKS).high, BLOCKS)


def _ends(trace: float, squares: float, n: int, ridge: float, blocks: int) -> Remainder:
    first, second = max(trace, 0.0) / ridge, squares / ridge**2
    if first <= 0:
        return Remainder(0.0, 0.0, blocks)
    at = second / first
    low = first * (math.log1p(at) / at if at > 0 else 1.0)
    high = n * math.log1p(first / n)
    return Remainder(min(low, high), high, blocks)


def _sums(
    rows: Tensor, kernel: TangentKernel, part: LowRank, core: Tensor, whole: int | None = None
) -> tuple[float, float]:
    """Σ_ij B_ij E_ij and Σ_ij E_ij² over all pairs of the `whole` set, from these rows of it."""
    factor = torch.linalg.solve_triangular(part.root, kernel(rows, part.landmarks).T, upper=False).T
    rest = kernel(rows) - factor @ factor.T
    crossed, squares = (factor @ core @ factor.T) * rest, rest * rest
    b, n = len(rows), len(rows) if whole is None else whole
    found = []
    for each in (crossed, squares):
        own = float(each.diagonal().sum())
        found.append(n / b * own + n * (n - 1) / (b * max(b - 1, 1)) * (float(each.sum()) - own))
    return found[0], found[1]
