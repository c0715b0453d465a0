"""Activation regions: where the gradient is linear in the input, one small matrix serves many arms.

Inside one activation pattern D the deltas are constant and every a_l is linear in x, so g(x) = J_D x and
w(x)² = ĝᵀZ⁻¹ĝ = xᵀ Q_D x with Q_D = Ĵ_Dᵀ Z⁻¹ Ĵ_D, a (q, q) matrix for q active inputs. Exact, not an
approximation: with few active columns thousands of arms share a dozen regions.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from neuclust.kernels.network import Factors, Network, backward_deltas

# Odd 64-bit multipliers, one a column: a hash that is checked afterwards, so chance never decides a result.
_MULTIPLIERS = torch.from_numpy(
    np.random.Generator(np.random.Philox(key=20250)).integers(-(2**62), 2**62, size=1 << 14, dtype=np.int64) * 2 + 1
)


def group_rows(rows: Tensor) -> tuple[Tensor, Tensor]:
    """Equal rows once: (first position of each distinct row (u,), index of its row for every row (n,))."""
    bits = rows.contiguous()
    if bits.dtype == torch.float64:
        bits = (bits + 0.0).view(torch.int64)  # + 0.0 turns −0 into 0, so that equal numbers have equal bits
    codes = _hash(bits.to(torch.int64))
    distinct, group = torch.unique(codes, return_inverse=True)
    first = torch.full((len(distinct),), len(rows), dtype=torch.int64, device=rows.device)
    first = first.scatter_reduce(0, group, torch.arange(len(rows), device=rows.device), "amin")
    if not torch.equal(bits[first][group], bits):  # a collision: sort whole rows instead
        _, group = torch.unique(bits, dim=0, return_inverse=True)
        first = torch.full((int(group.max()) + 1,), len(rows), dtype=torch.int64, device=rows.device)
        first = first.scatter_reduce(0, group, torch.arange(len(rows), device=rows.device), "amin")
    return first, group


def _hash(bits: Tensor) -> Tensor:
    mixed = bits ^ (bits >> 29)  # float bit patterns of round numbers end in zeros: mix the high half down
    multipliers = _MULTIPLIERS.to(bits.device)
    if bits.shape[1] > len(multipliers):
        multipliers = multipliers.repeat(-(-bits.shape[1] // len(multipliers)))
    code = (mixed * multipliers[: bits.shape[1]]).sum(1)
    return code ^ (code >> 31)


def pattern_rows(preactivations: tuple[Tensor, ...]) -> Tensor:
    """Activation patterns packed 52 signs to an integer: (n, words) int64."""
    signs = torch.cat([z > 0 for z in preactivations], -1)
    words = []
    for start in range(0, signs.shape[1], 52):  # 52: the product below is exact in float64
        block = signs[:, start : start + 52].to(torch.float64)
        powers = torch.pow(2.0, torch.arange(block.shape[1], dtype=torch.float64, device=signs.device))
        words.append((block @ powers).to(torch.int64))
    return torch.stack(words, 1)


def region_basis(net: Network, gates: tuple[Tensor, ...], dim: int) -> Factors:
    """Columns of J_D as gradient factors, for R regions with gates (R, m) and unit inputs e_1 … e_q.

    Shapes: a_l (R, q, in_l), δ_l (R, q, out_l). With biases the last unit input is the constant 1, and
    only that one reaches the constants of the layers above.
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
