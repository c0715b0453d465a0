"""How many of K independent coins come up: the Poisson-binomial distribution."""

import torch
from torch import Tensor


def pmf(means: Tensor) -> Tensor:
    """P(j of the K coins come up) for j = 0..K: d_j ← d_j (1 − h) + d_{j−1} h, one coin h at a time.

    `means` (..., K) in [0, 1] -> (..., K + 1), float64; vectorised over the leading dimensions.
    """
    means = means.to(torch.float64)
    chances = torch.zeros(*means.shape[:-1], means.shape[-1] + 1, dtype=torch.float64, device=means.device)
    chances[..., 0] = 1.0
    for h in means.unsqueeze(-2).unbind(-1):
        flow = chances * h  # what each count hands on to the next when this coin comes up
        chances = chances - flow
        chances[..., 1:] += flow[..., :-1]
    return chances
