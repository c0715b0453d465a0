"""S and λ_0 against direct solutions, where the means are in the kernel's span and where they are not."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from neuclust.randomness import stream
from neuclust.theory.norm_bound import JITTERS, norm_bound
from neuclust.theory.ntk import TangentKernel

KERNEL = TangentKernel(1)


def rows(n: int = 40, d: int = 5) -> torch.Tensor:
    return torch.from_numpy(stream(0, "norm bound").standard_normal((n, d)))


def test_s_is_the_solution_of_the_system_at_every_jitter() -> None:
    x = rows()
    means = torch.from_numpy(stream(1, "means").random(40))
    found = norm_bound(x, means, KERNEL)
    h = KERNEL(x).numpy()
    unit = np.trace(h) / 40
    for (jitter, value), asked in zip(found.by_jitter, JITTERS, strict=True):
        assert jitter == asked
        naive = math.sqrt(2 * means.numpy() @ np.linalg.solve(h + jitter * unit * np.eye(40), means.numpy()))
        assert value == pytest.approx(naive, rel=1e-7)
    eigenvalues = np.linalg.eigvalsh(h)
    assert found.smallest == pytest.approx(eigenvalues[0], rel=1e-7)
    assert found.largest == pytest.approx(eigenvalues[-1])
    assert found.distance == pytest.approx(found.value / math.sqrt(2))  # Lemma 4 beside Theorem 1


def test_means_of_the_kernels_span_settle_at_their_norm() -> None:
    x = rows()
    weights = torch.from_numpy(stream(2, "weights").standard_normal(40)) / 40
    h = KERNEL(x)
    found = norm_bound(x, h @ weights, KERNEL)
    assert found.settles
    assert found.value == pytest.approx(math.sqrt(2 * float(weights @ h @ weights)), rel=1e-3)


def test_means_that_are_not_homogeneous_along_a_ray_never_settle() -> None:
    x = rows()
    x[1] = 2 * x[0]
    means = torch.full((40,), 0.5, dtype=torch.float64)  # equal at x and 2x, where every net has the double
    found = norm_bound(x, means, KERNEL)
    assert not found.settles
    assert found.smallest == 0.0
    values = [value for _, value in found.by_jitter]
    assert values == sorted(values)
    assert values[-1] > 100 * values[0] / 10
