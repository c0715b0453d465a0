"""The arm network against autograd, its initialisations, and its limit, the neural tangent kernel."""

from __future__ import annotations

import math

import naive_reference as naive
import numpy as np
import pytest
import torch
from torch import Tensor

from neuclust.errors import ConfigError
from neuclust.kernels.initial import RULES, initial_network
from neuclust.kernels.network import (
    Network,
    augment,
    flatten,
    forward,
    gradient_factors,
    gram,
    layers,
    output,
    restrict,
    scaled,
    squared_norms,
)
from neuclust.randomness import stream

DEPTHS = (1, 2, 3)


def random_net(depth: int, bias: bool, dim: int = 5, width: int = 8, scale: float = 1.7) -> Network:
    rng = stream(depth, "test net")
    sizes = [dim, *[width] * depth, 1]
    shapes = [(sizes[i + 1], sizes[i] + bias) for i in range(depth + 1)]
    return Network(tuple(torch.from_numpy(rng.standard_normal(s) / math.sqrt(s[1])) for s in shapes), scale, bias)


def random_inputs(n: int, dim: int = 5, seed: int = 0) -> Tensor:
    return torch.from_numpy(stream(seed, "test inputs").standard_normal((n, dim)))


def naive_gradients(net: Network, x: Tensor) -> Tensor:
    return torch.stack([naive.gradient(net.weights, row, net.scale, net.bias) for row in x])


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("depth", DEPTHS)
def test_forward_equals_the_reference(depth: int, bias: bool) -> None:
    net, x = random_net(depth, bias), random_inputs(20)
    expected = torch.stack([naive.forward(net.weights, row, net.scale, bias) for row in x])
    torch.testing.assert_close(forward(net, x), expected, rtol=0, atol=1e-12)
    assert float(expected.std()) > 1e-3


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("depth", DEPTHS)
def test_gradient_factors_equal_autograd_of_every_sample(depth: int, bias: bool) -> None:
    net, x = random_net(depth, bias), random_inputs(20)
    torch.testing.assert_close(flatten(gradient_factors(net, x)), naive_gradients(net, x), rtol=0, atol=1e-12)


def test_the_gradient_at_a_dead_input_is_zero_because_the_derivative_of_relu_at_zero_is_zero() -> None:
    net = random_net(2, bias=False)
    zero = torch.zeros(1, 5, dtype=torch.float64)
    assert torch.count_nonzero(flatten(gradient_factors(net, zero))) == 0
    torch.testing.assert_close(flatten(gradient_factors(net, zero)), naive_gradients(net, zero), rtol=0, atol=0)


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("depth", DEPTHS)
def test_gram_and_norms_equal_inner_products_of_the_gradients(depth: int, bias: bool) -> None:
    net, x, y = random_net(depth, bias), random_inputs(7), random_inputs(9, seed=1)
    left, right = naive_gradients(net, x), naive_gradients(net, y)
    factors = gradient_factors(net, x)
    torch.testing.assert_close(gram(factors, gradient_factors(net, y)), left @ right.T, rtol=1e-11, atol=1e-11)
    torch.testing.assert_close(squared_norms(factors), (left * left).sum(1), rtol=1e-11, atol=1e-11)
    torch.testing.assert_close(flatten(scaled(factors, 0.25)), left / 4, rtol=0, atol=1e-12)


@pytest.mark.parametrize("bias", [False, True])
def test_a_net_restricted_to_the_columns_in_use_gives_the_same_output(bias: bool) -> None:
    net, x = random_net(2, bias), random_inputs(6)
    x[:, [0, 3]] = 0.0
    columns = torch.tensor([1, 2, 4, 5] if bias else [1, 2, 4])
    small = restrict(net, columns)
    inputs, _ = layers(small, augment(small, x[:, [1, 2, 4]]))
    torch.testing.assert_close(output(small, inputs[-1]), forward(net, x), rtol=0, atol=1e-13)


@pytest.mark.parametrize("depth", DEPTHS)
def test_a_bias_free_net_is_homogeneous(depth: int) -> None:
    net, x = random_net(depth, bias=False), random_inputs(6)
    torch.testing.assert_close(forward(net, 3.5 * x), 3.5 * forward(net, x), rtol=1e-12, atol=1e-12)


# --- initialisation -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("depth", DEPTHS)
def test_symmetric_start_with_duplicated_inputs_predicts_zero_everywhere(depth: int) -> None:
    net = initial_network("symmetric", 12, 20, depth, math.sqrt(20), stream(3, "test"))
    half = random_inputs(50, dim=6)
    assert float(forward(net, torch.cat([half, half], 1) / math.sqrt(2)).abs().max()) < 1e-14
    assert float(forward(net, random_inputs(50, dim=12)).abs().max()) > 0.1


@pytest.mark.parametrize("depth", DEPTHS)
def test_mirrored_start_predicts_zero_without_duplicated_inputs(depth: int) -> None:
    net = initial_network("mirrored", 7, 20, depth, math.sqrt(20), stream(3, "test"))
    x = random_inputs(50, dim=7)
    assert float(forward(net, x).abs().max()) < 1e-14
    assert float(squared_norms(gradient_factors(net, x)).min()) > 0


