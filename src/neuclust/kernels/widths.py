"""Confidence widths w² = ĝᵀ Z⁻¹ ĝ, Z = λI + Σ ĝĝᵀ, in forms that give the same numbers."""

import math
from collections.abc import Callable

import numpy as np
import torch
from scipy.linalg import eigh
from torch import Tensor

from neuclust.errors import StateError
from neuclust.kernels import compiled
from neuclust.kernels.jit import serves
from neuclust.kernels.network import Factors
from neuclust.kernels.ranking import unsound

CANCELS = 1e4  # growth in one step from which Z⁻¹ would lose digits by subtraction: made anew from Z instead
ROUNDING = (16, 1e3, 1e5)  # multiples of the rounding of a diagonal that may be put back, each tried if the last failed
BLOCK = 256  # rows of a triangular solve done at once: small enough to stay in the cache


def primal_forms(inverse: Tensor, features: Tensor) -> Tensor:
    """Q = Ĝ Z⁻¹ Ĝᵀ for groups of q feature vectors: (R, q, p), (p, p) -> (R, q, q)."""
    flat = features.reshape(-1, features.shape[-1]) @ inverse  # one large product, not R small ones
    return flat.reshape(features.shape) @ features.transpose(-1, -2)


def submatrix(matrix: Tensor, index: Tensor) -> Tensor:
    """Rows and columns `index` (a,) of a square matrix: (a, a)."""
    if serves(matrix):
        return torch.from_numpy(compiled.submatrix(matrix.numpy(), index.numpy()))
    return matrix[index[:, None], index]


def add_products_(matrix: Tensor, index: Tensor, features: Tensor) -> None:
    """Add ĜᵀĜ of features (K, a) to rows and columns `index` (a,) of a matrix, in place."""
    if serves(matrix, features):
        compiled.add_products(matrix.numpy(), index.numpy(), features.contiguous().numpy())
    else:
        matrix[index[:, None], index] += features.T @ features


def woodbury_(inverse: Tensor, index: Tensor, features: Tensor) -> Tensor | None:
    """Turn Z⁻¹ into (Z + ĜᵀĜ)⁻¹ in place; returns log det(Z + ĜᵀĜ) − log det Z.

    The K rows Ĝ are given on their non-zero coordinates: index (a,) into Z, features (K, a). None, and nothing changed,
    where the difference would be made of rounding: a ridge of 1 beside squares of 1e16 is all but gone in Z⁻¹.
    """
    if serves(inverse, features):  # Ĝ Z⁻¹, (K, p)
        product = compiled.project(inverse.numpy(), index.numpy(), features.contiguous().numpy())
        projected = torch.from_numpy(product)
    else:
        projected = features @ inverse[index]
    core = torch.eye(len(features), dtype=inverse.dtype, device=inverse.device) + projected[:, index] @ features.T
    factor, info = torch.linalg.cholesky_ex(core)
    if bool(info) or not bool(woodbury_holds(core)):
        return None
    half = torch.linalg.solve_triangular(factor, projected, upper=False)
    inverse.addmm_(half.T, half, alpha=-1)
    return 2 * torch.log(torch.diagonal(factor)).sum()


def woodbury_holds(core: Tensor) -> Tensor:
    """Whether the Woodbury step with core I + ĜZ⁻¹Ĝᵀ (…, K, K) keeps the digits of Z⁻¹: (…)."""
    diagonal = torch.diagonal(core, dim1=-2, dim2=-1)
    return ((diagonal > 1 - 1e-9) & (diagonal < CANCELS)).all(-1)


def refactored(matrix: Tensor, index: Tensor, features: Tensor) -> tuple[Tensor, Tensor, float]:
    """Z + ĜᵀĜ, its inverse and log determinant, from Z (p, p) and rows as in `woodbury_`; nothing is changed."""
    grown = matrix.clone()
    add_products_(grown, index, features)
    factor = definite_cholesky(grown)
    # row by row, as a saved one is read back: by columns, later products would round zeros to other signs
    inverse = torch.cholesky_inverse(factor).contiguous()
    return grown, inverse, float(2 * torch.log(torch.diagonal(factor)).sum())


def dual_forms(factor: Tensor, cross: Tensor, inner: Tensor, ridge: float) -> Tensor:
    """Q = (κ − k (λI + ĜĜᵀ)⁻¹ kᵀ) / λ for cross (R, q, n), inner κ (R, q, q), lower factor (n, n)."""
    groups, q, n = cross.shape
    if n == 0:
        return inner / ridge
    half = solve_lower(factor, cross.reshape(groups * q, n).T).T.reshape(groups, q, n)
    return (inner - half @ half.mT) / ridge


def solve_lower(factor: Tensor, right: Tensor) -> Tensor:
    """L⁻¹ B by blocks of rows: factor (n, n) may be a view, which the library's solve would copy; right (n, k)."""
    solved = right.new_empty(right.shape)
    for start in range(0, len(factor), BLOCK):
        rows = slice(start, start + BLOCK)
        rest = torch.addmm(right[rows], factor[rows, :start], solved[:start], alpha=-1)
        solved[rows] = torch.linalg.solve_triangular(factor[rows, rows], rest, upper=False)
    return solved


