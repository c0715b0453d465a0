"""Confidence widths w² = ĝᵀ Z⁻¹ ĝ, Z = λI + Σ ĝĝᵀ, in forms that give the same numbers.

Everything here is a pure function of tensors; parts/confidence.py owns the state.
"""

from __future__ import annotations

import torch
from torch import Tensor

from neuclust.errors import StateError
from neuclust.kernels.network import Factors


def primal_forms(inverse: Tensor, features: Tensor) -> Tensor:
    """Q = Ĝ Z⁻¹ Ĝᵀ for groups of q feature vectors: (R, q, p), (p, p) -> (R, q, q)."""
    return (features @ inverse) @ features.transpose(-1, -2)


def woodbury_(inverse: Tensor, index: Tensor, features: Tensor) -> Tensor:
    """Turn Z⁻¹ into (Z + ĜᵀĜ)⁻¹ in place; returns log det(Z + ĜᵀĜ) − log det Z.

    The K rows Ĝ are given on their non-zero coordinates: index (a,) into Z, features (K, a).
    """
    projected = features @ inverse[index]  # Ĝ Z⁻¹, (K, p)
    core = torch.eye(len(features), dtype=inverse.dtype, device=inverse.device) + projected[:, index] @ features.T
    factor = definite_cholesky(core)
    half = torch.linalg.solve_triangular(factor, projected, upper=False)
    inverse.addmm_(half.T, half, alpha=-1)
    return 2 * torch.log(torch.diagonal(factor)).sum()


def dual_forms(factor: Tensor, cross: Tensor, inner: Tensor, ridge: float) -> Tensor:
    """Q = (κ − k (λI + ĜĜᵀ)⁻¹ kᵀ) / λ for cross (R, q, n), inner κ (R, q, q), lower factor (n, n)."""
    groups, q, n = cross.shape
    if n == 0:
        return inner / ridge
    half = torch.linalg.solve_triangular(factor, cross.reshape(groups * q, n).T, upper=False)
    half = half.T.reshape(groups, q, n)
    forms: Tensor = (inner - half @ half.transpose(-1, -2)) / ridge
    return forms


def cholesky_rows(factor: Tensor, cross: Tensor, corner: Tensor) -> tuple[Tensor, Tensor]:
    """New rows [L_21, L_22] when K rows join a matrix with factor L (n, n): cross (K, n), corner (K, K)."""
    left = torch.linalg.solve_triangular(factor, cross.T, upper=False).T if len(factor) else cross
    return left, definite_cholesky(corner - left @ left.T)


def diagonal_squares(factors: Factors, diagonal: tuple[Tensor, ...]) -> Tensor:
    """w² = Σ_l (δ_l ⊙ δ_l)ᵀ U_l⁻¹ (a_l ⊙ a_l) for a diagonal covariance kept as matrices U_l: (n,)."""
    blocks = zip(factors.deltas, factors.inputs, diagonal, strict=True)
    return torch.stack([((d * d) * ((a * a) @ (1 / u).T)).sum(-1) for d, a, u in blocks]).sum(0)


def diagonal_gain(factors: Factors) -> tuple[Tensor, ...]:
    """Σ_i g_i ⊙ g_i of K samples, as one matrix a layer."""
    return tuple((d * d).T @ (a * a) for d, a in zip(factors.deltas, factors.inputs, strict=True))


def definite_cholesky(matrix: Tensor) -> Tensor:
    """The lower factor, or a StateError that says what to do; never another algorithm in silence."""
    factor: Tensor
    factor, info = torch.linalg.cholesky_ex(matrix)
    if bool(info):
        raise StateError(
            "the gradient covariance lost positive definiteness: expected finite gradients and a ridge large "
            "enough for them; raise confidence.ridge or lower the training step"
        )
    return factor
