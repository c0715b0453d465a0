"""Gradient descent on ½ Σ_i weight_i (prediction_i − target_i)² + (pull / 2) ‖θ − anchor‖² for both networks.

Equal contexts are merged beforehand: n plays with mean reward r̄ have weight n and target r̄, the same objective up to a
constant. For R networks at once parameters have a leading dimension R, and step, pull and objective are tensors (R,).
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

import torch
from torch import Tensor

from neuclust.kernels.network import Network, augment, layers, output

Parameters = tuple[Tensor, ...]
Gradient = Callable[[Parameters, int], Parameters]  # of the loss, for step number i
Projection = Callable[[Parameters], None]  # puts parameters back where they may be, in place
Number = TypeVar("Number", float, Tensor)  # of one network, or (R,) of R networks

RETRIES = 12  # how often a step is halved before a training counts as failed
SAMPLE = 64  # rows that nearly always show whether a net is lifeless


class Examples(NamedTuple):
    """What a network is fitted to: inputs (…, n, in), targets (…, n) and weights (…, n)."""

    inputs: Tensor
    target: Tensor
    weight: Tensor


class Steps(NamedTuple):
    """`number` steps of θ ← θ − size · (∇loss(θ) + pull (θ − anchor)); anchor None means 0."""

    number: int
    size: float | Tensor
    pull: float | Tensor = 0.0
    anchor: Parameters | None = None


@dataclass(frozen=True, slots=True)
class Descent:
    """The outcome of one training call."""

    parameters: Parameters
    step: float  # the step that was used in the end
    retries: int  # how often the step was halved because the objective rose
    failed: bool  # True: no step helped; the parameters are the ones training started from


def squared_loss(predictions: Tensor, target: Tensor, weight: Tensor) -> Tensor:
    """½ Σ_i weight_i (prediction_i − target_i)², (…, n) -> (…)."""
    return 0.5 * (weight * (predictions - target) ** 2).sum(-1)


def arm_gradients(net: Network, x: Tensor, target: Tensor, weight: Tensor) -> Parameters:
    """∇ of ½ Σ_i weight_i (f(x_i) − target_i)², one tensor per layer; x (…, n, in) is augmented already."""
    inputs, preactivations = layers(net, x)
    error = weight * (output(net, inputs[-1]) - target)
    delta = (net.scale * error).unsqueeze(-1)
    gradients = [delta.mT @ inputs[-1]]
    for layer in reversed(range(len(preactivations))):
        z = preactivations[layer]
        delta = (delta @ net.weights[layer + 1][..., : z.shape[-1]]) * (z > 0)
        gradients.append(delta.mT @ inputs[layer])
    return tuple(reversed(gradients))


def arm_objective(net: Network, x: Tensor, target: Tensor, weight: Tensor) -> Tensor:
    """½ Σ_i weight_i (f(x_i) − target_i)²; x is augmented already."""
    return squared_loss(output(net, layers(net, x)[0][-1]), target, weight)


def per_run(values: Tensor, like: Tensor) -> Tensor:
    """Numbers of R networks (R,) in a shape that multiplies `like` (R, …)."""
    return values.view(-1, *[1] * (like.ndim - 1))


def descend(start: Parameters, gradient: Gradient, steps: Steps, project: Projection | None = None) -> Parameters:
    """The parameters after these steps from `start`."""
    parameters = tuple(p.clone() for p in start)
    descend_(parameters, gradient, steps, project)
    return parameters


def descend_(parameters: Parameters, gradient: Gradient, steps: Steps, project: Projection | None = None) -> None:
    """The same in place."""
    size, shift = steps.size, steps.size * steps.pull
    keep = 1.0 - shift
    still = steps.anchor is None or (not isinstance(steps.pull, Tensor) and steps.pull == 0)
    home = None if steps.anchor is None or still else tuple(a * _shaped(shift, a) for a in steps.anchor)
    for index in range(steps.number):
        slopes = gradient(parameters, index)
        for i, parameter in enumerate(parameters):
            parameter.mul_(_shaped(keep, parameter))
            if isinstance(size, Tensor):
                parameter.addcmul_(slopes[i], per_run(size, parameter), value=-1)
            else:
                parameter.add_(slopes[i], alpha=-size)
            if home is not None:
                parameter.add_(home[i])
        if project is not None:
            project(parameters)


def _shaped(value: float | Tensor, like: Tensor) -> float | Tensor:
    return per_run(value, like) if isinstance(value, Tensor) else value


def pull_energy(parameters: Parameters, anchor: Parameters | None, pull: Number) -> Number:
    """(pull / 2) ‖θ − anchor‖²."""
    gaps = parameters if anchor is None else tuple(p - a for p, a in zip(parameters, anchor, strict=True))
    if isinstance(pull, Tensor):
        return 0.5 * pull * torch.stack([(gap * gap).flatten(1).sum(1) for gap in gaps]).sum(0)
    return 0.5 * pull * sum(float((gap * gap).sum()) for gap in gaps) if pull else 0.0


def automatic_step(share: Number, curvature: Number, pull: Number) -> Number:
    """`share` over a bound on the largest eigenvalue of the objective's curvature."""
    return share / (curvature + pull + 1e-12)


def not_worse(after: float | Tensor, before: float | Tensor) -> bool | Tensor:
    """Whether a training that took the objective from `before` to `after` is kept: it may rise by rounding only."""
    rounding = 1e-12 * (before.abs() if isinstance(before, Tensor) else abs(before))
    return (after <= before) | (after - before <= rounding)


def guarded(
    start: Parameters,
    attempt: Callable[[float], Parameters],
    objective: Callable[[Parameters], float],
    step: float,
    retries: int = RETRIES,
) -> Descent:
    """Try a step; halve it while the objective ends above where it began.

    A large step can throw every unit below zero ("catapult, then dead ReLU"): gradient descent never returns from that.
    """
    before = objective(start)
    for trial in range(retries + 1):
        parameters = attempt(step)
        if not_worse(objective(parameters), before):
            return Descent(parameters, step, trial, failed=False)
        step /= 2
    return Descent(start, 0.0, retries, failed=True)


def lifeless(net: Network, x: Tensor, target: Tensor) -> bool:
    """Whether every hidden unit is constant over distinct contexts x (u, d') although their rewards (u,) differ.

    Such a net is constant and has no gradient to leave that state by. A few rows settle it, nearly always.
    """
    if len(net.weights) < 2 or len(x) < 2 or not bool(unresponsive(net, x[:SAMPLE])):
        return False
    differ = bool((target != target[0]).any()) and not bool(_alike(x, 1e-10))  # differences by rounding do not count
    return differ and bool(unresponsive(net, x))


def unresponsive(net: Network, x: Tensor) -> Tensor:
    """Whether all hidden units are constant over the rows x (…, n, d'): (…)."""
    return _alike(layers(net, augment(net, x))[0][-1], 1e-14)


def _alike(rows: Tensor, share: float) -> Tensor:
    """Whether no column of rows (…, n, c) varies by more than this share of its largest entry: (…)."""
    return ((rows.amax(-2) - rows.amin(-2)) <= share * rows.abs().amax(-2)).all(-1)


def finite(parameters: Parameters) -> bool:
    """Whether every parameter is finite."""
    return all(bool(torch.isfinite(p).all()) for p in parameters)
