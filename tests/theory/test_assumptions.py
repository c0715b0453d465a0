"""Every assumption's check against plain loops, on data that keep it and on data that do not."""

from __future__ import annotations

import math
from itertools import combinations, product

import numpy as np
import pytest
import torch
from torch import Tensor

from neuclust.environments.rewards import mean, threshold
from neuclust.randomness import stream
from neuclust.theory.assumptions import (
    context_lipschitz,
    contexts_check,
    entries,
    monotone,
    noise,
    reverse_schwarz,
    separation,
    slopes,
    smoothness,
)
from neuclust.theory.norm_bound import norm_bound
from neuclust.theory.ntk import TangentKernel


def rows(n: int = 20, d: int = 4, seed: int = 0) -> Tensor:
    return torch.from_numpy(stream(seed, "assumption rows").random((n, d)))


def worth(means: Tensor) -> float:
    """P(at least 3 of the arms pay) by enumeration."""
    total = 0.0
    for outcome in product((0, 1), repeat=len(means)):
        chance = math.prod(float(m) if paid else 1 - float(m) for m, paid in zip(means, outcome, strict=True))
        total += chance * (sum(outcome) >= 3)
    return total


def test_slopes_are_differences_of_the_slates_worth() -> None:
    means = torch.tensor([0.2, 0.5, 0.7, 0.9], dtype=torch.float64)
    for i, found in enumerate(slopes(worth, means)):
        up, down = means.clone(), means.clone()
        up[i] += 1e-3
        down[i] -= 1e-3
        assert float(found) == pytest.approx((worth(up) - worth(down)) / 2e-3, rel=1e-9)


def test_rewards_of_the_library_have_slopes_within_their_largest_step() -> None:
    means = torch.tensor([0.2, 0.5, 0.7, 0.9, 0.4], dtype=torch.float64)
    for pays in (mean(5), threshold(5)):
        found = slopes(lambda m, pays=pays: float(pays.expected(m[None])[0]), means)  # type: ignore[misc]
        assert 0 <= float(found.min()) <= float(found.max()) <= 1


def test_the_lipschitz_constant_is_the_largest_over_all_pairs() -> None:
    x, h = rows(), torch.from_numpy(stream(1, "h").random(20))
    naive = [
        abs(float(h[i] - h[j])) / float((x[i] - x[j]).abs().sum()) for i, j in combinations(range(20), 2)
    ]  # fmt: skip
    most, usual = context_lipschitz(x, h)
    assert most == pytest.approx(max(naive))
    assert usual == pytest.approx(sorted(naive)[int(0.99 * (len(naive) - 1))])


def test_smooth_means_pass_and_a_jump_fails() -> None:
    x = torch.linspace(0, 1, 200, dtype=torch.float64)[:, None]
    smooth = smoothness(0.5, x, x[:, 0], 1.0)
    assert smooth.holds is True
    assert smooth.numbers["B_prime"] == pytest.approx(1.0)
    jump = smoothness(0.5, x, (x[:, 0] > 0.5).double(), 1.0)
    assert jump.holds is False


def test_monotone_and_noise() -> None:
    assert monotone(0.0).holds is True
    assert monotone(-0.1).holds is False
    assert noise(0.0, 1.0, amounts=False).numbers["zeta"] == 0.5
    assert noise(0.0, 1.2, amounts=False).holds is False
    assert noise(0.1, 0.9, amounts=True).holds is False


def test_unit_contexts_with_a_regular_kernel_pass_and_parallel_ones_fail() -> None:
    unit = rows() / torch.linalg.vector_norm(rows(), dim=1, keepdim=True)
    means = torch.full((20,), 0.5, dtype=torch.float64)
    good = contexts_check(unit, norm_bound(unit, means, TangentKernel()), 0)
    assert good.holds is True
    assert good.numbers["lambda_0"] == pytest.approx(float(np.linalg.eigvalsh(TangentKernel()(unit).numpy())[0]))
    bad = torch.cat([unit, 2 * unit[:1]])
    found = contexts_check(bad, norm_bound(bad, torch.full((21,), 0.5), TangentKernel()), 1)
    assert found.holds is False
    assert found.numbers["lambda_0"] == 0
    assert found.numbers["longest"] == pytest.approx(2.0)
    assert "1 contexts are parallel" in found.found


def test_the_reverse_inequality_is_the_largest_over_pairs_and_within_kantorovichs_bound() -> None:
    centroids = rows(6, 5) + 0.1
    found = reverse_schwarz(centroids)
    c = centroids.numpy()
    norms = np.linalg.norm(c, axis=1)
    assert found.reverse == pytest.approx(
        max(norms[i] * norms[j] / (c[i] @ c[j]) for i, j in combinations(range(6), 2))
    )
    assert found.least == pytest.approx(norms.min())
    assert 1 <= found.reverse <= found.kantorovich
    assert found.zeros == 0
    assert entries(found, 5).holds is True


def test_a_zero_entry_or_a_right_angle_fails() -> None:
    corner = reverse_schwarz(torch.eye(3, dtype=torch.float64))
    assert corner.reverse == math.inf
    assert corner.zeros == pytest.approx(2 / 3)
    failed = entries(corner, 3)
    assert failed.holds is False
    assert "infinite" in failed.found


def test_separation_needs_the_printed_trends() -> None:
    t = np.arange(1.0, 101.0)
    kept = separation(t, 2 / t, 0.1 * np.sqrt(t), 0.0)
    assert kept.holds is True
    assert kept.numbers["delta_trend"] == pytest.approx(-1)
    assert kept.numbers["P_trend"] == pytest.approx(0.5)
    flat = separation(t, np.full(100, 0.3), np.full(100, 0.8), 0.0)
    assert flat.holds is False
    assert flat.numbers["delta_mean"] == pytest.approx(0.3)
