"""NeuralLinear against an explicit regression on the net's features, rebuilt from a plain list of plays."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import naive_reference as naive
import pytest
import torch
from small_problems import small_environment
from torch import Tensor

from neuclust.errors import ConfigError
from neuclust.models.bayes_linear import BayesLinearConfig
from neuclust.models.feature_net import FeatureNetConfig, RetrainConfig
from neuclust.policies.neural_linear import NeuralLinear, NeuralLinearConfig
from neuclust.randomness import stream

DIM, K, PRIOR, NOISE, SPREAD = 6, 3, 0.3, 0.4, 0.8


def built(exploration: Any) -> NeuralLinear:
    net = FeatureNetConfig(width=8, retrain=RetrainConfig(first_every=3))
    posterior = BayesLinearConfig(PRIOR, NOISE)
    return NeuralLinear(NeuralLinearConfig(net, posterior, exploration, SPREAD), DIM, K, seed=2)


def read(policy: NeuralLinear, inputs: Tensor) -> Tensor:
    """[1, σ(W_0 x)] by hand."""
    hidden = torch.relu(inputs @ policy.net.net.weights[0].T)
    return torch.cat([torch.ones(len(inputs), 1, dtype=torch.float64), hidden], 1)


@pytest.mark.parametrize("exploration", ["ucb", "ts"])
def test_selection_equals_a_regression_on_all_plays(exploration: str) -> None:
    """Fails when the posterior keeps features of an older net, when one draw an arm replaces one a round, when the
    bonus is left out, or when plays between two trainings are not learned."""
    environment = small_environment(horizon=30)
    policy = built(exploration)
    plays: list[Tensor] = []
    rewards: list[float] = []
    for t in range(1, 23):
        round = environment.round(t)
        z = round.contexts
        pooled = z.sum(1, keepdim=True) / (z != 0).sum(1, keepdim=True).clamp(min=1)
        inputs = torch.cat([z, pooled, torch.full((len(z), 1), 0.5, dtype=torch.float64)], 1)
        x, played = read(policy, inputs), read(policy, torch.stack(plays)) if plays else torch.zeros(0, 9).double()
        covariance = torch.linalg.inv(torch.eye(9, dtype=torch.float64) / PRIOR + played.T @ played / NOISE)
        mean = covariance @ played.T @ torch.tensor(rewards, dtype=torch.float64) / NOISE
        spread = SPREAD * ((x @ covariance) * x).sum(1).sqrt()
        if exploration == "ucb":
            scores = x @ mean + spread
        else:  # one draw for all arms, m + ν L⁻ᵀε
            noise = torch.from_numpy(stream(2, "neural-linear", t).standard_normal(9))
            factor = torch.linalg.cholesky(torch.linalg.inv(covariance))
            scores = x @ (mean + SPREAD * torch.linalg.inv(factor).T @ noise)
        slate = policy.select(round)
        chosen = slate.positions.tolist()
        best = torch.sort(scores, descending=True).values[:K]
        torch.testing.assert_close(scores[chosen], best, rtol=0, atol=1e-8)
        torch.testing.assert_close(slate.means, (x @ mean)[chosen], rtol=0, atol=1e-8)
        torch.testing.assert_close(slate.bonuses, spread[chosen], rtol=0, atol=1e-8)
        outcome = environment.play(round, slate)
        policy.update(round, slate, outcome)
        plays, rewards = plays + list(inputs[chosen]), rewards + outcome.arm_rewards.tolist()
    assert not torch.equal(policy.net.net.weights[0], policy.net.initial.weights[0])


def test_equal_contexts_have_equal_scores() -> None:
    """One draw serves all arms: twins are always chosen together, the smaller id first."""
    environment = small_environment()
    policy = NeuralLinear(NeuralLinearConfig(), DIM, 2)
    for t in range(1, 11):
        round = environment.round(t)
        twins = replace(round, profiles=round.profiles[torch.arange(48) // 2], slate_size=2)
        first, second = policy.select(twins).positions.tolist()
        assert (first % 2, second) == (0, first + 1)


def test_without_spread_both_are_greedy() -> None:
    environment = small_environment()
    for exploration in ("ts", "ucb"):
        policy = NeuralLinear(replace(built(exploration).config, spread=0.0), DIM, K)
        round = environment.round(1)
        policy.update(round, policy.select(round), environment.play(round, policy.select(round)))
        x, columns, group = policy.net.inputs.distinct(round)
        means = policy.posterior.means(torch.cat([torch.ones(len(x), 1), policy.net.features(x, columns)], 1))[group]
        expected = naive.top(means.tolist(), round.arm_ids.tolist(), range(48), K)
        assert policy.select(round).positions.tolist() == expected


@pytest.mark.parametrize(
    "change", [{"spread": -1.0}, {"spread": math.nan}, {"net": FeatureNetConfig(depth=0)}, {"exploration": "greedy"}]
)
def test_impossible_settings_are_refused(change: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match="expected"):
        NeuralLinearConfig(**change)
