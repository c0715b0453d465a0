"""A low-rank part of the kernel matrix from a few of its columns, and what it leaves over.

Partial Cholesky with pivots: in every step the row with the largest remaining diagonal entry. H_r = H_{·P} H_{PP}⁻¹
H_{P·} for the pivots P lies below H, and the trace of what remains, τ = tr(H − H_r), bounds everything else.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from neuclust.randomness import stream
from neuclust.theory.ntk import TangentKernel

Watch = Callable[[str, int, int], None]  # what is being done, how much of it is done, how much there is

BLOCK = 1024  # rows of the kernel matrix held at a time: few enough for the processor's cache
ALL, LOOKED = 3000, 200  # up to so many rows every column of what remains is looked at, else so many of them
JITTER = 1e-10  # of the largest diagonal entry: pivots below it are rounding


def unwatched(_what: str, _done: int, _total: int) -> None:
    """Nobody looks on."""


def pivots(x: Tensor, kernel: TangentKernel, rank: int, left: float = 0.0) -> tuple[Tensor, Tensor]:
    """Pivot rows (r,) of at most `rank` steps and the factor (n, r), until the remaining trace is at most `left`."""
    n, diagonal = len(x), kernel.diagonal(x)
    floor = JITTER * float(diagonal.max())
    factor = torch.zeros(n, min(rank, n), dtype=torch.float64)
    chosen: list[int] = []
    for step in range(min(rank, n)):
        pivot = int(diagonal.argmax())
        if float(diagonal[pivot]) <= floor or float(diagonal.clamp(min=0).sum()) <= left:
            break
        column = kernel(x, x[pivot : pivot + 1]).flatten()
        column[pivot] = kernel.diagonal(x[pivot : pivot + 1])[0]
        column -= factor[:, :step] @ factor[pivot, :step]
        column /= diagonal[pivot].sqrt()
        factor[:, step] = column
        diagonal = diagonal - column * column
        diagonal[pivot] = 0.0  # exactly: it is never taken again
        chosen.append(pivot)
    return torch.tensor(chosen, dtype=torch.int64), factor[:, : len(chosen)]


@dataclass(frozen=True, slots=True)
class Columns:
    """Columns i of E = H − H_r that were looked at: rows of F (b, r), FᵀE_{·i} (b, r) and Σ_j E_ji² (b,)."""

    factor: Tensor
    products: Tensor
    squares: Tensor


@dataclass(frozen=True, slots=True)
class LowRank:
    """What is known of H from r of its columns: the Gram matrix (r, r) of the factor and the trace that remains."""

    inner: Tensor  # FᵀF with H_r = FFᵀ
    left: float  # τ ≥ 0
    rows: int
    looked: Columns

    @property
    def rank(self) -> int:
        return len(self.inner)

    def logdet(self, ridge: float) -> float:
        """log det(I + H_r/λ), which is at most log det(I + H/λ)."""
        eigenvalues = torch.linalg.eigvalsh(self.inner).clamp(min=0.0)
        return float(torch.log1p(eigenvalues / ridge).sum())


def low_rank(x: Tensor, kernel: TangentKernel, landmarks: Tensor, watch: Watch = unwatched) -> LowRank:
    """H_r of the rows x (n, d) by landmarks (r, d), in blocks: n r² multiplications, r² numbers held.

    F = H_{·P} root⁻ᵀ. All columns of what remains are looked at where the set is small, else `LOOKED` drawn ones.
    """
    corner = kernel(landmarks)
    corner.diagonal().add_(JITTER * float(corner.diagonal().max()))
    root = torch.linalg.cholesky(corner)
    some = x if len(x) <= ALL else x[torch.from_numpy(stream(0, "columns").choice(len(x), LOOKED, replace=False))]
    factor = torch.linalg.solve_triangular(root, kernel(some, landmarks).T, upper=False).T
    mixed = torch.linalg.solve_triangular(root.T, factor.T, upper=True)  # K_P mixed = F F_Sᵀ
    inner, crossed = torch.zeros_like(corner), torch.zeros_like(mixed)
    squares = torch.zeros(len(some), dtype=torch.float64)
    for done, block in _blocks(x):
        columns = kernel(block, landmarks)
        inner.addmm_(columns.T, columns)
        rest = kernel(block, some).sub_(columns @ mixed)
        crossed.addmm_(columns.T, rest)
        squares += rest.square_().sum(0)
        watch("kernel columns", done, len(x))
    half = torch.linalg.solve_triangular(root, inner, upper=False)  # L⁻¹ (Σ k kᵀ) L⁻ᵀ = FᵀF
    inner = torch.linalg.solve_triangular(root, half.T, upper=False)
    inner = (inner + inner.T) / 2
    left = float(kernel.diagonal(x).sum() - inner.diagonal().sum())
    looked = Columns(factor, torch.linalg.solve_triangular(root, crossed, upper=False).T, squares)
    return LowRank(inner, max(left, 0.0), len(x), looked)


def _blocks(x: Tensor) -> Iterator[tuple[int, Tensor]]:
    for start in range(0, len(x), BLOCK):
        yield min(start + BLOCK, len(x)), x[start : start + BLOCK]
