"""The closed form of the tangent kernel against plain loops, and finite nets against the closed form."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch import Tensor

from neuclust.errors import ConfigError
from neuclust.kernels.initial import initial_network
from neuclust.kernels.network import Network, forward
from neuclust.randomness import stream
from neuclust.theory.ntk import (
    CONVENTIONS,
    Convention,
    TangentKernel,
    WidthError,
    decay_exponent,
    empirical_kernel,
    width_errors,
)


def rows(n: int, d: int, seed: int = 0) -> Tensor:
    return torch.from_numpy(stream(seed, "kernel rows").standard_normal((n, d)))


def by_covariances(x: Tensor, y: Tensor, depth: int, convention: Convention) -> float:
    """The recursion of §9.1 on 2 x 2 covariances of one pair, in plain Python."""
    xx, xy, yy = float(x @ x), float(x @ y), float(y @ y)
    total = xy
    layers = depth if convention == "printed" else depth + 1
    for _ in range(layers - 1):
        scale = math.sqrt(xx * yy)
        angle = math.acos(max(-1.0, min(1.0, xy / scale)))
        xy = scale * (math.sin(angle) + (math.pi - angle) * math.cos(angle)) / math.pi
        total = total * (math.pi - angle) / math.pi + xy
    return total if convention == "initialised" else (total + xy) / 2


@pytest.mark.parametrize("convention", CONVENTIONS)
@pytest.mark.parametrize("depth", [1, 2, 4])
def test_the_closed_form_is_the_recursion_on_every_pair(depth: int, convention: Convention) -> None:
    x, y = rows(7, 4), rows(5, 4, 1)
    found = TangentKernel(depth, convention)(x, y)
    naive = torch.tensor([[by_covariances(a, b, depth, convention) for b in y] for a in x], dtype=torch.float64)
    torch.testing.assert_close(found, naive, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("convention", CONVENTIONS)
def test_a_matrix_of_rows_with_themselves_is_symmetric_with_the_named_diagonal(convention: Convention) -> None:
    x = rows(6, 3)
    x[4] = x[1]  # a cosine that rounding keeps below 1
    kernel = TangentKernel(2, convention)
    found = kernel(x)
    torch.testing.assert_close(found, found.T, rtol=0, atol=1e-13)
    layers = {"initialised": 3.0, "halved": 2.0, "printed": 1.5}[convention]  # §9.1: W = 3: 3 and 2
    torch.testing.assert_close(found.diagonal(), layers * (x * x).sum(1))


def test_it_is_homogeneous_and_a_zero_row_has_a_zero_row() -> None:
    x, y = rows(4, 3), rows(3, 3, 1)
    kernel = TangentKernel(2)
    torch.testing.assert_close(kernel(2.5 * x, 0.2 * y), 0.5 * kernel(x, y))
    x[2] = 0.0
    assert not bool(kernel(x)[2].any())
    assert bool(torch.isfinite(kernel(x)).all())


def test_products_in_blocks_are_products_with_the_matrix() -> None:
    x, v = rows(50, 4), rows(50, 3, 1)
    kernel = TangentKernel(1)
    torch.testing.assert_close(kernel.row_sums(x, v, block=7), kernel(x, x) @ v)


def test_gradients_of_a_fresh_net_give_its_own_kernel() -> None:
    x = rows(5, 4)
    net = initial_network("mirrored", 4, 8, 2, math.sqrt(8), stream(3, "tangent kernel", 8))
    naive = torch.stack([gradient(net, each) for each in x])
    torch.testing.assert_close(empirical_kernel(x, 8, 2, seed=3), naive @ naive.T / 8, rtol=1e-10, atol=1e-10)


def gradient(net: Network, row: Tensor) -> Tensor:
    """∇_θ f of one row by autograd, all weights in one vector."""
    weights = tuple(w.clone().requires_grad_() for w in net.weights)
    value = forward(Network(weights, net.scale, net.bias), row.unsqueeze(0)).sum()
    return torch.cat([g.flatten() for g in torch.autograd.grad(value, weights)])


@pytest.mark.parametrize(("depth", "widths"), [(1, (64, 256, 1024, 4096)), (2, (32, 96, 288, 864))])
def test_finite_nets_come_near_the_closed_form_like_one_over_the_root_of_the_width(
    depth: int, widths: tuple[int, ...]
) -> None:
    x = rows(24, 6)
    x = x / torch.linalg.vector_norm(x, dim=1, keepdim=True)
    errors = list(width_errors(x, TangentKernel(depth), widths, nets=12))
    assert decay_exponent(errors) == pytest.approx(-0.5, abs=0.08)
    assert errors[-1].error < 0.4 * errors[0].error
    # what is left over shrinks, and is not a bias towards another convention
    assert all(each.spread < 0.35 * each.error for each in errors)


@pytest.mark.parametrize("convention", ["halved", "printed"])
def test_the_other_conventions_are_not_the_limit_of_nets_drawn_as_the_paper_says(convention: Convention) -> None:
    x = rows(24, 6)
    errors = list(width_errors(x, TangentKernel(1, convention), (64, 256, 1024, 4096), nets=4))
    assert errors[-1].error > 0.2  # a quarter of the kernel: more units do not help
    assert errors[-1].error > 0.8 * errors[-2].error


def test_the_exponent_is_the_slope_of_logarithms() -> None:
    made = [WidthError(m, 3.0 * m**-0.7, 0.0) for m in (10, 100, 1000)]
    assert decay_exponent(made) == pytest.approx(-0.7)


def test_a_net_without_hidden_layers_is_refused() -> None:
    with pytest.raises(ConfigError, match="depth"):
        TangentKernel(0)


def test_one_hidden_layer_by_sampled_units() -> None:
    """E over Gaussian weights of ⟨g, g'⟩/m, by two million units: H̃^{(2)} is what they tend to."""
    x, y = rows(2, 3)
    w = stream(5, "units").standard_normal((2_000_000, 3))
    a, b = w @ x.numpy(), w @ y.numpy()
    second = 2 * np.maximum(a, 0) * np.maximum(b, 0)  # gradient of the last layer, W_0 ~ N(0, 2/m)
    first = 2 * (a > 0) * (b > 0) * float(x @ y)  # of the first, with last weights N(0, 2/m)
    values = first + second
    error = 4 * float(values.std()) / math.sqrt(len(values))
    assert float(TangentKernel(1)(x[None], y[None])) == pytest.approx(float(values.mean()), abs=error)
