"""Evidence of models: prior variances of Gaussian weights by type-II maximum likelihood (MacKay, 1992), effects of
groups by partial pooling, and weights of models with fixed share."""

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

Floats = NDArray[np.float64]

TINY = 1e-6
STEPS = 8  # Newton steps of at most 1 each, from a start that is right where rewards are rare
STILL = 1e-7  # a step that moves no mode further is the last: the next one would move it by the square


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


def shift_posterior(sums: Floats, spread: Floats | float) -> tuple[Floats, Floats]:
    """Mode and standard deviation (Laplace) of b ~ N(0, τ²), where P(r_s = 1) = σ(logit p_s + b): (…, n) each.

    `sums` (3, n) are Σr, Σp and the number N of a group's observations, τ > 0 is `spread`. The mode solves
    Σr = N σ(logit p̄ + b) + b/τ² with p̄ = Σp/N: exact where all p_s are equal, for small chances and for large ones;
    where they differ it lies a little nearer to 0. A group without observations has mode 0 and standard deviation τ.
    """
    rewards, expected, number = sums
    a = 1.0 / np.square(spread)
    chance = np.divide(expected, number, out=np.full_like(expected, 0.5), where=number > 0)
    mode = np.log((rewards + a) / (expected + a))  # of Poisson rewards whose rates have a gamma prior: the mean of e^b
    for _ in range(STEPS):
        shifted = shifted_chances(chance, mode)
        slope, curvature = rewards - number * shifted - a * mode, number * shifted * (1 - shifted) + a
        step = slope / curvature
        farthest = np.abs(step).max(initial=0.0)
        mode = mode + (step if farthest <= 1 else np.clip(step, -1.0, 1.0))
        if farthest < STILL:
            break
    shifted = shifted_chances(chance, mode)
    return mode, 1 / np.sqrt(number * shifted * (1 - shifted) + a)


def shifted_chances(chances: Floats, shifts: Floats | float) -> Floats:
    """σ(logit p + b) of chances p and shifts b, broadcast."""
    odds = chances * np.exp(shifts)
    found: Floats = odds / (1 - chances + odds)
    return found


def gaussian_weights(gram: Floats, moment: Floats, start: Floats, spread: float) -> Floats:
    """(I/s² + G)⁻¹ (θ_0/s² + m): the mean of weights under a prior N(θ_0, s² I) and a Gaussian likelihood of precision
    G (…, m, m) and information m (…, m), θ_0 (m,) -> (…, m)."""
    precision = gram + np.eye(len(start)) / spread**2
    return np.linalg.solve(precision, (start / spread**2 + moment)[..., None])[..., 0].astype(np.float64, copy=False)


def fixed_share(log_weights: Tensor, log_likelihoods: Tensor, first: Tensor, share: float) -> Tensor:
    """log[(1 − α) v' + α v_0], v' ∝ v exp(log-likelihood): weights of models after one more observation, each (M,).
    The share α returns to the first weights v_0, so that a model can recover (Herbster and Warmuth, 1998)."""
    found = torch.log_softmax(log_weights + log_likelihoods, 0)
    if share > 0:  # without it weights may be too small for anything but their logarithm
        found = torch.log((1 - share) * torch.exp(found) + share * first)
    return found
