"""The feature net: what it reads, when it is trained, and that training is the same every time."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest
import torch
from small_problems import random_round, small_environment

from neuclust.errors import ConfigError
from neuclust.kernels.network import forward
from neuclust.models import feature_net
from neuclust.models.encoder import EncoderConfig
from neuclust.models.feature_net import (
    AdamConfig,
    FeatureNet,
    FeatureNetConfig,
    NetInputConfig,
    NetInputs,
    RetrainConfig,
    fit_network,
)
from neuclust.models.history import History
from neuclust.randomness import stream

DIM, K = 6, 3


def filled(net: FeatureNet, rounds: int = 30) -> History:
    environment = small_environment()
    history = History(net.inputs.dim, K)
    for t in range(1, rounds + 1):
        round = environment.round(t)
        positions = torch.from_numpy(stream(0, "test slates", t).choice(48, K, replace=False))
        rewards = (environment.means(round)[positions] > 0.55).to(torch.float64)
        net.remember(history, round, positions, rewards)
    return history


def test_inputs_are_the_context_its_mean_rating_and_a_constant() -> None:
    """Masked contexts pool the mean of their non-zero entries, dense ones their sum."""
    round = small_environment().round(2)
    profiles = round.profiles.clone()
    profiles[0, round.active[0]] = 0.0  # an entry that is 0 though it was asked for does not count
    round = replace(round, profiles=profiles)
    every = torch.arange(48)
    found = NetInputs(NetInputConfig(), DIM).at(round, every)
    z = round.contexts
    pooled = z.sum(1) / (z != 0).sum(1).clamp(min=1)
    torch.testing.assert_close(found, torch.cat([z, pooled[:, None], torch.full((48, 1), 0.5, dtype=z.dtype)], 1))
    dense = NetInputs(NetInputConfig(constant=0.0), DIM).at(replace(round, query=None), every)
    torch.testing.assert_close(dense, torch.cat([profiles, profiles.sum(1, keepdim=True)], 1))
    bare = NetInputs(NetInputConfig(EncoderConfig("scale", rho=5.0), pooled=False, constant=0.0), DIM)
    torch.testing.assert_close(bare.at(round, every), z / 5)


@pytest.mark.parametrize("init", ["uniform", "torch-default"])
@pytest.mark.parametrize("depth", [0, 1, 2])
def test_active_columns_give_what_all_columns_give(depth: int, init: Any) -> None:
    net = FeatureNet(FeatureNetConfig(depth=depth, init=init), DIM, seed=1)
    round = small_environment().round(2)
    x, columns, group = net.inputs.distinct(round)
    whole = net.inputs.at(round, torch.arange(48))
    assert x.shape[1] < whole.shape[1]
    torch.testing.assert_close(net.predict(x, columns)[group], forward(net.net, whole))
    if depth:
        torch.testing.assert_close(net.features(x, columns)[group], net.features(whole))
        assert net.features(whole).shape == (48, 32)


def test_the_times_of_training() -> None:
    times = [t for t in range(1, 131) if RetrainConfig().due(t)]
    assert times == [*range(2, 21, 2), *range(25, 101, 5), 110, 120, 130]
    assert [t for t in range(1, 13) if RetrainConfig.always(4).due(t)] == [4, 8, 12]


@pytest.mark.parametrize("batch", [None, 16])
def test_training_learns_is_repeatable_and_leaves_the_history(batch: int | None) -> None:
    config = FeatureNetConfig(adam=AdamConfig(batch_size=batch), retrain=RetrainConfig.always(5))
    nets = [FeatureNet(config, DIM, seed=1) for _ in range(2)]
    history = filled(nets[0])
    contexts, target, counts = history.targets()

    def loss(net: FeatureNet) -> float:
        return float((counts * (net.predict(contexts) - target) ** 2).sum() / counts.sum())

    before = loss(nets[0])
    assert not nets[0].train(history, 4)
    assert loss(nets[0]) == before
    assert all(net.train(history, 5) for net in nets)
    assert loss(nets[0]) < 0.3 * before
    assert all(torch.equal(a, b) for a, b in zip(nets[0].net.weights, nets[1].net.weights, strict=True))
    again = FeatureNet(config, DIM, seed=1)
    again.train(history, 10)
    assert torch.equal(again.net.weights[0], nets[0].net.weights[0]) == (batch is None)  # other minibatches


def test_minibatches_follow_the_counts() -> None:
    """Two equal rows with one reward each, or one row twice: the same expected fit."""
    net = FeatureNet(FeatureNetConfig(input=NetInputConfig(pooled=False)), 1, seed=0).net
    x = torch.tensor([[1.0, 0.5], [2.0, 0.5]], dtype=torch.float64)
    target, counts = torch.tensor([0.0, 1.0], dtype=torch.float64), torch.tensor([30.0, 10.0], dtype=torch.float64)
    config = AdamConfig(batch_size=20, steps=1)
    seen = [
        float((y == 1).mean())
        for seed in range(200)
        for _, y, _ in feature_net._batches(
            x.numpy().astype("float32"), target.numpy().astype("float32"), counts.numpy(), config, stream(seed, "test")
        )
    ]
    assert sum(seen) / len(seen) == pytest.approx(0.25, abs=0.03)
    whole = fit_network(net, (x, target, counts), AdamConfig(batch_size=None, steps=300, decay=0.0), stream(0, "test"))
    torch.testing.assert_close(forward(whole, x), target, rtol=0, atol=0.05)


def test_restart_forgets_and_a_given_head_stays() -> None:
    warm = FeatureNetConfig(retrain=RetrainConfig.always(1))
    restart = replace(warm, adam=AdamConfig(start="restart"))
    once, twice = FeatureNet(restart, DIM, seed=1), FeatureNet(restart, DIM, seed=1)
    history = filled(once)
    once.train(history, 2)
    twice.train(history, 1)
    twice.train(history, 2)
    assert torch.equal(once.net.weights[0], twice.net.weights[0])
    head = torch.linspace(-1, 1, 32, dtype=torch.float64)
    net = FeatureNet(warm, DIM, seed=1)
    net.train(history, 1, head)
    assert torch.equal(net.net.weights[-1][0], head)
    assert not torch.equal(net.net.weights[0], net.initial.weights[0])


def test_unseen_rewards_are_not_remembered_and_the_scale_is_settled() -> None:
    config = FeatureNetConfig(input=NetInputConfig(EncoderConfig("scale", rho=None)))
    net = FeatureNet(config, DIM, seed=1)
    history = History(net.inputs.dim, K)
    rows = net.remember(
        history, random_round(1, 9, DIM, K), torch.tensor([4, 1, 2]), torch.tensor([1.0, math.nan, 0.0])
    )
    assert rows == [0, 1, 2]
    assert history.rewards.rows.tolist() == [1.0, 0.0]
    settled = net.inputs.encoder.rho
    net.inputs.encoder.settle(random_round(2, 90, DIM, K))
    assert settled is not None
    assert net.inputs.encoder.rho == settled


def test_weights_that_are_no_numbers_are_not_kept() -> None:
    net = FeatureNet(FeatureNetConfig(adam=AdamConfig(decay=1e39), retrain=RetrainConfig.always(1)), DIM, seed=1)
    net.train(filled(net), 1)
    assert net.failures == 1
    assert all(bool(torch.isfinite(weight).all()) for weight in net.net.weights)


@pytest.mark.parametrize(
    ("kind", "change", "said"),
    [
        (AdamConfig, {"rate": 0.0}, "rate"),
        (AdamConfig, {"steps": -1}, "steps"),
        (AdamConfig, {"decay": math.nan}, "decay"),
        (AdamConfig, {"batch_size": 0}, "batch_size"),
        (AdamConfig, {"dropout": 1.0}, "dropout"),
        (RetrainConfig, {"every": 0}, "RetrainConfig"),
        (FeatureNetConfig, {"width": 0}, "width"),
        (FeatureNetConfig, {"depth": 0, "adam": AdamConfig(dropout=0.5)}, "dropout"),
    ],
)
def test_impossible_settings_are_refused(kind: Any, change: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        kind(**change)
