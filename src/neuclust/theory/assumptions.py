"""The paper's assumptions, each checked on the data: what it asks, what is there, and by how much it fails.

1 the slate's reward is Lipschitz in the means (B) and the means in the contexts (B', in ℓ1); 2 it rises with every
mean; 3 rewards lie around their means with sub-Gaussian noise ζ; 4 contexts have length 1 and H ≥ λ_0 I; 5 clusters are
apart (δ_t) and the played one is near the best (P_t); 6 centroids have no zero entry, a least length Y, and a constant
Q in the reverse of Cauchy and Schwarz's inequality.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from neuclust.theory.bounds import least_separation
from neuclust.theory.growth import power_slope
from neuclust.theory.norm_bound import NormBound

Floats = NDArray[np.float64]
Worth = Callable[[Tensor], float]  # u of arms with these means, (K,)

UNIT = 1e-6  # how far from 1 a length may be
SLOPE = 0.25  # how far from the asked exponent a trend may be
ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class Check:
    """One assumption on one problem; `holds` None where the data cannot tell."""

    number: int
    name: str
    asks: str
    found: str
    holds: bool | None
    numbers: Mapping[str, float]


# --- 1 and 2: Lipschitz and monotone ----------------------------------------------------------------------------


def slopes(worth: Worth, means: Tensor) -> Tensor:
    """∂u/∂h_i = u(h, h_i = 1) − u(h, h_i = 0) of a slate of independent arms with means (K,), u being multilinear."""
    found = means.new_empty(len(means))
    for i in range(len(means)):
        with_, without = means.clone(), means.clone()
        with_[i], without[i] = 1.0, 0.0
        found[i] = worth(with_) - worth(without)
    return found


def context_lipschitz(contexts: Tensor, means: Tensor) -> tuple[float, float]:
    """B' = max |Δh|/‖Δx‖_1 over all pairs of contexts (n, d) with means (n,), and its 99 % quantile over the pairs."""
    apart = torch.cdist(contexts, contexts, p=1.0)
    upper = torch.triu(torch.ones_like(apart, dtype=torch.bool), 1) & (apart > 0)
    ratios = ((means[:, None] - means[None, :]).abs() / apart.clamp(min=1e-300))[upper]
    ordered = ratios.sort().values
    return float(ordered[-1]), float(ordered[int(0.99 * (len(ordered) - 1))])


def smoothness(steepest: float, contexts: Tensor, means: Tensor, largest: float) -> Check:
    """Assumption 1; `largest` is how much the slate's reward can change at all."""
    most, usual = context_lipschitz(contexts, means)
    # a constant that lets h change by its whole range within a hundredth of the contexts' reach says nothing
    reach = float(torch.cdist(contexts[:500], contexts[:500], p=1.0).max())
    vacuous = most * reach > 100 * max(float(means.max() - means.min()), ROUNDING)
    found = (
        f"B = {steepest:.3g} on sampled slates (at most {largest:g}); B' = {most:.3g}, for 99 % of pairs {usual:.3g}"
    )
    said = f"{found}; the largest is {most * reach:.3g} times the reach of the contexts" if vacuous else found
    numbers = {"B": steepest, "B_largest": largest, "B_prime": most, "B_prime_99": usual, "reach": reach}
    return Check(
        1, "Lipschitz rewards", "|Δu| ≤ B Σ|Δh| and |Δh| ≤ B' ‖Δx‖₁ with moderate B and B'", said, not vacuous, numbers
    )


def monotone(smallest: float) -> Check:
    """Assumption 2 from the smallest slope seen."""
    found = f"the smallest slope of u on sampled slates is {smallest:.3g}"
    asks = "a slate is worth no less when an arm's mean rises"
    return Check(2, "monotone slate reward", asks, found, smallest >= -ROUNDING, {"smallest_slope": smallest})


def noise(lowest: float, highest: float, amounts: bool) -> Check:
    """Assumption 3: rewards of 0 and 1 are ½-sub-Gaussian (Hoeffding), amounts by their range."""
    inside = lowest >= -ROUNDING and highest <= 1 + ROUNDING
    holds = inside and not amounts
    what = "rewards are amounts, not 0 or 1" if amounts else "rewards are 0 or 1, so ζ = ½"
    found = f"means from {lowest:.3g} to {highest:.3g}; {what}"
    numbers = {"lowest_mean": lowest, "highest_mean": highest, "zeta": 0.5 if holds else math.nan}
    return Check(3, "bounded means, sub-Gaussian noise", "means in [0, 1], noise ζ-sub-Gaussian", found, holds, numbers)


# --- 4: contexts ---------------------------------------------------------------------------------------------------


