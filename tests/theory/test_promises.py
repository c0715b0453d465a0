"""Optimism, coverage and calibration counted by hand; the linear model of a net against plain regression."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from neuclust.kernels.initial import initial_network
from neuclust.kernels.network import Network, flatten, forward, gradient_factors
from neuclust.randomness import stream
from neuclust.theory.calibration import calibration, promises
from neuclust.theory.linearisation import Observed, drift, linearisation


def test_promises_are_shares_of_arms() -> None:
    f = torch.tensor([0.1, 0.5, 0.9, 0.3], dtype=torch.float64)
    bonus = torch.tensor([0.1, 0.1, 0.1, 0.3], dtype=torch.float64)
    truth = torch.tensor([0.5, 0.55, 0.2, 0.6], dtype=torch.float64)
    found = promises(f, bonus, truth, torch.tensor([0, 3]), offset=0.35)
    assert found.optimistic == pytest.approx(3 / 4)  # all but the first
    assert found.optimistic_offset == 1.0
    assert found.covered == pytest.approx(2 / 4)  # the second and the last
    assert (found.best_optimistic, found.best_covered) == (0.5, 0.5)


def test_calibration_is_the_line_and_the_bins_of_the_played_slates() -> None:
    rng = stream(0, "calibration")
    predicted = rng.random(80)
    expected = 0.2 + 0.5 * predicted
    found = calibration(predicted, expected, np.where(predicted > 0.5, 1.0, np.nan))
    assert found.slope == pytest.approx(0.5)
    assert found.intercept == pytest.approx(0.2)
    assert found.correlation == pytest.approx(1.0)
    assert found.error == pytest.approx(float(np.abs(predicted - expected).mean()))
    assert sum(each.count for each in found.bins) == 80
    assert [each.predicted for each in found.bins] == sorted(each.predicted for each in found.bins)
    assert math.isnan(found.bins[0].realised)  # never seen
    assert found.bins[-1].realised == 1.0


def test_a_constant_f_has_no_line() -> None:
    found = calibration(np.full(10, 0.4), np.linspace(0, 1, 10), np.zeros(10))
    assert math.isnan(found.correlation)
    assert math.isnan(found.slope)


def moved() -> tuple[Network, Network, torch.Tensor]:
    """A net, the same after its weights were moved, and some rows."""
    start = initial_network("mirrored", 4, 8, 1, math.sqrt(8), stream(0, "linear model"))
    rng = stream(1, "steps")
    weights = tuple(w + 0.1 * torch.from_numpy(rng.standard_normal(tuple(w.shape))) for w in start.weights)
    return start, replace(start, weights=weights), torch.from_numpy(rng.standard_normal((9, 4)))


def test_the_linear_model_is_the_first_order_expansion_at_the_start() -> None:
    start, net, x = moved()
    counts, targets = torch.tensor([1, 2, 1, 3, 1, 1, 1, 2, 1]), torch.linspace(0, 1, 9, dtype=torch.float64)
    found = linearisation(net, start, Observed(x, targets, counts), ridge=0.5)
    step = torch.cat([(a - b).flatten() for a, b in zip(net.weights, start.weights, strict=True)])
    assert found.drift == pytest.approx(float(torch.linalg.vector_norm(step)))
    assert found.drift == pytest.approx(drift(net, start))
    g0, g = flatten(gradient_factors(start, x)), flatten(gradient_factors(net, x))
    exact = (forward(net, x) - forward(start, x) - g0 @ step).abs().max()
    assert found.linear_error == pytest.approx(float(exact))
    assert found.linear_error > 0.01
    change = torch.linalg.vector_norm(g - g0, dim=1) / torch.linalg.vector_norm(g0, dim=1)
    assert found.gradient_change == pytest.approx(float(change.max()))
    assert found.gradient_length == pytest.approx(float(torch.linalg.vector_norm(g, dim=1).max() / math.sqrt(8)))
    # ridge regression on every single observation, in the space of weights
    features, seen = (g0 / math.sqrt(8)).repeat_interleave(counts, 0), targets.repeat_interleave(counts)
    system = features.T @ features + 0.5 * torch.eye(features.shape[1], dtype=torch.float64)
    fitted = (g0 / math.sqrt(8)) @ torch.linalg.solve(system, features.T @ seen)
    assert found.ridge_error == pytest.approx(float((forward(net, x) - fitted).abs().max()))


def test_a_net_that_did_not_move_is_its_own_linear_model() -> None:
    start, _, x = moved()
    observed = Observed(x, torch.zeros(9, dtype=torch.float64), torch.ones(9))
    found = linearisation(start, start, observed, ridge=1.0)
    assert (found.drift, found.linear_error, found.gradient_change) == (0.0, 0.0, 0.0)
