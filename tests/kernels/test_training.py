"""Gradient descent of the arm net: closed-form gradients, the merged objective, the guard that cannot be fooled."""

from __future__ import annotations

import math

import naive_reference as naive
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from neuclust.kernels.network import Network, augment
from neuclust.kernels.training import (
    Parameters,
    Steps,
    arm_gradients,
    arm_objective,
    descend,
    finite,
    guarded,
    pull_energy,
)
from neuclust.randomness import stream


def random_net(depth: int, bias: bool = False, seed: int = 0) -> Network:
    rng = stream(seed, "test training net")
    sizes = [4, *[6] * depth, 1]
    shapes = [(sizes[i + 1], sizes[i] + bias) for i in range(depth + 1)]
    return Network(tuple(torch.from_numpy(rng.standard_normal(s) / 2) for s in shapes), math.sqrt(6), bias)


def observations(n: int, distinct: int, seed: int = 0) -> tuple[Tensor, Tensor, Tensor]:
    """n raw contexts with repeats, their 0/1 rewards, and which distinct context each is."""
    rng = stream(seed, "test observations")
    pool = torch.from_numpy(rng.random((distinct, 4)))
    which = torch.from_numpy(rng.integers(distinct, size=n))
    return pool[which], torch.from_numpy(rng.integers(2, size=n).astype(float)), which