def contexts_check(contexts: Tensor, bound: NormBound, parallel: int) -> Check:
    """Assumption 4: ‖x‖ = 1 and λ_0 > 0; `parallel` contexts share their direction with another."""
    lengths = torch.linalg.vector_norm(contexts, dim=1)
    low, high = float(lengths.min()), float(lengths.max())
    unit = float(((lengths - 1).abs() <= UNIT).double().mean())
    found = f"lengths from {low:.3g} to {high:.3g}, {unit:.0%} of them 1; λ₀ = {bound.smallest:.3g}"
    if parallel:
        found += f": {parallel:,} contexts are parallel to another, which makes H singular"
    numbers = {
        "shortest": low,
        "longest": high,
        "unit_share": unit,
        "lambda_0": bound.smallest,
        "parallel": float(parallel),
    }
    holds = unit == 1.0 and bound.smallest > 0
    return Check(4, "unit contexts, H ≥ λ₀I", "‖x‖ = 1 for all contexts and λ₀ > 0", found, holds, numbers)


# --- 5 and 6: clusters ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ReverseSchwarz:
    """Y, the shortest centroid; Q, the least constant with ‖x̄‖‖x̄'‖ ≤ Q⟨x̄, x̄'⟩ over pairs of centroids; Kantorovich's
    bound on it from the smallest and largest entries; and the share of zero entries."""

    least: float
    reverse: float
    kantorovich: float
    zeros: float


def reverse_schwarz(centroids: Tensor) -> ReverseSchwarz:
    """Of centroids (C, d): Q = max ‖x̄‖‖x̄'‖/⟨x̄, x̄'⟩, Q² at most (a + b)²/(4ab) for ratios of entries in [a, b]."""
    lengths = torch.linalg.vector_norm(centroids, dim=1)
    products = centroids @ centroids.T
    outer = lengths[:, None] * lengths[None, :]
    upper = torch.triu(torch.ones_like(products, dtype=torch.bool), 1)
    apart, together = outer[upper], products[upper]
    near = len(together) > 0 and float(together.min()) <= 0  # at a right angle, or beyond
    reverse = math.inf if near else float((apart / together).max()) if len(together) else 1.0
    low, high = float(centroids.abs().min()), float(centroids.abs().max())
    # entries in [low, high] have ratios in [low/high, high/low]
    bound = (high / low + low / high) ** 2 / 4 if low > 0 else math.inf
    zeros = float((centroids.abs() <= ROUNDING).double().mean())
    return ReverseSchwarz(float(lengths.min()), reverse, math.sqrt(bound), zeros)


def separation(times: Floats, others: Floats, best: Floats, floor: float) -> Check:
    """Assumption 5: δ_t falls like C/t and P_t rises like C√t, by their trends over the rounds looked at; `floor` is
    Y/(Q√d), below which δ_t cannot fall where contexts have length 1."""
    fall, rise = power_slope(times, others), power_slope(times, best)
    holds = abs(fall + 1) <= SLOPE and abs(rise - 0.5) <= SLOPE
    found = (
        f"δ {others.min():.3g} to {others.max():.3g} (mean {others.mean():.3g}), trend t^{fall:+.2f}, asked −1; "
        f"P {best.min():.3g} to {best.max():.3g} (mean {best.mean():.3g}), trend t^{rise:+.2f}, asked +½"
    )
    numbers = {
        "delta_min": float(others.min()), "delta_mean": float(others.mean()), "delta_max": float(others.max()),
        "delta_trend": fall, "P_min": float(best.min()), "P_mean": float(best.mean()), "P_max": float(best.max()),
        "P_trend": rise, "delta_floor": floor,
    }  # fmt: skip
    asks = "δ_t = C/t (others fall away), P_t = C√t (the played cluster nears the best)"
    return Check(5, "clusters apart", asks, found, holds, numbers)


def entries(found: ReverseSchwarz, dim: int) -> Check:
    """Assumption 6: centroids without zero entries, Y > 0, Q finite."""
    holds = found.zeros == 0 and found.least > 0 and math.isfinite(found.reverse)
    said = f"{found.zeros:.0%} of the centroids' entries are 0; Y = {found.least:.3g}, Q = {_size(found.reverse)}"
    said += f" (Kantorovich's bound: {_size(found.kantorovich)})"
    floor = least_separation(found.reverse, found.least, dim)
    numbers = {"Y": found.least, "Q": found.reverse, "Q_bound": found.kantorovich, "zeros": found.zeros, "floor": floor}
    return Check(6, "centroids without zeros", "‖x̄‖₀ = d, ‖x̄‖ ≥ Y > 0, ‖x̄‖‖x̄'‖ ≤ Q⟨x̄, x̄'⟩", said, holds, numbers)


def _size(value: float) -> str:
    return "infinite" if math.isinf(value) else f"{value:.3g}"