def narrowing(
    factor: Tensor,
    cross: Callable[[Tensor, slice], Tensor],
    inner: Tensor,
    cutoff: Tensor,
    ridge: float,
    early: bool = False,
) -> tuple[Tensor, Tensor]:
    """w² of k gradients, or an upper bound of it below `cutoff` (k,), and which are exact: (k,), (k,) bool.

    The forward substitution of `dual_forms`, left early: after the first b past gradients (κ − ‖y_{1…b}‖²)/λ is the
    width those alone would give, which more of them can only lower. `early` reads the first quarter of the past only.
    `cross(alive, rows)` are products of past gradients `rows` with those of the k not yet below, (b, a); inner κ (k,).
    """
    squares, alive = inner / ridge, torch.arange(len(inner), device=inner.device)
    solved = inner.new_empty(0, len(inner))
    end = len(factor) // 4 if early else len(factor)
    for start in range(0, end, BLOCK):
        keep = squares[alive] >= cutoff[alive]
        if not bool(keep.all()):
            alive, solved = alive[keep], solved[:, keep]
        if len(alive) == 0:
            break
        rows = slice(start, min(start + BLOCK, end))
        rest = torch.addmm(cross(alive, rows), factor[rows, :start], solved, alpha=-1)
        half = torch.linalg.solve_triangular(factor[rows, rows], rest, upper=False)
        squares[alive] -= (half * half).sum(0) / ridge
        solved = torch.cat([solved, half])
    exact = torch.zeros(len(inner), dtype=torch.bool, device=inner.device)
    exact[alive] = end == len(factor)
    return squares, exact


def explored_directions(matrix: Tensor, ridge: float, rank: int) -> Tensor:
    """B (p, r) with ĝᵀZ⁻¹ĝ ≤ ‖ĝ‖²/λ − ‖Bᵀĝ‖² for Z and whatever it grows to: B = U √(1/λ − 1/μ), its r largest μ."""
    if not bool(torch.isfinite(matrix.sum())):  # LAPACK need not return from such a matrix
        raise unsound()
    largest = len(matrix) - rank, len(matrix) - 1
    values, vectors = eigh(matrix.numpy(), subset_by_index=largest, check_finite=False)
    gain = np.sqrt(np.clip(1 / ridge - 1 / values, 0, None))
    return torch.from_numpy(np.ascontiguousarray(vectors * gain))


def cholesky_rows(factor: Tensor, cross: Tensor, corner: Tensor) -> tuple[Tensor, Tensor]:
    """New rows [L_21, L_22] when K rows join a matrix with factor L (n, n): cross (K, n), corner (K, K)."""
    left = solve_lower(factor, cross.T).T
    return left, definite_cholesky(corner - left @ left.T, torch.diagonal(corner))


def diagonal_squares(factors: Factors, diagonal: tuple[Tensor, ...]) -> Tensor:
    """w² = Σ_l (δ_l ⊙ δ_l)ᵀ U_l⁻¹ (a_l ⊙ a_l) for a diagonal covariance kept as matrices U_l: (n,)."""
    blocks = zip(factors.deltas, factors.inputs, diagonal, strict=True)
    return torch.stack([((d * d) * ((a * a) @ (1 / u).T)).sum(-1) for d, a, u in blocks]).sum(0)


def diagonal_gain(factors: Factors) -> tuple[Tensor, ...]:
    """Σ_i g_i ⊙ g_i of K samples, as one matrix per layer."""
    return tuple((d * d).T @ (a * a) for d, a in zip(factors.deltas, factors.inputs, strict=True))


def definite_cholesky(matrix: Tensor, sizes: Tensor | None = None) -> Tensor:
    """The lower factor, or a StateError that says what to do.

    Sums of squares are known up to the rounding of their diagonal, or of `sizes` (p,) where something was subtracted
    from it. Where that hides a ridge, as 1 beside 1e16, as much is put back: to working precision the same matrix.
    """
    factor: Tensor
    factor, info = torch.linalg.cholesky_ex(matrix)
    if not bool(info):
        return factor
    rounding = torch.finfo(matrix.dtype).eps * (torch.diagonal(matrix) if sizes is None else sizes)
    for multiple in ROUNDING:
        factor, info = torch.linalg.cholesky_ex(matrix + torch.diag(multiple * rounding))
        if not bool(info):
            return factor
    diagonal = torch.diagonal(matrix)
    if not bool(torch.isfinite(diagonal.sum())):
        raise StateError("the covariance of what was learned is not finite; scale the features, or load a sound save")
    apart = math.sqrt(max(float(diagonal.max() / diagonal.abs().min().clamp(min=1e-300)), 1.0))
    raise StateError(
        f"the covariance of what was learned lost positive definiteness: features differ by a factor of {apart:.0e}; "
        "scale the features to columns of one size, or begin with a larger ridge"
    )
