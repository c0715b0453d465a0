"""The J training steps of a one-hidden-layer net in one compiled loop: sparse inputs, nothing allocated a step.

The same sums as kernels/training.py with kernels/network.py or kernels/monotone.py, in another order: equal to
rounding, several times faster at these sizes, where a step of library calls is mostly call overhead. Used where
`jit.serves`; elsewhere the library path.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from neuclust.kernels.jit import compiled
from neuclust.kernels.monotone import MonotoneNetwork
from neuclust.kernels.network import Network

if TYPE_CHECKING:
    from neuclust.kernels.training import Parameters

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

_TRANSFORM_CODES = {"sigmoid": 0, "softplus": 1, "exp": 2, "square": 3, "abs": 4}


@compiled
def _arm_steps(
    starts: Integers,
    index: Integers,
    value: Floats,
    target: Floats,
    weight: Floats,
    w0: Floats,
    w1: Floats,
    a0: Floats,
    a1: Floats,
    bias: bool,
    scale: float,
    steps: int,
    step: float,
    pull: float,
) -> None:
    """In place on w0 (in, m) and w1 (m or m + 1); a0, a1 are the anchor."""
    width = w0.shape[1]
    g0, g1 = np.empty_like(w0), np.empty_like(w1)
    hidden, delta = np.empty(width), np.empty(width)
    keep, home = 1.0 - step * pull, step * pull
    for _ in range(steps):
        g0[:] = 0.0
        g1[:] = 0.0
        for i in range(len(target)):
            hidden[:] = 0.0
            for e in range(starts[i], starts[i + 1]):
                j, v = index[e], value[e]
                for k in range(width):
                    hidden[k] += v * w0[j, k]
            total = w1[width] if bias else 0.0
            for k in range(width):
                total += max(hidden[k], 0.0) * w1[k]
            error = scale * weight[i] * (scale * total - target[i])
            for k in range(width):
                gate = 1.0 if hidden[k] > 0.0 else 0.0
                g1[k] += error * gate * hidden[k]
                delta[k] = error * gate * w1[k]
            if bias:
                g1[width] += error
            for e in range(starts[i], starts[i + 1]):
                j, v = index[e], value[e]
                for k in range(width):
                    g0[j, k] += v * delta[k]
        for j in range(w0.shape[0]):
            for k in range(width):
                w0[j, k] = keep * w0[j, k] - step * g0[j, k] + home * a0[j, k]
        for k in range(len(w1)):
            w1[k] = keep * w1[k] - step * g1[k] + home * a1[k]


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
    rewards: Floats,
    target: Floats,
    weight: Floats,
    t0: Floats,
    t1: Floats,
    b0: Floats,
    b1: Floats,
    a0: Floats,
    a1: Floats,
    c0: Floats,
    c1: Floats,
    code: int,
    relu_out: bool,
    clamp: bool,
    clamp_bias: bool,
    scales: Floats,
    steps: int,
    step: float,
    pull: float,
) -> None:
    """In place on raw weights t0 (K·n, by input), t1 (n) and biases b0 (n), b1 (1); a*, c* are the anchor."""
    k_size, width = rewards.shape[1], len(t1)
    e0, s0, e1, s1 = np.empty_like(t0), np.empty_like(t0), np.empty_like(t1), np.empty_like(t1)
    g0, g1, h0 = np.empty_like(t0), np.empty_like(t1), np.empty_like(b0)
    hidden, delta = np.empty(width), np.empty(width)
    keep, home = 1.0 - step * pull, step * pull
    for _ in range(steps):
        _transformed(code, t0, e0, s0)
        _transformed(code, t1, e1, s1)
        g0[:] = 0.0
        g1[:] = 0.0
        h0[:] = 0.0
        h1 = 0.0
        for i in range(len(target)):
            for n in range(width):
                hidden[n] = b0[n]
            for k in range(k_size):
                r = scales[0] * rewards[i, k]
                for n in range(width):
                    hidden[n] += r * e0[k * width + n]
            value = b1[0]
            for n in range(width):
                value += scales[1] * e1[n] * max(hidden[n], 0.0)
            error = weight[i] * ((max(value, 0.0) if relu_out else value) - target[i])
            if relu_out and value <= 0.0:
                error = 0.0
            h1 += error
            for n in range(width):
                gate = 1.0 if hidden[n] > 0.0 else 0.0
                g1[n] += error * gate * hidden[n]
                delta[n] = error * gate * scales[1] * e1[n]
                h0[n] += delta[n]
            for k in range(k_size):
                r = rewards[i, k]
                for n in range(width):
                    g0[k * width + n] += r * delta[n]
        for i in range(len(t0)):
            t0[i] = keep * t0[i] - step * scales[0] * s0[i] * g0[i] + home * a0[i]
            if clamp:
                t0[i] = max(t0[i], 0.0)
        for n in range(width):
            t1[n] = keep * t1[n] - step * scales[1] * s1[n] * g1[n] + home * a1[n]
            b0[n] = keep * b0[n] - step * h0[n] + home * c0[n]
            if clamp:
                t1[n] = max(t1[n], 0.0)
            if clamp or clamp_bias:
                b0[n] = max(b0[n], 0.0)
        b1[0] = keep * b1[0] - step * h1 + home * c1[0]
        if clamp or clamp_bias:
            b1[0] = max(b1[0], 0.0)


class SparseRows:
    """Rows of a matrix as starts, column numbers and values of their non-zero entries."""

    def __init__(self, rows: Tensor) -> None:
        dense = rows.numpy()
        where = np.nonzero(dense)
        self.starts = np.searchsorted(where[0], np.arange(len(dense) + 1))
        self.index, self.value = where[1], dense[where]


def descend_arm(
    net: Network,
    start: Parameters,
    rows: SparseRows,
    target: Tensor,
    weight: Tensor,
    *,
    steps: int,
    step: float,
    pull: float,
    anchor: Parameters | None,
) -> Parameters:
    """`training.descend` for a net with one hidden layer."""
    w0, w1 = start[0].T.contiguous().numpy().copy(), start[1][0].numpy().copy()
    a0 = np.zeros_like(w0) if anchor is None else anchor[0].T.contiguous().numpy()
    a1 = np.zeros_like(w1) if anchor is None else anchor[1][0].numpy()
    sparse = (rows.starts, rows.index, rows.value, target.numpy(), weight.numpy())
    _arm_steps(*sparse, w0, w1, a0, a1, net.bias, float(net.scale), steps, step, pull)
    return torch.from_numpy(w0).T.contiguous(), torch.from_numpy(w1).unsqueeze(0)


def descend_slate(
    net: MonotoneNetwork,
    start: Parameters,
    rewards: Tensor,
    target: Tensor,
    weight: Tensor,
    *,
    steps: int,
    step: float,
    pull: float,
    anchor: Parameters | None,
    clamp: bool,
    clamp_bias: bool,
) -> Parameters:
    """`training.descend` for a slate net with one hidden layer."""
    width, k = start[0].shape

    def unpack(parameters: Parameters) -> tuple[Floats, Floats, Floats, Floats]:
        t0, t1, b0, b1 = (p.T.contiguous() if i == 0 else p for i, p in enumerate(parameters))
        return _flat(t0), _flat(t1), _flat(b0), _flat(b1)

    moving = unpack(start)
    home = unpack(anchor if anchor is not None else tuple(torch.zeros_like(p) for p in start))
    data = (rewards.contiguous().numpy(), target.numpy(), weight.numpy())
    code, scales = _TRANSFORM_CODES[net.transform], np.array(net.scales)
    _slate_steps(*data, *moving, *home, code, net.relu_out, clamp, clamp_bias, scales, steps, step, pull)
    t0, t1, b0, b1 = (torch.from_numpy(p) for p in moving)
    return t0.reshape(k, width).T.contiguous(), t1.unsqueeze(0), b0, b1


def _flat(parameter: Tensor) -> Floats:
    flat: Floats = parameter.numpy().reshape(-1).copy()
    return flat
