"""The slate network: never falls when an arm improves, gradients as autograd has them."""

from __future__ import annotations

import naive_reference as naive
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from neuclust.kernels.monotone import (
    TRANSFORMS,
    MonotoneNetwork,
    effective_weights,
    slate_gradient_norms,
    slate_gradients,
    slate_value,
)
from neuclust.randomness import stream

K, WIDTH = 4, 6


def random_net(transform: str, depth: int, scale: str, relu_out: bool = False, seed: int = 0) -> MonotoneNetwork:
    rng = stream(seed, "test slate net")
    sizes = [K, *[WIDTH] * depth, 1]
    weights = tuple(torch.from_numpy(rng.standard_normal((sizes[i + 1], sizes[i]))) for i in range(depth + 1))
    biases = tuple(torch.from_numpy(0.5 * rng.standard_normal(sizes[i + 1])) for i in range(depth + 1))
    scales = tuple(1.0 if scale == "printed" else 2 / sizes[i] for i in range(depth + 1))
    return MonotoneNetwork(weights, biases, scales, transform, relu_out)


def random_rewards(n: int, seed: int = 0) -> Tensor:
    return torch.from_numpy(stream(seed, "test rewards").standard_normal((n, K)))


@pytest.mark.parametrize("transform", list(TRANSFORMS))
@given(seed=st.integers(0, 10**6), depth=st.integers(1, 3), scale=st.sampled_from(["printed", "calibrated"]))
def test_a_better_arm_never_lowers_the_slate(transform: str, seed: int, depth: int, scale: str) -> None:
    net = random_net(transform, depth, scale, seed=seed)
    low = random_rewards(20, seed)
    better = torch.from_numpy(stream(seed, "test gains").exponential(size=(20, K)))
    high = low + better * torch.from_numpy(stream(seed, "test which").random((20, K)) < 0.5)
    gain = slate_value(net, high) - slate_value(net, low)
    assert float(gain.min()) >= -1e-9 * max(1.0, float(slate_value(net, high).abs().max()))


@pytest.mark.parametrize("relu_out", [False, True])
@pytest.mark.parametrize("depth", [1, 2, 3])
@pytest.mark.parametrize("transform", list(TRANSFORMS))
def test_value_equals_the_reference(transform: str, depth: int, relu_out: bool) -> None:
    net, rewards = random_net(transform, depth, "calibrated", relu_out), random_rewards(15)
    expected = naive.slate_forward(net.parameters, net.scales, transform, rewards, relu_out)
    torch.testing.assert_close(slate_value(net, rewards), expected, rtol=1e-12, atol=1e-12)
    assert all(float(weight.min()) >= 0 for weight in effective_weights(net))
    assert relu_out or float(expected.std()) > 1e-3


@pytest.mark.parametrize("relu_out", [False, True])
@pytest.mark.parametrize("scale", ["printed", "calibrated"])
@pytest.mark.parametrize("depth", [1, 2, 3])
@pytest.mark.parametrize("transform", list(TRANSFORMS))
def test_gradients_equal_autograd(transform: str, depth: int, scale: str, relu_out: bool) -> None:
    net, rewards = random_net(transform, depth, scale, relu_out), random_rewards(12)
    target, weight = random_rewards(12, seed=1)[:, 0], random_rewards(12, seed=2)[:, 1].abs()
    leaves = [p.clone().requires_grad_() for p in net.parameters]
    value = naive.slate_forward(leaves, net.scales, transform, rewards, relu_out)
    expected = torch.autograd.grad(0.5 * (weight * (value - target) ** 2).sum(), leaves)
    for found, wanted in zip(slate_gradients(net, rewards, target, weight), expected, strict=True):
        torch.testing.assert_close(found, wanted, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("relu_out", [False, True])
@pytest.mark.parametrize("depth", [1, 2])
@pytest.mark.parametrize("transform", list(TRANSFORMS))
def test_gradient_norms_equal_autograd_of_every_slate(transform: str, depth: int, relu_out: bool) -> None:
    net, rewards = random_net(transform, depth, "calibrated", relu_out), random_rewards(8)
    leaves = [p.clone().requires_grad_() for p in net.parameters]
    expected = []
    for value in naive.slate_forward(leaves, net.scales, transform, rewards, relu_out):
        slopes = torch.autograd.grad(value, leaves, retain_graph=True)
        expected.append(float((naive.flat(slopes) ** 2).sum()))
    torch.testing.assert_close(
        slate_gradient_norms(net, rewards), torch.tensor(expected, dtype=torch.float64), rtol=1e-10, atol=1e-12
    )


def test_parameters_go_out_and_come_back_in_one_order() -> None:
    net = random_net("sigmoid", 2, "printed", relu_out=True)
    again = net.with_parameters(tuple(p + 1 for p in net.parameters)).with_parameters(net.parameters)
    assert torch.equal(slate_value(again, random_rewards(5)), slate_value(net, random_rewards(5)))