def merged(x: Tensor, r: Tensor, which: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Distinct contexts, mean rewards and counts, in plain Python."""
    kinds = sorted(set(which.tolist()))
    groups = [which == kind for kind in kinds]
    return (
        torch.stack([x[g][0] for g in groups]),
        torch.stack([r[g].mean() for g in groups]),
        torch.stack([g.sum() for g in groups]).to(torch.float64),
    )


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("depth", [1, 2, 3])
def test_arm_gradients_equal_autograd(depth: int, bias: bool) -> None:
    net = random_net(depth, bias)
    x, r, _ = observations(15, 9)
    weight = torch.linspace(0.1, 2, 15, dtype=torch.float64)
    leaves = [w.clone().requires_grad_() for w in net.weights]
    loss = 0.5 * (weight * (naive.forward(leaves, x, net.scale, bias) - r) ** 2).sum()
    assert float(arm_objective(net, augment(net, x), r, weight)) == pytest.approx(loss.item(), rel=1e-12)
    expected = torch.autograd.grad(loss, leaves)
    for found, wanted in zip(arm_gradients(net, augment(net, x), r, weight), expected, strict=True):
        torch.testing.assert_close(found, wanted, rtol=1e-11, atol=1e-11)


@given(st.integers(0, 10**6), st.integers(1, 40), st.integers(1, 8))
def test_the_merged_objective_is_the_raw_one_up_to_a_constant(seed: int, n: int, distinct: int) -> None:
    x, r, which = observations(n, distinct, seed)
    contexts, target, counts = merged(x, r, which)
    gaps = []
    for other in (1, 2):
        net = random_net(2, seed=other)
        raw = 0.5 * float(((naive.forward(net.weights, x, net.scale) - r) ** 2).sum())
        gaps.append(raw - float(arm_objective(net, contexts, target, counts)))
        slopes = arm_gradients(net, x, r, torch.ones(n, dtype=torch.float64))
        for found, wanted in zip(arm_gradients(net, contexts, target, counts), slopes, strict=True):
            torch.testing.assert_close(found, wanted, rtol=1e-9, atol=1e-10)
    assert gaps[0] == pytest.approx(gaps[1], abs=1e-9)


def quadratic(parameters: Parameters, _: int) -> Parameters:
    return tuple(3.0 * p for p in parameters)


def test_descend_follows_the_update_rule_step_by_step() -> None:
    start, anchor = (torch.tensor([2.0, -1.0]),), (torch.tensor([0.5, 0.5]),)
    expected = start[0].clone()
    for _ in range(4):
        expected = expected - 0.1 * (3 * expected + 0.7 * (expected - anchor[0]))
    found = descend(start, quadratic, Steps(4, 0.1, 0.7, anchor))
    torch.testing.assert_close(found[0], expected)
    decayed = descend(start, quadratic, Steps(1, 0.1, 0.7))
    torch.testing.assert_close(decayed[0], start[0] - 0.1 * 3.7 * start[0])
    assert start[0].tolist() == [2.0, -1.0]


def test_descend_projects_after_every_step() -> None:
    def project(parameters: Parameters) -> None:
        parameters[0].clamp_(min=1.5)

    seen = []

    def gradient(parameters: Parameters, index: int) -> Parameters:
        seen.append((index, parameters[0].tolist()))
        return quadratic(parameters, index)

    found = descend((torch.tensor([2.0]),), gradient, Steps(3, 0.1), project)
    assert found[0].tolist() == [1.5]
    assert seen == [(0, [2.0]), (1, [1.5]), (2, [1.5])]


def test_pull_energy_is_half_the_pull_times_the_squared_distance() -> None:
    parameters, anchor = (
        (torch.tensor([3.0, 0.0]), torch.tensor([1.0])),
        (torch.tensor([1.0, 0.0]), torch.tensor([0.0])),
    )
    assert pull_energy(parameters, anchor, 0.5) == pytest.approx(0.25 * (4 + 1))
    assert pull_energy(parameters, None, 0.5) == pytest.approx(0.25 * (9 + 1))
    assert pull_energy(parameters, anchor, 0.0) == 0


def regression(depth: int, seed: int = 0) -> tuple[Network, Tensor, Tensor, Tensor]:
    x, r, _ = observations(30, 30, seed)
    return random_net(depth, seed=seed), x, r, torch.ones(30, dtype=torch.float64)


@given(st.integers(0, 10**6), st.sampled_from([1e-3, 1e-1, 1.0, 1e2, 1e6]), st.sampled_from([1, 2]))
def test_a_guarded_descent_never_ends_above_its_start(seed: int, step: float, depth: int) -> None:
    net, x, r, weight = regression(depth, seed)

    def with_weights(parameters: Parameters) -> Network:
        return Network(parameters, net.scale)

    def attempt(size: float) -> Parameters:
        return descend(net.weights, lambda p, _: arm_gradients(with_weights(p), x, r, weight), Steps(10, size))

    def value(parameters: Parameters) -> float:
        return float(arm_objective(with_weights(parameters), x, r, weight))

    result = guarded(net.weights, attempt, value, step)
    assert finite(result.parameters)
    assert value(result.parameters) <= value(net.weights) * (1 + 1e-12)
    if result.failed:
        assert all(torch.equal(a, b) for a, b in zip(result.parameters, net.weights, strict=True))
    else:
        assert result.step == step / 2**result.retries


def test_the_guard_keeps_a_good_step_and_halves_a_bad_one() -> None:
    start = (torch.tensor([1.0]),)

    def attempt(size: float) -> Parameters:
        return descend(start, quadratic, Steps(3, size))

    def value(parameters: Parameters) -> float:
        return 1.5 * float(parameters[0] ** 2)

    kept = guarded(start, attempt, value, 0.1)
    assert (kept.step, kept.retries, kept.failed) == (0.1, 0, False)
    halved = guarded(start, attempt, value, 1.0)  # |1 − 3η| > 1 for η = 1, below 1 for η = ½
    assert (halved.step, halved.retries, halved.failed) == (0.5, 1, False)
    lost = guarded(start, attempt, value, 1e9)
    assert lost.failed
    assert lost.parameters[0].tolist() == [1.0]


def test_the_same_absurd_step_without_a_guard_blows_up() -> None:
    net, x, r, weight = regression(1)
    found = descend(net.weights, lambda p, _: arm_gradients(Network(p, net.scale), x, r, weight), Steps(10, 1e6))
    worse = not finite(found) or arm_objective(Network(found, net.scale), x, r, weight) > 1e6
    assert worse or max(float(p.abs().max()) for p in found) > 1e3


def test_finite_sees_every_parameter() -> None:
    assert finite((torch.ones(2), torch.zeros(1)))
    assert not finite((torch.ones(2), torch.tensor([math.nan])))
    assert not finite((torch.tensor([math.inf]), torch.ones(1)))
