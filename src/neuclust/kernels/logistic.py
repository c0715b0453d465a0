"""Logistic regression under a Gaussian prior, by damped Newton steps."""

import numpy as np
import torch
from scipy.linalg import cho_solve, cholesky
from scipy.special import expit
from torch import Tensor

LONGEST = 3.0  # how far a step may move a log-odds
STILL = 0.05  # where a step that moves none further than this is the last
FLAT = 1e-3  # the least curvature p(1 − p) an observation counts with


def newton(
    features: Tensor, sums: Tensor, counts: Tensor, prior: Tensor, start: Tensor, steps: int
) -> tuple[Tensor, Tensor]:
    """m near the maximum of Σ_i [sums_i f_i − counts_i log(1 + e^{f_i})] − ½ Σ m²/s, f = Xm, and the factor of Λ.

    Λ = diag(1/s) + Xᵀ diag(counts p(1 − p)) X = LLᵀ where the last step began: Laplace's precision. features (u, p)
    are distinct rows seen counts (u,) times with rewards of sums (u,) in all; prior s and start are (p,).
    """
    x, total, count = features.numpy(), sums.numpy(), counts.numpy()
    shrink, mean = 1 / prior.numpy(), start.numpy().copy()
    factor = np.diag(np.sqrt(shrink))
    f = x @ mean
    for _ in range(steps):
        chance = expit(f)
        half = x * np.sqrt(count * np.maximum(chance * (1 - chance), FLAT))[:, None]
        precision = half.T @ half  # numpy sees a product with itself and does half the work
        precision[np.diag_indices_from(precision)] += shrink
        factor = cholesky(precision, lower=True, overwrite_a=True, check_finite=False)
        step = cho_solve((factor, True), x.T @ (total - count * chance) - shrink * mean, check_finite=False)
        moved = x @ step
        largest = float(np.abs(moved).max(initial=0.0))
        share = min(1.0, LONGEST / largest) if largest > 0 else 1.0
        mean += share * step
        f += share * moved
        if largest < STILL:
            break
    return torch.from_numpy(mean), torch.from_numpy(factor)
