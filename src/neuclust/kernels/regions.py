"""Activation regions: where the gradient is linear in the input, one small matrix serves many arms.

Inside one activation pattern D the deltas are constant and every a_l is linear in x, so g(x) = J_D x and exactly
w(x)² = ĝᵀZ⁻¹ĝ = xᵀ Q_D x with Q_D = Ĵ_Dᵀ Z⁻¹ Ĵ_D, a (q, q) matrix for q active inputs.
"""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from neuclust.kernels import compiled
from neuclust.kernels.jit import serves
from neuclust.kernels.network import Factors, Network, backward_deltas, layers, output


@dataclass(frozen=True, slots=True)
class Regions:
    """f of every row (n,), the first row of each activation region (R,) and every row's region (n,)."""

    means: Tensor
    first: Tensor
    region: Tensor


def find_regions(net: Network, x: Tensor) -> Regions:
    """One forward pass of rows x (n, q), augmented already, sorted into activation regions."""
    if len(net.weights) == 2 and serves(x):
        w0, w1 = np.ascontiguousarray(net.weights[0].numpy().T), net.weights[1][0].numpy()
        means, words = compiled.forward_patterns(x.contiguous().numpy(), w0, w1, net.bias, float(net.scale))
        first, region = compiled.group_rows(words)
        return Regions(torch.from_numpy(means), torch.from_numpy(first), torch.from_numpy(region))
    inputs, preactivations = layers(net, x)
    return Regions(output(net, inputs[-1]), *group_rows(pattern_rows(preactivations)))


def group_rows(rows: Tensor) -> tuple[Tensor, Tensor]:
    """Equal rows once: (first position of each distinct row (u,), index of its row for every row (n,))."""
    bits = rows.contiguous()
    if bits.is_floating_point():
        bits = (bits.to(torch.float64) + 0.0).view(torch.int64)  # + 0.0 turns −0 into 0: equal numbers, equal bits
    if serves(bits):
        found = compiled.group_rows(bits.numpy())
        return torch.from_numpy(found[0]), torch.from_numpy(found[1])
    if rows.shape[1] == 0:
        return torch.zeros(1, dtype=torch.int64), torch.zeros(len(rows), dtype=torch.int64)
    _, group = torch.unique(bits, dim=0, return_inverse=True)  # another order of groups
    places = torch.arange(len(rows), device=rows.device)
    first = torch.full((int(group.max()) + 1,), len(rows), dtype=torch.int64, device=rows.device)
    return first.scatter_reduce(0, group, places, "amin"), group


def pattern_rows(preactivations: tuple[Tensor, ...]) -> Tensor:
    """Activation patterns packed 52 signs to an integer: (n, words) int64."""
    signs = torch.cat([z > 0 for z in preactivations], -1)
    words = []
    for start in range(0, signs.shape[1], 52):  # 52: the product below is exact in float64
        block = signs[:, start : start + 52].to(torch.float64)
        powers = torch.pow(2.0, torch.arange(block.shape[1], dtype=torch.float64, device=signs.device))
        words.append((block @ powers).to(torch.int64))
    return torch.stack(words, 1)


def region_widths(x: Tensor, forms: Tensor, region: Tensor) -> Tensor:
    """w = √(xᵀ Q x) with the form of each row's region: x (n, q), forms (R, q, q), region (n,)."""
    if serves(x, forms):
        arrays = x.contiguous().numpy(), forms.contiguous().numpy(), region.numpy()
        return torch.from_numpy(compiled.region_widths(*arrays))
    return ((forms[region] * x.unsqueeze(1)).sum(2) * x).sum(1).clamp(min=0).sqrt()


def region_basis(net: Network, gates: tuple[Tensor, ...], dim: int) -> Factors:
    """Columns of J_D as gradient factors a_l (R, q, in_l), δ_l (R, q, out_l), for gates (R, m) and inputs e_1 … e_q.

    With biases the last unit input is the constant 1, and only that one reaches the constants of the layers above.
    """
    regions = gates[0].shape[0]
    dtype, device = net.weights[0].dtype, net.weights[0].device
    unit = torch.eye(dim, dtype=dtype, device=device).expand(regions, dim, dim)
    inputs = [unit]
    for weight, gate in zip(net.weights[:-1], gates, strict=True):
        hidden = (inputs[-1] @ weight.T) * gate.unsqueeze(1)
        inputs.append(torch.cat([hidden, unit[..., -1:]], -1) if net.bias else hidden)
    deltas = tuple(d.unsqueeze(1).expand(regions, dim, d.shape[-1]) for d in backward_deltas(net, gates))
    return Factors(tuple(inputs), deltas)
