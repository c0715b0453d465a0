"""Gradient descent for both networks, with closed-form gradients and steps that cannot blow up.

The objective is always ½ Σ_i weight_i (prediction_i − target_i)² + (pull / 2) ‖θ − anchor‖², where equal
contexts were merged beforehand: a context seen n times with mean reward r̄ weighs n and has target r̄,
which changes the objective by a constant only.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from neuclust.kernels.network import Network, augment, layers, output

Parameters = tuple[Tensor, ...]
Projection = Callable[[Parameters], None]  # puts parameters back where they may be, in place


@dataclass(frozen=True, slots=True)
class Descent:
    """What a training call did: the parameters it ended with and how it went."""

    parameters: Parameters
    step: float  # the step that was used in the end
    retries: int  # how often the step was halved because the objective rose
    failed: bool  # True: no step helped; the parameters are the ones training started from


def arm_gradients(net: Network, x: Tensor, target: Tensor, weight: Tensor) -> Parameters:
    """∇ of ½ Σ_i weight_i (f(x_i) − target_i)², one tensor a layer; x (n, in) is augmented already."""
    inputs, preactivations = layers(net, x)
    error = weight * (output(net, inputs[-1]) - target)
    delta = (net.scale * error).unsqueeze(-1)
    gradients = [delta.T @ inputs[-1]]
    for layer in reversed(range(len(preactivations))):
        z = preactivations[layer]
        delta = (delta @ net.weights[layer + 1][:, : z.shape[-1]]) * (z > 0)
        gradients.append(delta.T @ inputs[layer])
    return tuple(reversed(gradients))


def arm_objective(net: Network, x: Tensor, target: Tensor, weight: Tensor) -> float:
    """½ Σ_i weight_i (f(x_i) − target_i)²; x is augmented already."""
    inputs, _ = layers(net, x)
    return 0.5 * float((weight * (output(net, inputs[-1]) - target) ** 2).sum())


def descend(
    start: Parameters,
    gradient: Callable[[Parameters, int], Parameters],
    *,
    steps: int,
    step: float,
    pull: float = 0.0,
    anchor: Parameters | None = None,
    project: Projection | None = None,
) -> Parameters:
    """`steps` steps of θ ← θ − step · (∇loss(θ) + pull (θ − anchor)); anchor None means 0."""
    parameters = tuple(p.clone() for p in start)
    keep = 1.0 - step * pull
    home = None if anchor is None or pull == 0 else tuple(a * (step * pull) for a in anchor)
    for index in range(steps):
        slopes = gradient(parameters, index)
        for i, parameter in enumerate(parameters):
            parameter.mul_(keep).add_(slopes[i], alpha=-step)
            if home is not None:
                parameter.add_(home[i])
        if project is not None:
            project(parameters)
    return parameters


def pull_energy(parameters: Parameters, anchor: Parameters | None, pull: float) -> float:
    """(pull / 2) ‖θ − anchor‖²."""
    if pull == 0:
        return 0.0
    gaps = parameters if anchor is None else tuple(p - a for p, a in zip(parameters, anchor, strict=True))
    return 0.5 * pull * sum(float((gap * gap).sum()) for gap in gaps)


def guarded(
    start: Parameters,
    attempt: Callable[[float], Parameters],
    objective: Callable[[Parameters], float],
    step: float,
    retries: int = 12,
) -> Descent:
    """Try a step; halve it while the objective ends above where it began, so that training never harms.

    Without this a large step can throw every unit below zero ("catapult, then dead ReLU"), from which
    gradient descent never returns.
    """
    before = objective(start)
    for trial in range(retries + 1):
        parameters = attempt(step)
        after = objective(parameters)
        if after <= before or (after - before) <= 1e-12 * abs(before):
            return Descent(parameters, step, trial, failed=False)
        step /= 2
    return Descent(start, 0.0, retries, failed=True)


def lifeless(net: Network, x: Tensor, target: Tensor, sample: int = 64) -> bool:
    """Whether no hidden unit tells distinct contexts x (u, d') apart although their rewards (u,) differ.

    Such a net answers everything alike and has no gradient to leave that state by. A few rows settle it, nearly always.
    """
    if len(net.weights) < 2 or len(x) < 2:
        return False
    if not _alike(_hidden(net, x[:sample]), 1e-14):
        return False
    differ = bool((target != target[0]).any()) and not _alike(x, 1e-10)  # what differs by rounding is one context
    return differ and _alike(_hidden(net, x), 1e-14)


def _hidden(net: Network, x: Tensor) -> Tensor:
    return layers(net, augment(net, x))[0][-1]


def _alike(rows: Tensor, share: float) -> bool:
    """Whether no column varies by more than this share of its largest entry."""
    return bool(((rows.amax(0) - rows.amin(0)) <= share * rows.abs().amax(0)).all())


def finite(parameters: Parameters) -> bool:
    """Whether every parameter is a number."""
    return all(bool(torch.isfinite(p).all()) for p in parameters)
