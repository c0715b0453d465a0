"""The J training steps of a one-hidden-layer net in one compiled loop: sparse inputs, nothing allocated per step.

Equal to kernels/training.py up to the order of sums, and several times faster at these sizes. Used where `jit.serves`.
"""

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from neuclust.kernels.jit import Floats, compiled
from neuclust.kernels.monotone import MonotoneNetwork
from neuclust.kernels.network import Network
from neuclust.kernels.rows import Rows, forward_norms, sparse_rows
from neuclust.kernels.tiles import SPARE, StepSizes, descend_tiles, tile_rows
from neuclust.kernels.training import Examples, Parameters, Steps

SlateData = tuple[Floats, Floats, Floats]  # arm rewards (t, K) or (K, t), slate rewards (t,) and weights (t,)
SlateWeights = tuple[Floats, Floats, Floats, Floats]  # raw Θ_0 (K·n, by input) and Θ_1 (n), biases b_0 (n) and b_1 (1)
SlateKind = tuple[int, bool, Floats]  # the transform q by number, whether F is rectified, both layers' scales (2,)

_SLATES = 128  # slates per block: one unit's answers to them stay in the fastest cache
_TRANSFORM_CODES = {"sigmoid": 0, "softplus": 1, "exp": 2, "square": 3, "abs": 4}


class Limits(NamedTuple):
    """What holds after every step: all parameters at least 0, biases at least 0; without `biased` they stay at 0."""

    clamp: bool
    clamp_bias: bool
    biased: bool


@compiled
def _workspace(t0: Floats, t1: Floats) -> tuple[Floats, Floats, Floats, Floats]:
    """Room for q(Θ) and q'(Θ) of both layers."""
    return np.empty_like(t0), np.empty_like(t0), np.empty_like(t1), np.empty_like(t1)


@compiled
def _transformed(code: int, raw: Floats, value: Floats, slope: Floats) -> None:
    """q(Θ) and q'(Θ), elementwise, into value and slope."""
    for i in range(len(raw)):
        x = raw[i]
        if code == 0 or code == 1:
            s = 1.0 / (1.0 + np.exp(-x))
            value[i] = s if code == 0 else max(x, 0.0) + np.log1p(np.exp(-abs(x)))
            slope[i] = s * (1.0 - s) if code == 0 else s
        elif code == 2:
            value[i] = np.exp(x)
            slope[i] = value[i]
        elif code == 3:
            value[i], slope[i] = x * x, 2.0 * x
        else:
            value[i], slope[i] = abs(x), np.sign(x)


@compiled
def _slate_steps(
    data: SlateData, moving: SlateWeights, anchor: SlateWeights, kind: SlateKind, limits: Limits, steps: StepSizes
) -> None:
    """Steps in place on `moving`, towards `anchor`; rewards (K, t).

    Blocks are slices: an index that is a sum might be negative to the compiler, and the loop would not vectorise.
    """
    (rewards, target, weight), (t0, t1, b0, b1), (a0, a1, c0, c1) = data, moving, anchor
    (code, relu_out, scales), (clamp, clamp_bias, biased), (number, step, pull) = kind, limits, steps
    k_size, count, width = rewards.shape[0], rewards.shape[1], len(t1)
    e0, s0, e1, s1 = _workspace(t0, t1)
    g0, g1, h0 = np.empty_like(t0), np.empty_like(t1), np.empty_like(b0)
    hidden, value, error, delta = np.empty((width, _SLATES)), np.empty(_SLATES), np.empty(_SLATES), np.empty(_SLATES)
    keep, home = 1.0 - step * pull, step * pull
    for _ in range(number):
        _transformed(code, t0, e0, s0)
        _transformed(code, t1, e1, s1)
        g0[:] = 0.0
        g1[:] = 0.0
        h0[:] = 0.0
        h1 = 0.0
        for first in range(0, count, _SLATES):
            size = min(_SLATES, count - first)
            value[:] = b1[0]
            for n in range(width):
                row, bias, out = hidden[n], b0[n], scales[1] * e1[n]
                for i in range(size):
                    row[i] = bias
                for k in range(k_size):
                    line, w = rewards[k, first : first + size], scales[0] * e0[k * width + n]
                    for i in range(size):
                        row[i] += w * line[i]
                for i in range(size):
                    value[i] += out * max(row[i], 0.0)
            goal, share = target[first : first + size], weight[first : first + size]
            for i in range(size):
                wanted = share[i] * ((max(value[i], 0.0) if relu_out else value[i]) - goal[i])
                error[i] = 0.0 if relu_out and value[i] <= 0.0 else wanted
                h1 += error[i]
            for n in range(width):
                row, out = hidden[n], scales[1] * e1[n]
                slope, shift = 0.0, 0.0
                for i in range(size):
                    gated = error[i] if row[i] > 0.0 else 0.0
                    slope += gated * row[i]
                    shift += gated
                    delta[i] = gated
                g1[n] += slope
                h0[n] += out * shift
                for k in range(k_size):
                    line, total = rewards[k, first : first + size], 0.0
                    for i in range(size):
                        total += line[i] * delta[i]
                    g0[k * width + n] += out * total
        for i in range(len(t0)):
            t0[i] = keep * t0[i] - step * scales[0] * s0[i] * g0[i] + home * a0[i]
            if clamp:
                t0[i] = max(t0[i], 0.0)
        for n in range(width):
            t1[n] = keep * t1[n] - step * scales[1] * s1[n] * g1[n] + home * a1[n]
            if biased:
                b0[n] = keep * b0[n] - step * h0[n] + home * c0[n]
            if clamp:
                t1[n] = max(t1[n], 0.0)
            if clamp or clamp_bias:
                b0[n] = max(b0[n], 0.0)
        if biased:
            b1[0] = keep * b1[0] - step * h1 + home * c1[0]
        if clamp or clamp_bias:
            b1[0] = max(b1[0], 0.0)


