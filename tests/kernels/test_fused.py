"""The compiled training loops against the library ones, for every option they have."""

from __future__ import annotations

import itertools

import pytest
import torch
from torch import Tensor

from neuclust.kernels import fused, jit
from neuclust.kernels.monotone import TRANSFORMS, MonotoneNetwork, slate_gradient_norms, slate_gradients, slate_value
from neuclust.kernels.network import Network, augment
from neuclust.kernels.training import Examples, Parameters, Steps, arm_gradients, descend
from neuclust.randomness import stream

pytestmark = pytest.mark.skipif(not jit.available, reason="Numba is not installed: there is no compiled loop")


def draw(seed: int, *shape: int) -> Tensor:
    return torch.from_numpy(stream(seed, "test fused").standard_normal(shape))


@pytest.mark.parametrize(("bias", "anchored"), list(itertools.product([False, True], repeat=2)))
def test_arm_steps_equal_the_library(bias: bool, anchored: bool) -> None:
    net = Network((draw(0, 8, 5 + bias) / 2, draw(1, 1, 8 + bias) / 2), 1.6, bias)
    x, target, weight = draw(2, 20, 5), draw(3, 20), draw(4, 20).abs() / 20
    x[x.abs() < 0.6] = 0.0  # sparse, as masked contexts are
    x[3] = 0.0
    anchor = tuple(draw(5 + i, *w.shape) for i, w in enumerate(net.weights)) if anchored else None
    rows, steps = augment(net, x), Steps(25, 0.05, 0.3, anchor)
    expected = descend(
        net.weights,
        lambda w, _: arm_gradients(Network(w, net.scale, bias), rows, target, weight),
        steps,
    )
    before = [w.clone() for w in net.weights]
    found = fused.descend_arm(net, net.weights, fused.SparseRows(rows), target, weight, steps)
    for one, other, old in zip(found, expected, before, strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-12)
        assert not torch.allclose(one, old)
    assert all(torch.equal(w, old) for w, old in zip(net.weights, before, strict=True))


def zeroed(parameters: Parameters) -> None:
    for parameter in parameters:
        parameter.zero_()


def clamped(first: int, parameters: Parameters) -> None:
    for parameter in parameters[first:]:
        parameter.clamp_(min=0)


@pytest.mark.parametrize("relu_out", [False, True])
@pytest.mark.parametrize("anchored", [False, True])
@pytest.mark.parametrize("projection", ["none", "biases", "all", "no biases"])
@pytest.mark.parametrize("transform", list(TRANSFORMS))
def test_slate_steps_equal_the_library(transform: str, projection: str, anchored: bool, relu_out: bool) -> None:
    parameters = (draw(0, 6, 4), draw(1, 1, 6), draw(2, 6) / 2, draw(3, 1))
    net = MonotoneNetwork(parameters[:2], parameters[2:], (0.5, 1 / 3), transform, relu_out)
    rewards, target, weight = draw(4, 15, 4), draw(5, 15), draw(6, 15).abs() / 15
    anchor = tuple(draw(7 + i, *p.shape) for i, p in enumerate(parameters)) if anchored else None
    if projection == "no biases":
        parameters = (*parameters[:2], torch.zeros(6).double(), torch.zeros(1).double())
        net = net.with_parameters(parameters)
    steps = Steps(20, 0.02, 0.2, anchor)
    first = {"none": 99, "biases": 2, "all": 0, "no biases": 99}[projection]

    def project(moving: Parameters) -> None:
        if projection == "no biases":
            zeroed(moving[2:])
        clamped(first, moving)

    expected = descend(
        parameters,
        lambda p, _: slate_gradients(net.with_parameters(p), rewards, target, weight),
        steps,
        project,
    )
    before = [p.clone() for p in parameters]
    limits = fused.Limits(projection == "all", projection == "biases", projection != "no biases")
    found = fused.descend_slate(net, parameters, Examples(rewards, target, weight), steps, limits)
    for one, other in zip(found, expected, strict=True):
        assert one.shape == other.shape
        torch.testing.assert_close(one, other, rtol=0, atol=1e-11)
    assert all(torch.equal(p, old) for p, old in zip(parameters, before, strict=True))


def test_only_float64_on_the_cpu_is_served() -> None:
    double, integer, single = (torch.zeros(2, dtype=kind) for kind in (torch.float64, torch.int64, torch.float32))
    assert jit.serves(double, integer)
    assert not jit.serves(double, single)
    assert not jit.serves(double.to("meta"))


@pytest.mark.parametrize("relu_out", [False, True])
@pytest.mark.parametrize("transform", list(TRANSFORMS))
def test_slate_sums_equal_the_library(transform: str, relu_out: bool) -> None:
    parameters = (draw(0, 6, 4), draw(1, 1, 6), draw(2, 6) / 2, draw(3, 1))
    net = MonotoneNetwork(parameters[:2], parameters[2:], (0.5, 1 / 3), transform, relu_out)
    rewards, target, weight = draw(4, 15, 4), draw(5, 15), draw(6, 15).abs() / 15
    loss, curvature = fused.slate_sums(net, parameters, Examples(rewards, target, weight))
    assert loss == pytest.approx(0.5 * float((weight * (slate_value(net, rewards) - target) ** 2).sum()), rel=1e-12)
    assert curvature == pytest.approx(float((weight * slate_gradient_norms(net, rewards)).sum()), rel=1e-12)


def test_sparse_rows_hold_every_non_zero_entry() -> None:
    dense = torch.tensor([[0.0, 2.0, 0.0], [0.0, 0.0, 0.0], [3.0, 0.0, -1.0]], dtype=torch.float64)
    rows = fused.SparseRows(dense).rows
    again = torch.zeros(3, 3, dtype=torch.float64)
    for i in range(3):
        for e in range(rows.starts[i], rows.starts[i + 1]):
            again[i, rows.index[e]] = rows.value[e]
    assert torch.equal(again, dense)
