"""How far a trained net is from the linear model that the analysis replaces it by.

The proof's lemmas on wide nets, measured at θ_t on the played contexts: f against ⟨g(θ_0), θ_t − θ_0⟩, gradients at θ_t
against those at θ_0, the length of gradients, and f against ridge regression on g(θ_0)/√m, which J → ∞ steps reach.
"""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from neuclust.kernels.network import Network, flatten, forward, gradient_factors, gram, squared_norms


@dataclass(frozen=True, slots=True)
class Linearisation:
    """Largest values over the contexts looked at."""

    drift: float  # ‖θ_t − θ_0‖
    linear_error: float  # max |f(x; θ_t) − f(x; θ_0) − ⟨g(x; θ_0), θ_t − θ_0⟩|
    gradient_change: float  # max ‖g(x; θ_t) − g(x; θ_0)‖/‖g(x; θ_0)‖
    gradient_length: float  # max ‖g(x; θ_t)‖/√(mL), bounded by a constant in the analysis
    ridge_error: float  # max |f(x; θ_t) − ridge regression on g(θ_0)/√m|, at the contexts that were played


def drift(net: Network, initial: Network) -> float:
    """‖θ_t − θ_0‖."""
    pairs = zip(net.weights, initial.weights, strict=True)
    return math.sqrt(sum(float((now - then).square().sum()) for now, then in pairs))


@dataclass(frozen=True, slots=True)
class Observed:
    """Distinct contexts that were played (u, d'), their mean rewards (u,) and how often each was (u,)."""

    contexts: Tensor
    targets: Tensor
    counts: Tensor


def linearisation(net: Network, initial: Network, observed: Observed, ridge: float) -> Linearisation:
    """All five on the played contexts."""
    x, width, depth = observed.contexts, net.weights[-1].shape[1] - net.bias, len(net.weights) - 1
    now, then = gradient_factors(net, x), gradient_factors(initial, x)
    moved = torch.cat([(a - b).flatten() for a, b in zip(net.weights, initial.weights, strict=True)])
    before = flatten(then)
    values, start = forward(net, x), forward(initial, x)
    change = torch.linalg.vector_norm(flatten(now) - before, dim=1)
    lengths = torch.linalg.vector_norm(before, dim=1)
    kernel = gram(then, then) / width
    # counts of equal contexts: an observation repeated c times has noise λ/c
    weights = torch.linalg.solve(
        kernel + torch.diag(ridge / observed.counts.to(kernel.dtype)), observed.targets - start
    )
    fitted = start + kernel @ weights
    return Linearisation(
        drift(net, initial),
        float((values - start - before @ moved).abs().max()),
        float((change / lengths.clamp(min=1e-300))[lengths > 0].max()) if bool((lengths > 0).any()) else 0.0,
        float((squared_norms(now).sqrt() / math.sqrt(width * depth)).max()),
        float((values - fitted).abs().max()),
    )
