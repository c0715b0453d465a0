"""The effective dimension d̃ = log det(I + H/λ)/log(1 + n/λ) of n contexts, by four ways that state their errors.

Exactly by Cholesky where the folded set is small; from both sides by a pivoted Cholesky factor of low rank; by
stochastic Lanczos quadrature with a standard error; and the running one of the arms that were played, from Z_t.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from neuclust.errors import ConfigError, DataError
from neuclust.randomness import stream
from neuclust.theory.folding import Folded
from neuclust.theory.lanczos import Probing, Quadrature, quadrature
from neuclust.theory.ntk import TangentKernel
from neuclust.theory.pivoting import LowRank, Watch, low_rank, pivots, unwatched
from neuclust.theory.remainder import remainder

MOST_EXACT = 6000  # rays of which the whole matrix is factored: 288 MB, half a minute
NARROW = 0.01  # relative width at which a bracket is good enough
SEARCHED = 8000  # rows among which pivots are searched


@dataclass(frozen=True, slots=True)
class Estimate:
    """d̃ by one method, inside [low, high]; `error` is what the ends mean in words."""

    method: str
    value: float
    low: float
    high: float
    error: str


def per_log(logdet: float, contexts: int, ridge: float) -> float:
    """log det/log(1 + n/λ)."""
    _check(ridge, contexts)
    return logdet / math.log1p(contexts / ridge)


def _check(ridge: float, contexts: int) -> None:
    if not (ridge > 0 and contexts > 0):
        raise ConfigError(f"expected a ridge above 0 and at least 1 context, got {ridge} and {contexts}")


def exact_logdet(rays: Tensor, kernel: TangentKernel, ridge: float) -> float:
    """log det(I + H/λ) by Cholesky."""
    return float(leading_logdets(rays, kernel, ridge)[-1])


def leading_logdets(rays: Tensor, kernel: TangentKernel, ridge: float) -> Tensor:
    """log det(I + H_k/λ) of the first k rows, for every k: cumulative logs of one factor's diagonal, (n,)."""
    _check(ridge, len(rays))
    if len(rays) > MOST_EXACT:
        raise DataError(f"expected at most {MOST_EXACT:,} distinct directions for an exact value, got {len(rays):,}")
    matrix = kernel(rays).div_(ridge)
    matrix.diagonal().add_(1.0)
    root = torch.linalg.cholesky(matrix)
    return 2 * torch.log(root.diagonal()).cumsum(0)


def exact(folded: Folded, kernel: TangentKernel, ridge: float) -> Estimate:
    """d̃ of the whole set, duplicates and rays folded."""
    value = per_log(exact_logdet(folded.rays, kernel, ridge), folded.total, ridge)
    return Estimate("exact", value, value, value, "Cholesky, exact but for rounding")


def bracket(
    folded: Folded, kernel: TangentKernel, ridge: float, rank: int = 600, watch: Watch = unwatched
) -> tuple[Estimate, LowRank]:
    """d̃ from below and above by a factor of at most `rank` columns, chosen by pivots in a sample of the rows, and two
    moments of what it leaves over."""
    rows = folded.rays
    sample = rows
    if len(rows) > SEARCHED:
        sample = rows[torch.from_numpy(stream(0, "pivots").choice(len(rows), SEARCHED, replace=False))]
    whole = float(kernel.diagonal(rows).sum())
    enough = NARROW * ridge * math.log1p(whole / ridge) * len(sample) / len(rows)  # log det is at least that logarithm
    chosen, _ = pivots(sample, kernel, rank, left=enough)
    part = low_rank(rows, kernel, sample[chosen], watch)
    start, rest = part.logdet(ridge), remainder(part, ridge)
    low, high = (per_log(start + end, folded.total, ridge) for end in (rest.low, rest.high))
    words = f"certain: rank {part.rank}, remaining trace {part.left:.3g} of {whole:.4g}"
    if rest.columns:
        words = f"rank {part.rank}, remaining trace {part.left:.3g} of {whole:.4g}"
        words += f", its moments ± 3 standard errors over {rest.columns} columns"
    return Estimate("pivoted Cholesky", (low + high) / 2, low, high, words), part


def lanczos(
    folded: Folded, kernel: TangentKernel, ridge: float, rank: int = 200, probing: Probing | None = None,
    watch: Watch = unwatched,
) -> tuple[Estimate, Quadrature]:  # fmt: skip
    """d̃ by stochastic Lanczos quadrature, preconditioned by a factor of `rank` columns; ± 3 standard errors."""
    rows = folded.rays
    _, factor = pivots(rows, kernel, rank)
    whole = kernel(rows) if len(rows) <= MOST_EXACT else None

    def product(vector: Tensor) -> Tensor:
        return whole @ vector if whole is not None else kernel.row_sums(rows, vector[:, None])[:, 0]

    found = quadrature(product, len(rows), ridge, factor, probing, watch)
    value, error = (per_log(each, folded.total, ridge) for each in (found.value, found.error))
    words = f"± 3 standard errors of {error:.3g} over {found.probes} probes"
    return Estimate("stochastic Lanczos", value, value - 3 * error, value + 3 * error, words), found


def growth(folded: Folded, kernel: TangentKernel, ridge: float, sizes: Sequence[int]) -> list[tuple[int, float]]:
    """(n, d̃ of a random n of the distinct contexts), each with its own log(1 + n/λ): how d̃ grows with the set."""
    order = torch.from_numpy(stream(0, "growth of the dimension").permutation(len(folded.distinct)))
    found = leading_logdets(folded.distinct[order], kernel, ridge)
    return [(n, per_log(float(found[n - 1]), n, ridge)) for n in sizes if 1 <= n <= len(found)]


def running(logdet: float, observations: int, ridge: float) -> float:
    """log det(Z_t/λ)/log(1 + tK/λ) of the arms that were played: what enters γ_t."""
    return per_log(logdet, observations, ridge) if observations else 0.0
