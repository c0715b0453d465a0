"""Adam (Kingma, Ba, ICLR 2015) on the squared loss of a small ReLU net, in float32 NumPy: calls cost most there."""

from collections.abc import Iterator

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from neuclust.kernels.network import Network

Floats = NDArray[np.float32]
Batch = tuple[Floats, Floats, Floats | float]  # x, y, share
BETA_1, BETA_2, EPSILON = 0.9, 0.999, 1e-8


@np.errstate(over="ignore", invalid="ignore")  # a rate too large ends in NaN, which the caller looks for
def adam(
    net: Network,
    batches: Iterator[Batch],
    *,
    rate: float,
    decay: float = 0.0,
    head: bool = True,
    masks: Floats | None = None,
) -> Network:
    """One step per batch (x, y, share) down Σ_i share_i (f(x_i) − y_i)² + decay ‖θ‖², from fresh moments.

    x (b, in) is augmented already, y (b,), share (b,) or one number. Without `head` the output layer is not trained.
    masks (steps, m) multiply the last hidden layer: dropout, one mask per step.
    """
    flat = np.concatenate([weight.numpy(force=True).ravel() for weight in net.weights]).astype(np.float32)
    slope = np.zeros_like(flat)
    layers, slopes = _views(flat, net.weights), _views(slope, net.weights)
    free = len(flat) if head else len(flat) - net.weights[-1].numel()
    theta, gradient = flat[:free], slope[:free]
    first, second = np.zeros_like(theta), np.zeros_like(theta)
    for step, batch in enumerate(batches, 1):
        _gradients_into(slopes, layers, net, batch, None if masks is None else masks[step - 1])
        gradient += (2 * decay) * theta
        first += (1 - BETA_1) * (gradient - first)
        second += (1 - BETA_2) * (gradient * gradient - second)
        root = np.sqrt(second / (1 - BETA_2**step))
        root += EPSILON
        theta -= (rate / (1 - BETA_1**step)) * first / root
    trained = tuple(torch.from_numpy(layer.astype(np.float64)) for layer in layers)
    return Network(trained if head else (*trained[:-1], net.weights[-1]), net.scale, net.bias)


def _views(flat: Floats, like: tuple[Tensor, ...]) -> list[Floats]:
    """The layers of a flat vector of parameters, sharing its memory."""
    ends = np.cumsum([weight.numel() for weight in like])
    pieces = np.split(flat, ends[:-1])
    return [piece.reshape(tuple(weight.shape)) for piece, weight in zip(pieces, like, strict=True)]


def _gradients_into(
    slopes: list[Floats], weights: list[Floats], net: Network, batch: Batch, mask: Floats | None
) -> None:
    """∇ of Σ_i share_i (f(x_i) − y_i)², written into `slopes`, one matrix per layer."""
    x, y, share = batch
    inputs = [x]
    for weight in weights[:-1]:
        hidden = np.ones((len(x), len(weight) + net.bias), np.float32)  # a last column of 1 for biases
        np.maximum(inputs[-1] @ weight.T, 0, out=hidden[:, : len(weight)])
        inputs.append(hidden)
    units = weights[-1].shape[1] - net.bias
    if mask is not None:
        inputs[-1][:, :units] *= mask
    error = net.scale * (inputs[-1] @ weights[-1][0]) - y
    delta = ((2 * net.scale * share) * error).astype(np.float32, copy=False)[:, None]
    np.dot(delta.T, inputs[-1], out=slopes[-1])
    for layer in reversed(range(len(weights) - 1)):
        units = len(weights[layer])
        delta = np.dot(delta, weights[layer + 1][:, :units])
        delta *= inputs[layer + 1][:, :units] > 0
        if mask is not None and layer == len(weights) - 2:
            delta *= mask
        np.dot(delta.T, inputs[layer], out=slopes[layer])
