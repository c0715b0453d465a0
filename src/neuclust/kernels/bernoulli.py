"""Rewards of 0 and 1: how many of K independent ones are paid, and logistic regression under a Gaussian prior.

Laplace's approximation takes every observation as a Gaussian one: near log-odds f a likelihood s f − c log(1 + eᶠ), of
rewards that add up to s in c observations, is that of Gaussian observations of weight w = c p(1 − p) and sum
w f + s − c p, p = 1/(1 + e⁻ᶠ). At the mode both have the same slope.
"""

import numpy as np
import torch
from scipy.special import expit
from torch import Tensor

LONGEST = 3.0  # how far a step may move a log-odds
STILL = 0.05  # where a step that moves none further than this is the last
FLAT = 1e-3  # the least curvature p(1 − p) an observation counts with
MOST_STEPS = 20


def poisson_binomial(means: Tensor) -> Tensor:
    """P(j successes), j = 0..K, by d_j ← d_j (1 − h) + d_{j−1} h, one mean h at a time: (…, K) -> (…, K + 1)."""
    means = means.to(torch.float64)
    chances = torch.zeros(*means.shape[:-1], means.shape[-1] + 1, dtype=torch.float64, device=means.device)
    chances[..., 0] = 1.0
    for h in means.unsqueeze(-2).unbind(-1):
        flow = chances * h  # from each count to the next
        chances = chances - flow
        chances[..., 1:] += flow[..., :-1]
    return chances


def linearised(odds: Tensor, sums: Tensor, counts: Tensor) -> tuple[Tensor, Tensor]:
    """Sums and weights of the Gaussian observations at log-odds (u,): (u,), (u,)."""
    chances = torch.sigmoid(odds)
    weights = counts * (chances * (1 - chances)).clamp(min=FLAT)
    return weights * odds + sums - counts * chances, weights


def damped(odds: Tensor, wanted: Tensor) -> Tensor:
    """On the way from log-odds (u,) to those wanted (u,), none moved further than `LONGEST`."""
    largest = float((wanted - odds).abs().max()) if len(odds) else 0.0
    return odds + min(1.0, LONGEST / max(largest, LONGEST)) * (wanted - odds)


def posterior_mode(prior: Tensor, covariance: Tensor, sums: Tensor, counts: Tensor) -> Tensor:
    """The mode f of log-odds ~ N(prior (k,), V (k, k)) given sums and counts (k,): f = prior + V(s − c p(f))."""
    # in NumPy: for the few arms of a slate the calls cost most, and its calls are a third of torch's
    start, spread, s, c = (given.numpy() for given in (prior, covariance, sums, counts))
    odds, one = start, np.eye(len(start))
    for _ in range(MOST_STEPS):
        chances = expit(odds)
        weights = c * np.maximum(chances * (1 - chances), FLAT)
        gap = start - odds + spread @ (s - c * chances)
        move = np.linalg.solve(one + spread * weights, gap)
        farthest = float(np.abs(move).max(initial=0.0))
        odds = odds + min(1.0, LONGEST / max(farthest, LONGEST)) * move
        if farthest < STILL:
            break
    return torch.from_numpy(odds)