@pytest.mark.parametrize("depth", [1, 2])
def test_symmetric_start_has_the_printed_blocks_and_variances(depth: int) -> None:
    m, d = 400, 300
    weights = initial_network("symmetric", d, m, depth, 1.0, stream(0, "test")).weights
    for weight in weights[:-1]:
        top, left = weight.shape[0] // 2, weight.shape[1] // 2
        assert torch.equal(weight[:top, :left], weight[top:, left:])
        assert torch.count_nonzero(weight[:top, left:]) == torch.count_nonzero(weight[top:, :left]) == 0
        assert float(weight[:top, :left].var()) == pytest.approx(4 / m, rel=0.05)
    last = weights[-1][0]
    assert torch.equal(last[: m // 2], -last[m // 2 :])
    assert float(last.var()) == pytest.approx(2 / m, rel=0.3)


def test_torch_default_start_has_biases_and_the_bounds_of_a_linear_layer() -> None:
    net = initial_network("torch-default", 9, 30, 2, 1.0, stream(0, "test"))
    assert net.bias
    assert [tuple(w.shape) for w in net.weights] == [(30, 10), (30, 31), (1, 31)]
    for weight, fan_in in zip(net.weights, (9, 30, 30), strict=True):
        bound = 1 / math.sqrt(fan_in)
        assert 0.8 * bound < float(weight.abs().max()) <= bound


def test_he_start_has_its_variances() -> None:
    net = initial_network("he", 200, 300, 2, 1.0, stream(0, "test"))
    for weight, variance in zip(net.weights, (2 / 200, 2 / 300, 1 / 300), strict=True):
        assert float(weight.var()) == pytest.approx(variance, rel=0.3)
    assert not net.bias


@pytest.mark.parametrize(("rule", "dim", "width"), [("symmetric", 6, 5), ("symmetric", 5, 6), ("mirrored", 6, 5)])
def test_halving_rules_refuse_odd_sizes(rule: str, dim: int, width: int) -> None:
    with pytest.raises(ConfigError, match="even"):
        initial_network(rule, dim, width, 1, 1.0, stream(0, "test"))


def test_an_unknown_rule_is_refused_with_the_known_ones() -> None:
    with pytest.raises(ConfigError, match="mirrored"):
        initial_network("zeros", 6, 6, 1, 1.0, stream(0, "test"))


@pytest.mark.parametrize("rule", list(RULES))
def test_equal_streams_give_equal_weights(rule: str) -> None:
    first, again = (initial_network(rule, 6, 8, 2, 1.0, stream(5, "test")) for _ in range(2))
    other = initial_network(rule, 6, 8, 2, 1.0, stream(6, "test"))
    assert all(torch.equal(a, b) for a, b in zip(first.weights, again.weights, strict=True))
    assert not torch.equal(first.weights[0], other.weights[0])


# --- the infinitely wide limit --------------------------------------------------------------------------------


def tangent_kernel(x: Tensor, depth: int) -> np.ndarray:
    """H̃^{(L+1)} by the arc-cosine recursion, one entry at a time."""
    n = len(x)
    kernel = np.empty((n, n))
    for i in range(n):
        for j in range(n):
            s = math.sqrt(float(x[i] @ x[i]) * float(x[j] @ x[j]))
            sigma = h = float(x[i] @ x[j])
            for _ in range(depth):
                c = min(1.0, max(-1.0, sigma / s))
                angle = math.acos(c)
                sigma = s * (math.sqrt(1 - c * c) + (math.pi - angle) * c) / math.pi
                h = h * (math.pi - angle) / math.pi + sigma
            kernel[i, j] = h
    return kernel


def kernel_errors(rule: str, depth: int, width: int, seeds: int) -> tuple[float, float]:
    """Largest entry of gᵀg'/m − H̃, of the average over draws and as an average of absolute values."""
    x = torch.nn.functional.normalize(random_inputs(6, dim=4), dim=1)
    x[5] *= 0.5  # a context of another length
    shown = torch.cat([x, x], 1) / math.sqrt(2) if rule == "symmetric" else x
    limit, gaps = tangent_kernel(x, depth), []
    for seed in range(seeds):
        net = initial_network(rule, shown.shape[1], width, depth, math.sqrt(width), stream(seed, "kernel"))
        factors = gradient_factors(net, shown)
        gaps.append(gram(factors, factors).numpy() / width - limit)
    return float(np.abs(np.mean(gaps, 0)).max()), float(np.mean(np.abs(gaps), 0).max())


@pytest.mark.parametrize("rule", ["symmetric", "mirrored"])
@pytest.mark.parametrize("depth", [1, 2])
def test_the_gradient_kernel_tends_to_the_closed_form_tangent_kernel(rule: str, depth: int) -> None:
    _, narrow = kernel_errors(rule, depth, 32, 20)
    bias, wide = kernel_errors(rule, depth, 1024, 80)
    assert wide < narrow / 3  # the spread falls like 1/√m
    assert bias < 0.15  # another convention of the last layer's variance would be off by 0.5 or 1
