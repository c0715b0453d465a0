"""The arm network: a ReLU net of any depth, its forward pass and its per-sample gradients as factors.

f(x; θ) = s · W_L h_L,  h_{l+1} = σ(W_l h_l),  h_0 = x,  with s = √m in the paper and σ'(0) = 0.

Biases are one more column of every W_l, against a constant 1. R nets of one shape are one `Network` whose weights have
a leading dimension R; every result then has it too.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce

import torch
from torch import Tensor


@dataclass(frozen=True, slots=True)
class Network:
    """Weights W_0 … W_L, each (…, out, in) or, with biases, (…, out, in + 1); `scale` multiplies the output."""

    weights: tuple[Tensor, ...]
    scale: float
    bias: bool = False

    @property
    def size(self) -> int:
        """p, the number of parameters."""
        return sum(weight.numel() for weight in self.weights)


@dataclass(frozen=True, slots=True)
class Factors:
    """Gradients g(x) = (δ_0 a_0ᵀ, …, δ_L a_Lᵀ) kept as factors: a_l (…, in_l) and δ_l (…, out_l)."""

    inputs: tuple[Tensor, ...]
    deltas: tuple[Tensor, ...]

    def __getitem__(self, index: Tensor | slice) -> Factors:
        return Factors(tuple(a[index] for a in self.inputs), tuple(d[index] for d in self.deltas))

    def rows(self, start: int, stop: int) -> Factors:
        """The gradients of some rows, where there may be leading dimensions."""
        inputs = tuple(a[..., start:stop, :] for a in self.inputs)
        return Factors(inputs, tuple(d[..., start:stop, :] for d in self.deltas))

    def last_layer(self) -> Factors:
        """Only the output layer's block, for confidence on the last layer."""
        return Factors(self.inputs[-1:], self.deltas[-1:])


def restrict(net: Network, columns: Tensor) -> Network:
    """The same net for inputs that are zero outside `columns`: W_0 keeps those columns (and its bias)."""
    if len(columns) == net.weights[0].shape[-1]:
        return net
    return Network((net.weights[0][..., columns], *net.weights[1:]), net.scale, net.bias)


def augment(net: Network, x: Tensor) -> Tensor:
    """Inputs with the constant 1 that biases are read against; unchanged for a bias-free net."""
    return torch.cat([x, x.new_ones(*x.shape[:-1], 1)], -1) if net.bias else x


def layers(net: Network, x: Tensor) -> tuple[tuple[Tensor, ...], tuple[Tensor, ...]]:
    """Inputs a_0 … a_L of every layer and pre-activations z_0 … z_{L−1}; x (…, in) is augmented already."""
    inputs, preactivations = [x], []
    for weight in net.weights[:-1]:
        preactivations.append(inputs[-1] @ weight.mT)
        inputs.append(augment(net, torch.relu(preactivations[-1])))
    return tuple(inputs), tuple(preactivations)


def output(net: Network, last: Tensor) -> Tensor:
    """f = s · W_L a_L, (…, in_L) -> (…)."""
    weight = net.weights[-1]
    return net.scale * (last @ weight[0] if weight.ndim == 2 else (last @ weight.mT).squeeze(-1))


def forward(net: Network, x: Tensor) -> Tensor:
    """f(x; θ), (n, d') -> (n,)."""
    inputs, _ = layers(net, augment(net, x))
    return output(net, inputs[-1])


def backward_deltas(net: Network, gates: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    """δ_L = s, δ_{l−1} = (W_lᵀ δ_l) ⊙ σ'(z_{l−1}), for gates σ'(z_l) of shape (…, m)."""
    delta = torch.full((*gates[0].shape[:-1], 1), net.scale, dtype=net.weights[0].dtype, device=gates[0].device)
    deltas = [delta]
    for weight, gate in zip(reversed(net.weights[1:]), reversed(gates), strict=True):
        delta = (delta @ weight[..., : gate.shape[-1]]) * gate
        deltas.append(delta)
    return tuple(reversed(deltas))


def gradient_factors(net: Network, x: Tensor) -> Factors:
    """Factors of ∇_θ f for every row of x (n, d')."""
    return layer_factors(net, augment(net, x))


def layer_factors(net: Network, x: Tensor) -> Factors:
    """The same for rows that are augmented already."""
    inputs, preactivations = layers(net, x)
    return Factors(inputs, backward_deltas(net, tuple((z > 0).to(x.dtype) for z in preactivations)))


def flatten(factors: Factors) -> Tensor:
    """The gradients themselves, (…, p), layers in order and row-major within a layer."""
    blocks = zip(factors.deltas, factors.inputs, strict=True)
    return torch.cat([(d.unsqueeze(-1) * a.unsqueeze(-2)).flatten(-2) for d, a in blocks], -1)


def scaled(factors: Factors, factor: float) -> Factors:
    """Gradients times a constant, e.g. ĝ = g / √m."""
    return Factors(factors.inputs, tuple(delta * factor for delta in factors.deltas))


def gram(left: Factors, right: Factors) -> Tensor:
    """⟨g, g'⟩ = Σ_l ⟨δ_l, δ'_l⟩ ⟨a_l, a'_l⟩ without forming a gradient: (…, n, n')."""
    pairs = zip(left.inputs, left.deltas, right.inputs, right.deltas, strict=True)
    return reduce(torch.add, [(a @ a_.mT) * (d @ d_.mT) for a, d, a_, d_ in pairs])


def squared_norms(factors: Factors) -> Tensor:
    """‖g‖² = Σ_l ‖δ_l‖² ‖a_l‖², (…)."""
    blocks = [(d * d).sum(-1) * (a * a).sum(-1) for d, a in zip(factors.deltas, factors.inputs, strict=True)]
    return torch.stack(blocks).sum(0)
