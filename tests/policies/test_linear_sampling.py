"""Linear Thompson sampling against an explicit Gaussian posterior."""

from __future__ import annotations

import math
from typing import Any

import naive_reference as naive
import pytest
import torch
from small_problems import play, small_environment

from neuclust.errors import ConfigError
from neuclust.models.encoder import EncoderConfig
from neuclust.policies.linear import LinearSamplingConfig, LinearTS

DIM, K, SPREAD, RIDGE = 6, 3, 0.4, 2.0


def test_the_slate_is_greedy_for_one_draw_of_the_posterior() -> None:
    """2,000 draws have the posterior's mean and covariance, and the slate follows the draw of its round.

    Fails when the draw uses L⁻¹ in place of L⁻ᵀ, forgets ν, or when arms are ranked by the mean.
    """
    environment = small_environment()
    policy = LinearTS(LinearSamplingConfig(EncoderConfig("scale", rho=5.0), SPREAD, RIDGE), DIM, K)
    v, b = RIDGE * torch.eye(DIM, dtype=torch.float64), torch.zeros(DIM, dtype=torch.float64)
    for t in range(1, 21):
        round = environment.round(t)
        xs = round.contexts / 5
        estimate = torch.linalg.solve(v, b)
        drawn = policy._draw(torch.linalg.cholesky(v), t)
        slate = policy.select(round)
        expected = naive.top((xs @ drawn).tolist(), round.arm_ids.tolist(), range(len(xs)), K)
        assert slate.positions.tolist() == expected
        assert slate.means.tolist() == pytest.approx((xs[expected] @ estimate).tolist(), abs=1e-9)
        assert slate.bonuses.tolist() == pytest.approx([SPREAD * naive.width(v, xs[i]) for i in expected], abs=1e-9)
        outcome = environment.play(round, slate)
        policy.update(round, slate, outcome)
        v, b = v + xs[expected].T @ xs[expected], b + xs[expected].T @ outcome.arm_rewards
    draws = torch.stack([policy._draw(torch.linalg.cholesky(v), t) for t in range(2000)])
    covariance = SPREAD**2 * torch.linalg.inv(v)
    scale = covariance.diagonal().sqrt()
    assert bool(((draws.mean(0) - torch.linalg.solve(v, b)).abs() < 5 * scale / math.sqrt(2000)).all())
    assert float(((torch.cov(draws.T) - covariance) / torch.outer(scale, scale)).abs().max()) < 0.15


def test_it_learns_a_linear_truth() -> None:
    environment = small_environment(n=80, horizon=160)
    policy = LinearTS(LinearSamplingConfig(spread=0.2), DIM, K)
    fresh = LinearTS(LinearSamplingConfig(spread=0.2), DIM, K)
    play(policy, environment, range(1, 121))

    def lost(one: LinearTS) -> float:
        rounds = [environment.round(t) for t in range(121, 161)]
        return sum(environment.best_expected_reward(r) - environment.expected_reward(r, one.select(r)) for r in rounds)

    assert lost(policy) < 0.5 * lost(fresh)


@pytest.mark.parametrize("change", [{"ridge": 0.0}, {"spread": -0.5}, {"spread": math.nan}])
def test_impossible_settings_are_refused(change: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match="expected"):
        LinearSamplingConfig(**change)
