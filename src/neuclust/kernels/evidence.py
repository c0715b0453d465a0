"""Type-II maximum likelihood for prior variances of Gaussian weights (MacKay, 1992)."""

import torch
from torch import Tensor

TINY = 1e-6


def inverse_diagonal(factor: Tensor) -> Tensor:
    """Diagonal of (LLᵀ)⁻¹ for a lower factor L (p, p) -> (p,)."""
    one = torch.eye(len(factor), dtype=factor.dtype)
    half: Tensor = torch.linalg.solve_triangular(factor, one, upper=False)
    return (half * half).sum(0)


def block_step(
    mean: Tensor, variances: Tensor, prior: Tensor, blocks: Tensor, bounds: tuple[float, float]
) -> tuple[Tensor, Tensor]:
    """One fixed-point step s_j ← ‖m_j‖² / γ_j, γ_j = p_j − Σ_{k ∈ j} (Λ⁻¹)_kk / s_j, clipped to `bounds`: s and γ (B,).

    γ_j is the effective number of parameters of block j. mean, variances diag Λ⁻¹ and block numbers (p,), prior s (B,).
    """
    zeros = torch.zeros_like(prior)
    sizes = zeros.index_add(0, blocks, torch.ones_like(mean))
    determined = sizes - zeros.index_add(0, blocks, variances) / prior
    energy = zeros.index_add(0, blocks, mean * mean)
    return ((energy + TINY) / determined.clamp(min=TINY)).clamp(*bounds), determined
