"""The slate network F: non-decreasing in every input because every weight passes a non-negative q.

o_{k+1} = σ(c_k q(Θ_k) o_k + b_k),  F = c_L q(Θ_L) o_L + b_L,  with c_k = 1 (the paper) or c / fan-in ("calibrated": F
starts near the mean of its inputs). Parameters with a leading dimension R are R networks; rewards and results then too.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

# q and its derivative, elementwise
TRANSFORMS: dict[str, tuple[Callable[[Tensor], Tensor], Callable[[Tensor], Tensor]]] = {
    "sigmoid": (torch.sigmoid, lambda x: torch.sigmoid(x) * torch.sigmoid(-x)),
    "softplus": (torch.nn.functional.softplus, torch.sigmoid),
    "exp": (torch.exp, torch.exp),
    "square": (torch.square, lambda x: 2 * x),
    "abs": (torch.abs, torch.sign),
}


@dataclass(frozen=True, slots=True)
class MonotoneNetwork:
    """Raw weights Θ_k (…, out, in), biases b_k (…, out), the transform q and the scales c_k."""

    weights: tuple[Tensor, ...]
    biases: tuple[Tensor, ...]
    scales: tuple[float, ...]
    transform: str = "sigmoid"
    relu_out: bool = False

    @property
    def parameters(self) -> tuple[Tensor, ...]:
        """Weights, then biases: the order `with_parameters` takes them back in."""
        return (*self.weights, *self.biases)

    def with_parameters(self, parameters: tuple[Tensor, ...]) -> MonotoneNetwork:
        """The same shape of net with other parameters."""
        half = len(self.weights)
        return MonotoneNetwork(parameters[:half], parameters[half:], self.scales, self.transform, self.relu_out)


def effective_weights(net: MonotoneNetwork) -> tuple[Tensor, ...]:
    """c_k q(Θ_k), all non-negative."""
    q, _ = TRANSFORMS[net.transform]
    return tuple(scale * q(weight) for weight, scale in zip(net.weights, net.scales, strict=True))


def slate_layers(net: MonotoneNetwork, rewards: Tensor) -> tuple[list[Tensor], Tensor, tuple[Tensor, ...]]:
    """Inputs o_0 … o_L of every layer, the output (…), and the effective weights used."""
    weights = effective_weights(net)
    inputs = [rewards]
    for weight, bias in zip(weights[:-1], net.biases[:-1], strict=True):
        inputs.append(torch.relu(inputs[-1] @ weight.mT + _row(bias)))
    value = (inputs[-1] @ weights[-1].mT + _row(net.biases[-1])).squeeze(-1)
    return inputs, torch.relu(value) if net.relu_out else value, weights


def _row(bias: Tensor) -> Tensor:
    """A bias (out,) or (R, out) in a shape that adds to (…, n, out)."""
    return bias if bias.ndim == 1 else bias.unsqueeze(-2)


def slate_inputs(rewards: Tensor, rectified: bool, ordered: bool) -> Tensor:
    """What F reads of arm rewards (…, K): rectified and sorted descending, each where asked for."""
    rewards = torch.relu(rewards) if rectified else rewards
    return torch.sort(rewards, dim=-1, descending=True).values if ordered else rewards


def slate_scores(values: Tensor, slate_values: Tensor, weight: float | Tensor, average: bool) -> Tensor:
    """V = Σ_{a ∈ S} v_a + ωK·F(S), or V/K with `average`: optimistic values (…, K), F (…) and ω -> (…)."""
    size = values.shape[-1]
    total = values.sum(-1) + weight * size * slate_values
    return total / size if average else total


def slate_value(net: MonotoneNetwork, rewards: Tensor) -> Tensor:
    """F(r) for slates r (…, K), sorted descending by the caller: (…)."""
    return slate_layers(net, rewards)[1]


def slate_gradients(net: MonotoneNetwork, rewards: Tensor, target: Tensor, weight: Tensor) -> tuple[Tensor, ...]:
    """∇ of ½ Σ_i weight_i (F(r_i) − R_i)² in the order of `parameters`; rewards (…, t, K)."""
    inputs, value, effective = slate_layers(net, rewards)
    delta = (weight * (value - target)).unsqueeze(-1)
    if net.relu_out:
        delta = delta * (value > 0).unsqueeze(-1)
    _, slope = TRANSFORMS[net.transform]
    weights, biases = [], []
    for layer in reversed(range(len(net.weights))):
        weights.append(net.scales[layer] * slope(net.weights[layer]) * (delta.mT @ inputs[layer]))
        biases.append(delta.sum(-2))
        if layer:
            delta = (delta @ effective[layer]) * (inputs[layer] > 0)
    return (*reversed(weights), *reversed(biases))


def slate_gradient_norms(net: MonotoneNetwork, rewards: Tensor) -> Tensor:
    """‖∇F(r_i)‖² of every slate (…, t), for the automatic step."""
    inputs, value, effective = slate_layers(net, rewards)
    delta = torch.ones_like(value).unsqueeze(-1)
    if net.relu_out:
        delta = delta * (value > 0).unsqueeze(-1)
    _, slope = TRANSFORMS[net.transform]
    total = torch.zeros_like(value)
    for layer in reversed(range(len(net.weights))):
        spread = torch.square(net.scales[layer] * slope(net.weights[layer]))
        total = total + (delta**2 * (inputs[layer] ** 2 @ spread.mT)).sum(-1) + (delta**2).sum(-1)
        if layer:
            delta = (delta @ effective[layer]) * (inputs[layer] > 0)
    return total