@compiled
def _slate_sums(data: SlateData, weights: SlateWeights, kind: SlateKind) -> tuple[float, float]:
    """½ Σ weight (F − R)² and Σ weight ‖∇F‖² over slates, rewards (t, K)."""
    (rewards, target, weight), (t0, t1, b0, b1), (code, relu_out, scales) = data, weights, kind
    k_size, width = rewards.shape[1], len(t1)
    e0, s0, e1, s1 = _workspace(t0, t1)
    _transformed(code, t0, e0, s0)
    _transformed(code, t1, e1, s1)
    hidden, spread = np.empty(width), np.empty(width)
    loss, curvature = 0.0, 0.0
    for i in range(len(target)):
        hidden[:] = b0
        spread[:] = 1.0
        for k in range(k_size):
            r = scales[0] * rewards[i, k]
            for n in range(width):
                hidden[n] += r * e0[k * width + n]
                spread[n] += (r * s0[k * width + n]) ** 2
        value, norm = b1[0], 1.0
        for n in range(width):
            if hidden[n] > 0.0:
                value += scales[1] * e1[n] * hidden[n]
                norm += (scales[1] * s1[n] * hidden[n]) ** 2 + (scales[1] * e1[n]) ** 2 * spread[n]
        if relu_out and value <= 0.0:
            value, norm = 0.0, 0.0
        loss += 0.5 * weight[i] * (value - target[i]) ** 2
        curvature += weight[i] * norm
    return loss, curvature


def slate_sums(net: MonotoneNetwork, parameters: Parameters, examples: Examples) -> tuple[float, float]:
    """Loss and curvature of a slate net with one hidden layer, as training needs them; inputs (t, K)."""
    return _slate_sums(_data(examples, examples.inputs), _flat(parameters), _kind(net))


class SparseRows:
    """Rows to train on: their non-zero entries, and the same packed into tiles."""

    def __init__(self, rows: Tensor | Rows) -> None:
        self.rows = rows if isinstance(rows, Rows) else sparse_rows(rows.contiguous().numpy())
        self.tiles = tile_rows(self.rows)


def descend_arm(
    net: Network, start: Parameters, rows: SparseRows, target: Tensor, weight: Tensor, steps: Steps
) -> Parameters:
    """`training.descend` for a net with one hidden layer."""
    home = tuple(torch.zeros_like(p) for p in start) if steps.anchor is None else steps.anchor
    w0, w1 = _with_spares(start[0]), start[1][0].numpy().copy()
    anchor = (_with_spares(home[0]), home[1][0].numpy())
    tiles = rows.tiles
    data = (tiles.starts, tiles.columns, tiles.values, tiles.placed(target.numpy()), tiles.placed(weight.numpy()))
    descend_tiles(data, (w0, w1), anchor, (net.bias, float(net.scale)), _sizes(steps))
    return torch.from_numpy(w0[:-SPARE]).T.contiguous(), torch.from_numpy(w1).unsqueeze(0)


def _with_spares(weight: Tensor) -> Floats:
    """W_0 by input column, (in + 4, m), with zeros for columns that are not there."""
    w0 = np.zeros((weight.shape[1] + SPARE, weight.shape[0]))
    w0[:-SPARE] = weight.numpy().T
    return w0


def arm_means_and_norms(net: Network, parameters: Parameters, rows: Rows) -> tuple[Tensor, Tensor]:
    """f and ‖∇f‖² of every row for a net of this kind with one hidden layer, (n,) each; rows are augmented already."""
    w0, w1 = np.ascontiguousarray(parameters[0].numpy().T), parameters[1][0].numpy()
    means, norms = forward_norms(rows, w0, w1, float(net.scale), net.bias)
    return torch.from_numpy(means), torch.from_numpy(norms)


def descend_slate(
    net: MonotoneNetwork, start: Parameters, examples: Examples, steps: Steps, limits: Limits
) -> Parameters:
    """`training.descend` for a slate net with one hidden layer; inputs (t, K)."""
    width, k = start[0].shape
    moving = _flat(start)
    home = _flat(tuple(torch.zeros_like(p) for p in start) if steps.anchor is None else steps.anchor)
    _slate_steps(_data(examples, examples.inputs.T), moving, home, _kind(net), limits, _sizes(steps))
    t0, t1, b0, b1 = (torch.from_numpy(p) for p in moving)
    return t0.reshape(k, width).T.contiguous(), t1.unsqueeze(0), b0, b1


def _data(examples: Examples, inputs: Tensor) -> SlateData:
    return inputs.contiguous().numpy(), examples.target.numpy(), examples.weight.numpy()


def _flat(parameters: Parameters) -> SlateWeights:
    """Copies, each as one row of numbers."""
    t0, t1, b0, b1 = (p.numpy().reshape(-1).copy() for p in (parameters[0].T.contiguous(), *parameters[1:]))
    return t0, t1, b0, b1


def _kind(net: MonotoneNetwork) -> SlateKind:
    return _TRANSFORM_CODES[net.transform], net.relu_out, np.array(net.scales)


def _sizes(steps: Steps) -> StepSizes:
    return steps.number, float(steps.size), float(steps.pull)
