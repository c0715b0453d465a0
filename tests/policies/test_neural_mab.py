"""Neural-MAB: marginal contributions one by one, the shortcut, exploration, and the authors' version."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import naive_reference as naive
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from small_problems import play, random_round, small_environment

from neuclust.errors import ConfigError
from neuclust.kernels.ranking import greedy_slate
from neuclust.models.feature_net import AdamConfig, FeatureNetConfig, RetrainConfig
from neuclust.policies.neural_mab import NeuralMAB, NeuralMABConfig
from neuclust.registry import POLICIES, build_policy
from neuclust.slates.slate_model import SlateModel, SlateModelConfig

DIM, K = 6, 3


def by_hand(policy: Any, qualities: list[float], ids: list[int]) -> list[int]:
    """Greedy marginal contributions, one slate at a time."""
    chosen: list[int] = []
    for _ in range(K):
        others = [i for i in range(len(ids)) if i not in chosen]
        value = {}
        for i in others:
            slate = sorted((max(qualities[j], 0.0) for j in [*chosen, i]), reverse=True)
            padded = torch.tensor([slate + [0.0] * (K - len(slate))], dtype=torch.float64)
            value[i] = float(f"{float(policy.slates.value(padded)):.9g}")
        chosen.append(min(others, key=lambda i: (-value[i], -qualities[i], ids[i])))
    return chosen


@pytest.mark.parametrize("kind", ["plain", "monotone"])
def test_the_slate_grows_by_the_largest_marginal_contribution(kind: Any) -> None:
    """Fails when the top K by quality stands for the greedy slate (plain), or when nets are not trained."""
    environment = small_environment()
    policy = NeuralMAB(NeuralMABConfig(slate_kind=kind, shortcut=False), DIM, K, seed=1)
    other_than_top = 0
    for t in range(1, 16):
        round = environment.round(t)
        inputs = policy.net.inputs.at(round, torch.arange(48))
        qualities = naive.forward(policy.net.net.weights, inputs, 1.0).tolist()
        slate = policy.select(round)
        ids = round.arm_ids.tolist()
        assert slate.positions.tolist() == by_hand(policy, qualities, ids)
        assert slate.means.tolist() == pytest.approx([qualities[i] for i in slate.positions.tolist()])
        other_than_top += slate.positions.tolist() != naive.top(qualities, ids, range(48), K)
        policy.update(round, slate, environment.play(round, slate))
    assert (other_than_top > 0) == (kind == "plain")
    assert not torch.equal(policy.net.net.weights[0], policy.net.initial.weights[0])


def test_the_shortcut_gives_the_same_slates() -> None:
    environment = small_environment()
    long, short = (NeuralMAB(NeuralMABConfig(shortcut=s), DIM, K, seed=1) for s in (False, True))
    assert play(long, environment, range(1, 31)) == play(short, environment, range(1, 31))


@given(
    st.lists(st.sampled_from([-0.2, 0.0, 0.1, 0.3, 0.30000000000000004, 0.9]), min_size=4, max_size=30),
    st.integers(0, 9),
)
def test_greedy_on_a_monotone_value_is_the_top_k_by_quality(qualities: list[float], seed: int) -> None:
    model = SlateModel(SlateModelConfig(), 4, seed)
    rank = torch.from_numpy(np.random.default_rng(seed).permutation(len(qualities)))
    found = greedy_slate(model.value, torch.tensor(qualities, dtype=torch.float64), rank, 4)
    assert found.tolist() == naive.top(qualities, rank.tolist(), range(len(qualities)), 4)


def test_it_explores_as_often_as_it_says() -> None:
    policy = NeuralMAB(NeuralMABConfig(epsilon=20.0), DIM, K)
    greedy = NeuralMAB(NeuralMABConfig(), DIM, K)
    explored, expected, variance = 0, 0.0, 0.0
    for t in range(1, 401):
        round = random_round(t, 20, DIM, K)
        slate, best = policy.select(round), greedy.select(round)
        epsilon = min(1.0, 20 / t)
        explored += slate.positions.tolist() != best.positions.tolist()
        expected, variance = expected + epsilon, variance + epsilon * (1 - epsilon)
        chances = naive.one_coin_propensities(slate.positions.tolist(), best.positions.tolist(), 20, epsilon)
        assert slate.propensities is not None
        assert slate.propensities.tolist() == pytest.approx(chances)
        assert best.propensities is not None
        assert best.propensities.tolist() == [1.0] * K
    assert abs(explored - expected) < 4 * math.sqrt(variance)


def test_dropout_is_one_mask_a_round() -> None:
    environment = small_environment()
    net = FeatureNetConfig(adam=AdamConfig(dropout=0.5), retrain=RetrainConfig.always(1))
    policy = NeuralMAB(NeuralMABConfig(net), DIM, K, seed=1)
    play(policy, environment, range(1, 4))
    round = environment.round(4)
    inputs = policy.net.inputs.at(round, torch.arange(48))
    hidden = policy.net.features(inputs)
    slates = []
    for t in range(4, 24):
        mask = policy._mask(t)
        assert mask is not None
        assert set(mask.tolist()) == {0.0, 2.0}
        expected = (hidden * mask) @ policy.net.net.weights[-1][0]
        slate = policy.select(replace(round, t=t))
        torch.testing.assert_close(slate.means, expected[slate.positions])
        assert slate.positions.tolist() == naive.top(expected.tolist(), round.arm_ids.tolist(), range(48), K)
        slates.append(tuple(slate.positions.tolist()))
    assert len(set(slates)) > 1


@pytest.mark.parametrize(("preset", "rate", "steps"), [("authors-ml", 1e-2, 50), ("authors-yelp", 1e-3, 30)])
def test_the_authors_version_is_one_linear_layer_and_fresh_adam_every_round(
    preset: str, rate: float, steps: int
) -> None:
    """Against torch.nn.Linear and torch.optim.Adam on the whole history."""
    environment = small_environment()
    policy: Any = build_policy("neural-mab", preset=preset, environment=environment, seed=3)
    layer = torch.nn.Linear(DIM, 1, dtype=torch.float64)
    (weight,) = policy.net.net.weights
    layer.weight.data, layer.bias.data = weight[:, :-1].clone(), weight[0, -1:].clone()
    contexts, rewards = [], []
    for t in range(1, 11):
        round = environment.round(t)
        with torch.no_grad():
            predicted = layer(round.contexts)[:, 0]
        slate = policy.select(round)
        chosen = slate.positions.tolist()
        torch.testing.assert_close(
            predicted[chosen], torch.sort(predicted, descending=True).values[:K], rtol=0, atol=1e-4
        )
        torch.testing.assert_close(slate.means, predicted[chosen], rtol=0, atol=1e-4)
        outcome = environment.play(round, slate)
        policy.update(round, slate, outcome)
        contexts.append(round.contexts[chosen])
        rewards.append(outcome.arm_rewards)
        optimizer = torch.optim.Adam(layer.parameters(), lr=rate)
        for _ in range(steps):
            optimizer.zero_grad()
            loss: Any = torch.nn.functional.mse_loss(layer(torch.cat(contexts))[:, 0], torch.cat(rewards))
            loss.backward()
            optimizer.step()


def test_the_presets_differ_as_they_say() -> None:
    presets = POLICIES["neural-mab"].presets
    assert (presets["default"].slate_kind, presets["default"].epsilon) == ("monotone", 0.0)
    assert (presets["plain"].slate_kind, presets["plain"].shortcut) == ("plain", False)


@pytest.mark.parametrize(
    "change",
    [
        {"epsilon": -1.0},
        {"slate_kind": "plain"},
        {"slate": SlateModelConfig(sort_input=False)},
        {"slate_kind": "deep"},
    ],
)
def test_impossible_settings_are_refused(change: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match="expected"):
        NeuralMABConfig(**change)
