"""Laplace's approximation of a logistic likelihood against a general optimiser."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.optimize import minimize

from neuclust.kernels.bernoulli import FLAT, LONGEST, damped, linearised, posterior_mode
from neuclust.randomness import stream


def test_gaussian_observations_have_the_slope_and_curvature_of_the_likelihood() -> None:
    odds = torch.tensor([-2.0, 0.3, 1.5, 30.0], dtype=torch.float64, requires_grad=True)
    sums, counts = torch.tensor([1.0, 0.2, 2.0, 0.0]).double(), torch.tensor([3.0, 0.5, 2.0, 1.0]).double()
    likelihood = (sums * odds - counts * torch.nn.functional.softplus(odds)).sum()
    (slope,) = torch.autograd.grad(likelihood, odds, create_graph=True)
    (curvature,) = torch.autograd.grad(slope.sum(), odds)
    total, weights = linearised(odds.detach(), sums, counts)
    torch.testing.assert_close(total - weights * odds.detach(), slope.detach())
    torch.testing.assert_close(weights[:3], -curvature[:3])
    assert float(weights[3]) == FLAT  # a likelihood that is flat there still counts a little


def test_no_step_moves_a_log_odds_further_than_allowed() -> None:
    here = torch.tensor([0.0, 1.0], dtype=torch.float64)
    assert damped(here, torch.tensor([9.0, 4.0]).double()).tolist() == pytest.approx([LONGEST, 2.0])
    assert damped(here, torch.tensor([2.0, 0.0]).double()).tolist() == [2.0, 0.0]
    assert len(damped(here[:0], here[:0])) == 0


@pytest.mark.parametrize("spread", [0.3, 3.0, 30.0])
def test_the_mode_is_that_of_a_general_optimiser(spread: float) -> None:
    """Also where the prior is so wide that undamped steps would overshoot."""
    rng = stream(1, "test mode")
    root = rng.standard_normal((3, 3))
    covariance, prior = spread * (root @ root.T + np.eye(3)), np.array([-6.0, 0.5, 2.0])
    sums, counts = np.array([1.0, 0.0, 0.4]), np.array([1.0, 1.0, 0.5])

    def energy(f: np.ndarray) -> float:
        apart = f - prior
        fit = sums * f - counts * np.logaddexp(0, f)
        return float(0.5 * apart @ np.linalg.solve(covariance, apart) - fit.sum())

    expected = minimize(energy, prior, method="BFGS", options={"gtol": 1e-9}).x
    found = posterior_mode(*(torch.from_numpy(one) for one in (prior, covariance, sums, counts)))
    assert found.numpy() == pytest.approx(expected, abs=0.02)
