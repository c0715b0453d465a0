"""The Poisson-binomial distribution: the number of successes of K independent Bernoulli draws."""

import torch
from torch import Tensor


def pmf(means: Tensor) -> Tensor:
    """P(j successes), j = 0..K, by d_j ← d_j (1 − h) + d_{j−1} h, one mean h at a time: (…, K) -> (…, K + 1)."""
    means = means.to(torch.float64)
    chances = torch.zeros(*means.shape[:-1], means.shape[-1] + 1, dtype=torch.float64, device=means.device)
    chances[..., 0] = 1.0
    for h in means.unsqueeze(-2).unbind(-1):
        flow = chances * h  # from each count to the next
        chances = chances - flow
        chances[..., 1:] += flow[..., :-1]
    return chances
