"""Both networks for R runs at once: every parameter has a leading dimension R.

One hidden layer each, no biases in the arm net. The formulas are those of kernels/network.py and
kernels/monotone.py, a run at a time.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from neuclust.kernels.monotone import TRANSFORMS

Parameters = tuple[Tensor, ...]


def per_run(values: Tensor, like: Tensor) -> Tensor:
    """Numbers of R runs (R,) in a shape that multiplies `like` (R, …)."""
    return values.view(-1, *[1] * (like.ndim - 1))


@dataclass(frozen=True, slots=True)
class ArmPass:
    """One forward pass: hidden pre-activations h (R, n, m), σ(h), and f = s · w₁ᵀσ(h) (R, n)."""

    hidden: Tensor
    means: Tensor

    @property
    def gate(self) -> Tensor:
        """σ'(h), 0 or 1."""
        return (self.hidden > 0).to(self.hidden.dtype)


def arm_pass(first: Tensor, last: Tensor, x: Tensor, scale: float) -> ArmPass:
    """first (R, m, q), last (R, m), x (R, n, q), or (n, q) where all runs read the same rows."""
    hidden = torch.matmul(x, first.mT)
    means = scale * torch.matmul(torch.relu(hidden), last.unsqueeze(-1)).squeeze(-1)
    return ArmPass(hidden, means)


@dataclass(frozen=True, slots=True)
class RowFactors:
    """ĝ(x) = (δ xᵀ, a) of every row: inputs x (n, q) or (R, n, q), δ (R, n, m), a (R, n, m), both scaled already."""

    inputs: Tensor
    deltas: Tensor
    last: Tensor

    def rows(self, start: int, stop: int) -> RowFactors:
        return RowFactors(self.inputs[..., start:stop, :], self.deltas[:, start:stop], self.last[:, start:stop])

    def flat(self) -> Tensor:
        """The gradients themselves, (R, n, m·q + m), row-major in W_0 as everywhere."""
        inputs = self.inputs if self.inputs.ndim == 3 else self.inputs.unsqueeze(0)
        first = (self.deltas.unsqueeze(-1) * inputs.unsqueeze(-2)).flatten(-2)
        return torch.cat([first, self.last], -1)

    def squared_norms(self) -> Tensor:
        """‖ĝ‖² = ‖δ‖² ‖x‖² + ‖a‖², (R, n)."""
        return (self.deltas**2).sum(-1) * (self.inputs**2).sum(-1) + (self.last**2).sum(-1)


def row_factors(seen: ArmPass, last: Tensor, x: Tensor, scale: float) -> RowFactors:
    """δ = c · w₁ ⊙ σ'(h) and a = c · σ(h) for c = `scale`: the net's own scale, times 1/√m for ĝ."""
    return RowFactors(x, scale * last.unsqueeze(1) * seen.gate, scale * torch.relu(seen.hidden))


def row_gram(left: RowFactors, right: RowFactors) -> Tensor:
    """⟨ĝ, ĝ'⟩ = ⟨x, x'⟩⟨δ, δ'⟩ + ⟨a, a'⟩ without forming a gradient: (R, n, n')."""
    inner = torch.matmul(left.inputs, right.inputs.mT)
    return torch.baddbmm(inner * (left.deltas @ right.deltas.mT), left.last, right.last.mT)


@dataclass(frozen=True, slots=True)
class SlateShape:
    """What F is besides its parameters: the transform q, both layers' scales c, and a rectified output."""

    transform: str
    scales: tuple[float, float]
    relu_out: bool


def slate_pass(parameters: Parameters, shape: SlateShape, rewards: Tensor) -> tuple[Tensor, Tensor]:
    """σ(c_0 q(Θ_0) r + b_0) (R, n, units) and F (R, n); rewards (R, n, K), Θ_0 (R, units, K), Θ_1 (R, 1, units)."""
    t0, t1, b0, b1 = parameters
    q, _ = TRANSFORMS[shape.transform]
    hidden = torch.relu(torch.baddbmm(b0.unsqueeze(1), rewards, shape.scales[0] * q(t0).mT))
    value = torch.baddbmm(b1.unsqueeze(1), hidden, shape.scales[1] * q(t1).mT).squeeze(-1)
    return hidden, torch.relu(value) if shape.relu_out else value


def slate_slopes(
    parameters: Parameters, shape: SlateShape, rewards: Tensor, target: Tensor, weight: Tensor
) -> Parameters:
    """∇ of ½ Σ weight (F − target)² for every run, in the order of the parameters."""
    t0, t1, *_ = parameters
    q, slope = TRANSFORMS[shape.transform]
    hidden, value = slate_pass(parameters, shape, rewards)
    error = weight * (value - target)
    error = (error * (value > 0) if shape.relu_out else error).unsqueeze(-1)
    delta = error * (shape.scales[1] * q(t1)) * (hidden > 0)
    g0 = shape.scales[0] * slope(t0) * (delta.mT @ rewards)
    g1 = shape.scales[1] * slope(t1) * (error.mT @ hidden)
    return g0, g1, delta.sum(1), error.sum(1)


def slate_norms(parameters: Parameters, shape: SlateShape, rewards: Tensor) -> Tensor:
    """‖∇F‖² of every slate (R, n), for the automatic step."""
    t0, t1, *_ = parameters
    q, slope = TRANSFORMS[shape.transform]
    hidden, value = slate_pass(parameters, shape, rewards)
    error = ((value > 0).to(value.dtype) if shape.relu_out else torch.ones_like(value)).unsqueeze(-1)
    delta = error * (shape.scales[1] * q(t1)) * (hidden > 0)
    spread0, spread1 = ((c * slope(t)).square().mT for c, t in zip(shape.scales, (t0, t1), strict=True))
    first = (delta**2 * (rewards**2 @ spread0)).sum(-1) + (delta**2).sum(-1)
    return first + (error**2 * (hidden**2 @ spread1)).sum(-1) + (error**2).sum(-1)
