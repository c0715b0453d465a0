"""Neural-LinUCB against explicit matrices of the features at the time of play."""

from __future__ import annotations

import math
from typing import Any

import naive_reference as naive
import pytest
import torch
from small_problems import small_environment

from neuclust.errors import ConfigError
from neuclust.models.feature_net import FeatureNetConfig, RetrainConfig
from neuclust.policies.neural_linear import NeuralLinUCB, NeuralLinUCBConfig

DIM, K, ALPHA, RIDGE = 6, 3, 0.6, 2.0


@pytest.mark.parametrize("head", ["bandit", "own"])
def test_selection_equals_linucb_on_features_as_they_were(head: Any) -> None:
    """Fails when A and b are rebuilt after training, when the bonus is left out, or when w never moves."""
    environment = small_environment(horizon=30)
    net = FeatureNetConfig(width=8, retrain=RetrainConfig.always(4))
    policy = NeuralLinUCB(NeuralLinUCBConfig(net, ALPHA, RIDGE, head), DIM, K, seed=2)
    a, b = RIDGE * torch.eye(8, dtype=torch.float64), torch.zeros(8, dtype=torch.float64)
    weights = []
    for t in range(1, 22):
        round = environment.round(t)
        inputs = policy.net.inputs.at(round, torch.arange(48))
        weights.append(policy.net.net.weights[0])
        features = torch.relu(inputs @ weights[-1].T)
        theta = torch.linalg.solve(a, b)
        bonuses = [ALPHA * naive.width(a, phi) for phi in features]
        scores = (features @ theta + torch.tensor(bonuses, dtype=torch.float64)).tolist()
        slate = policy.select(round)
        chosen = slate.positions.tolist()
        assert chosen == naive.top(scores, round.arm_ids.tolist(), range(48), K)
        assert slate.means.tolist() == pytest.approx((features[chosen] @ theta).tolist(), abs=1e-8)
        assert slate.bonuses.tolist() == pytest.approx([bonuses[i] for i in chosen], abs=1e-8)
        outcome = environment.play(round, slate)
        policy.update(round, slate, outcome)
        a, b = a + features[chosen].T @ features[chosen], b + features[chosen].T @ outcome.arm_rewards
    moved = [t for t in range(1, 21) if not torch.equal(weights[t], weights[t - 1])]
    assert moved == [4, 8, 12, 16, 20]  # every H rounds


@pytest.mark.parametrize(
    "change",
    [
        {"alpha": -1.0},
        {"alpha": math.nan},
        {"ridge": 0.0},
        {"net": FeatureNetConfig(depth=0)},
        {"net": FeatureNetConfig(init="torch-default")},
    ],
)
def test_impossible_settings_are_refused(change: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=r"expected|no bias"):
        NeuralLinUCBConfig(**change)
