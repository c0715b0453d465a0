"""Bayesian linear regression against explicit Gaussians."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from scipy.stats import multivariate_normal
from torch import Tensor

from neuclust.errors import ConfigError, StateError
from neuclust.models.bayes_linear import (
    BayesLinear,
    BayesLinearConfig,
    log_evidence,
    prediction_covariance,
    with_constant,
)
from neuclust.models.tracked_covariance import MOST_UPDATES
from neuclust.randomness import stream

PRIOR = torch.tensor([0.1, 0.5, 2.0, 0.3], dtype=torch.float64)
NOISE = 0.2


def data(n: int = 30) -> tuple[Tensor, Tensor]:
    rng = stream(1, "test regression")
    return torch.from_numpy(rng.standard_normal((n, 4))), torch.from_numpy(rng.random(n))


def fitted(n: int = 30) -> BayesLinear:
    model = BayesLinear(PRIOR, NOISE)
    x, r = data(n)
    for start in range(0, n, 7):
        model.observe(x[start : start + 7], r[start : start + 7])
    return model


def explicit(n: int = 30) -> tuple[Tensor, Tensor]:
    """Posterior covariance and mean."""
    x, r = data(n)
    covariance = torch.linalg.inv(torch.diag(1 / PRIOR) + x.T @ x / NOISE)
    return covariance, covariance @ x.T @ r / NOISE


def test_the_posterior_is_the_explicit_gaussian() -> None:
    model, (covariance, mean) = fitted(), explicit()
    x, _ = data(50)
    torch.testing.assert_close(model.mean, mean)
    torch.testing.assert_close(model.means(x), x @ mean)
    torch.testing.assert_close(model.widths(x), ((x @ covariance) * x).sum(1).sqrt())


def test_the_covariance_is_the_inverse_of_the_precision() -> None:
    for model, expected in ((fitted(), explicit()[0]), (fitted(0), torch.diag(PRIOR))):
        root = model.solved.root
        torch.testing.assert_close(root.T @ root, expected)
        assert torch.equal(root, root.tril())
        torch.testing.assert_close(model.solved.covariance, expected)


def test_draws_have_the_posterior_mean_and_covariance() -> None:
    """Fails when a draw uses L⁻¹ in place of L⁻ᵀ or forgets its spread."""
    model, (covariance, mean) = fitted(), explicit()
    draws = torch.stack([model.draw(stream(0, "test draw", t), 0.7) for t in range(3000)])
    scale = 0.7 * covariance.diagonal().sqrt()
    assert bool(((draws.mean(0) - mean).abs() < 5 * scale / math.sqrt(3000)).all())
    assert float(((torch.cov(draws.T) - 0.49 * covariance) / torch.outer(scale, scale)).abs().max()) < 0.12


@pytest.mark.parametrize("n", [0, 1, 30])
def test_the_evidence_is_the_density_of_the_rewards(n: int) -> None:
    x, r = data(n)
    covariance = x @ torch.diag(PRIOR) @ x.T + NOISE * torch.eye(n, dtype=torch.float64)
    expected = float(multivariate_normal.logpdf(r.numpy(), np.zeros(n), covariance.numpy())) if n else 0.0
    assert log_evidence(fitted(n)) == pytest.approx(expected, abs=1e-9)


def test_the_evidence_is_the_sum_of_one_step_ahead_densities() -> None:
    model, total = BayesLinear(PRIOR, NOISE), 0.0
    for x, r in zip(*data(), strict=True):
        row = x.unsqueeze(0)
        mean, variance = model.means(row), model.widths(row) ** 2 + NOISE
        total -= 0.5 * float(torch.log(2 * math.pi * variance) + (r - mean) ** 2 / variance)
        model.observe(row, r.unsqueeze(0))
    assert log_evidence(model) == pytest.approx(total, abs=1e-9)


def test_rebuilding_forgets_what_was_there_and_counts_equal_rows() -> None:
    x, r = data(6)
    plays = [0, 1, 1, 3, 3, 3, 5]
    straight = BayesLinear(PRIOR, NOISE)
    straight.observe(x[plays], r[[0, 1, 2, 3, 4, 5, 0]])
    rewards = r[[0, 1, 2, 3, 4, 5, 0]]
    sums, counts = torch.zeros(6, dtype=torch.float64), torch.zeros(6, dtype=torch.float64)
    sums.index_add_(0, torch.tensor(plays), rewards)
    counts.index_add_(0, torch.tensor(plays), torch.ones(7, dtype=torch.float64))
    again = fitted()
    again.rebuild(x, sums, counts, float(rewards @ rewards))
    torch.testing.assert_close(again.mean, straight.mean)
    torch.testing.assert_close(again.widths(x), straight.widths(x))
    assert log_evidence(again) == pytest.approx(log_evidence(straight))


def test_a_state_brings_the_posterior_back() -> None:
    model, again = fitted(), BayesLinear(PRIOR, NOISE)
    again.load_state_dict(model.state_dict())
    x, _ = data()
    assert torch.equal(again.means(x), model.means(x))
    assert torch.equal(again.widths(x), model.widths(x))
    assert log_evidence(again) == log_evidence(model)
    with pytest.raises(StateError, match="gram"):
        BayesLinear(PRIOR[:3], NOISE).load_state_dict(model.state_dict())


def test_other_variances_are_another_posterior_of_the_same_rewards() -> None:
    model, other = fitted(), BayesLinear(2 * PRIOR, 0.5)
    other.observe(*data())
    model.reweight(2 * PRIOR, 0.5)
    x, r = data()
    torch.testing.assert_close(model.mean, other.mean)
    torch.testing.assert_close(model.widths(x), other.widths(x))
    covariance = torch.linalg.inv(torch.diag(0.5 / PRIOR) + x.T @ x / 0.5)
    torch.testing.assert_close(model.variances(), covariance.diagonal())
    assert model.data.residual(model.mean) == pytest.approx(float(((r - x @ model.mean) ** 2).sum()))


def test_the_constant_comes_first() -> None:
    assert with_constant(torch.tensor([[2.0, 3.0]])).tolist() == [[1.0, 2.0, 3.0]]


@pytest.mark.parametrize("change", [{"prior_variance": 0.0}, {"noise_variance": -1.0}, {"noise_variance": math.nan}])
def test_impossible_settings_are_refused(change: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=r"expected a (finite )?number"):
        BayesLinearConfig(**change)


def test_exposures_weigh_observations_and_two_halves_are_one() -> None:
    """A reward of r seen with exposure a has the statistics of one of mean r/a and weight a."""
    x, r = data()
    shares = torch.linspace(0.2, 1.0, len(r), dtype=torch.float64)
    model = BayesLinear(PRIOR, NOISE)
    model.observe(x, r * shares, shares)
    precision = torch.diag(1 / PRIOR) + (x.T * shares) @ x / NOISE
    torch.testing.assert_close(model.mean, torch.linalg.solve(precision, x.T @ (r * shares) / NOISE))
    torch.testing.assert_close(prediction_covariance(model, x[:3]), x[:3] @ torch.linalg.inv(precision) @ x[:3].T)
    assert model.data.count == pytest.approx(float(shares.sum()))
    assert model.data.energy == pytest.approx(float((shares * r * r).sum()))
    plain, ones = BayesLinear(PRIOR, NOISE), BayesLinear(PRIOR, NOISE)
    plain.observe(x, r)
    ones.observe(x, r, torch.ones_like(r))
    assert torch.equal(plain.mean, ones.mean)


@pytest.mark.parametrize("size", [3, 60])
def test_a_tracked_posterior_equals_one_from_a_new_factor(size: int) -> None:
    """After every slate: means, variances, covariances of predictions, widths; and again after a save.

    Fails when the noise is left out of an update, or when a save loses the covariance.
    """
    rng = np.random.default_rng(0)
    prior = torch.from_numpy(rng.uniform(0.5, 2.0, size))
    tracked, plain, asked = (
        BayesLinear(prior, 0.3, tracked=True),
        BayesLinear(prior, 0.3),
        rng.standard_normal((4, size)),
    )
    queries = torch.from_numpy(asked)
    for slate in range(2 * MOST_UPDATES if size == 3 else 40):
        x, r = torch.from_numpy(rng.standard_normal((5, size))), torch.from_numpy(rng.random(5))
        counts = torch.from_numpy(rng.uniform(0.2, 1.0, 5))
        for one in (tracked, plain):
            one.observe(x, r, counts)
        if slate == 20:
            for one in (tracked, plain):
                one.reweight(2 * prior, 0.2)
        torch.testing.assert_close(tracked.mean, plain.mean, rtol=1e-9, atol=1e-11)
        torch.testing.assert_close(tracked.variances(), plain.variances(), rtol=1e-9, atol=1e-12)
    torch.testing.assert_close(prediction_covariance(tracked, queries), prediction_covariance(plain, queries))
    torch.testing.assert_close(tracked.widths(queries), plain.widths(queries))
    again = BayesLinear(prior, 0.3, tracked=True)
    again.load_state_dict(tracked.state_dict())
    for one in (again, tracked):
        one.observe(queries, torch.ones(4, dtype=torch.float64))
    assert torch.equal(again.mean, tracked.mean)
    assert all(torch.equal(again.state_dict()[name], value) for name, value in tracked.state_dict().items())


def test_a_covariance_that_rounding_spoiled_is_made_again() -> None:
    """Fails when an indefinite matrix ends in an error, or in a mean that is not finite."""
    belief, x = BayesLinear(torch.ones(2, dtype=torch.float64), 1.0, tracked=True), torch.eye(2, dtype=torch.float64)
    assert belief.mean.tolist() == [0.0, 0.0]
    assert belief._covariance is not None
    belief._covariance._lower[0, 0] = -5.0
    belief.observe(x, torch.ones(2, dtype=torch.float64))
    assert belief.mean.tolist() == pytest.approx([0.5, 0.5])
