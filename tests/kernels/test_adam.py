"""Adam on small nets against torch's own, and against its promises."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from neuclust.kernels.adam import adam
from neuclust.kernels.initial import initial_network
from neuclust.kernels.network import Network, augment
from neuclust.randomness import stream

Batch = tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.float32]]


def problem(net: Network, steps: int) -> list[Batch]:
    """`steps` batches of 40 rows with uneven shares."""
    rng = stream(3, "test adam")
    batches = []
    for _ in range(steps):
        x = augment(net, torch.from_numpy(rng.standard_normal((40, 5)))).numpy().astype(np.float32)
        share = rng.random(40).astype(np.float32)
        batches.append((x, rng.random(40).astype(np.float32), share / share.sum()))
    return batches


def by_autograd(
    net: Network, batches: list[Batch], rate: float, decay: float, masks: NDArray[np.float32] | None = None
) -> tuple[torch.Tensor, ...]:
    weights = [torch.nn.Parameter(weight.clone()) for weight in net.weights]
    optimizer = torch.optim.Adam(weights, lr=rate)
    for step, (x, y, share) in enumerate(batches):
        optimizer.zero_grad()
        hidden = torch.from_numpy(x.astype(np.float64))
        for weight in weights[:-1]:
            hidden = augment(net, torch.relu(hidden @ weight.T))
        if masks is not None:
            hidden = hidden * torch.from_numpy(np.append(masks[step], [1.0] if net.bias else []).astype(np.float64))
        error = hidden @ weights[-1][0] - torch.from_numpy(y)
        loss = (torch.from_numpy(share) * error**2).sum() + decay * sum((w * w).sum() for w in weights)
        torch.autograd.backward(loss)
        optimizer.step()
    return tuple(weight.detach() for weight in weights)


@pytest.mark.parametrize("init", ["uniform", "torch-default"])
@pytest.mark.parametrize("depth", [0, 1, 2])
def test_steps_equal_those_of_torch(depth: int, init: str) -> None:
    """Fails when moments are not corrected for their start, when decay is left out, or when a layer's gate is."""
    net = initial_network(init, 5, 8, depth, 1.0, stream(0, "test adam net"))
    batches = problem(net, 25)
    found = adam(net, iter(batches), rate=1e-2, decay=0.05)
    for left, right in zip(found.weights, by_autograd(net, batches, 1e-2, 0.05), strict=True):
        torch.testing.assert_close(left, right, rtol=0, atol=1e-4)
        assert left.dtype == torch.float64


def test_a_frozen_head_stays_and_what_lies_below_moves() -> None:
    net = initial_network("uniform", 5, 8, 1, 1.0, stream(0, "test adam net"))
    found = adam(net, iter(problem(net, 5)), rate=1e-2, decay=0.1, head=False)
    assert torch.equal(found.weights[-1], net.weights[-1])
    assert not torch.allclose(found.weights[0], net.weights[0])


def test_the_net_that_came_in_is_left_alone() -> None:
    net = initial_network("uniform", 5, 8, 1, 1.0, stream(0, "test adam net"))
    before = [weight.clone() for weight in net.weights]
    adam(net, iter(problem(net, 3)), rate=1e-2)
    assert all(torch.equal(weight, old) for weight, old in zip(net.weights, before, strict=True))


@pytest.mark.parametrize("init", ["uniform", "torch-default"])
@pytest.mark.parametrize("depth", [1, 2])
def test_masked_steps_equal_those_of_torch(depth: int, init: str) -> None:
    """Fails when a mask misses the forward pass or the gradient of the layers below."""
    net = initial_network(init, 5, 8, depth, 1.0, stream(0, "test adam net"))
    batches = problem(net, 25)
    masks = (2 * (stream(1, "test masks").random((25, 8)) < 0.5)).astype(np.float32)
    found = adam(net, iter(batches), rate=1e-2, decay=0.05, masks=masks)
    for left, right in zip(found.weights, by_autograd(net, batches, 1e-2, 0.05, masks), strict=True):
        torch.testing.assert_close(left, right, rtol=0, atol=1e-4)
