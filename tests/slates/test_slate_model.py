"""The slate model: what F reads, how it starts, what it is trained on."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import naive_reference as naive
import pytest
import torch
from torch import Tensor

from neuclust.errors import ConfigError
from neuclust.kernels.training import pull_energy
from neuclust.models.fitting import TrainingConfig
from neuclust.models.history import History
from neuclust.randomness import stream
from neuclust.slates.slate_model import SlateModel, SlateModelConfig, initial_slate_network

K = 3


def played(slates: int, arms: int = 4, seed: int = 0) -> tuple[History, list[tuple[list[int], float]]]:
    """A history in which few arms are played in many orders, and the raw list of its slates."""
    rng = stream(seed, "test slates")
    history, raw = History(2, K), []
    rows = [history.row(torch.from_numpy(rng.random(2))) for _ in range(arms)]
    for _ in range(slates):
        chosen = [rows[i] for i in rng.permutation(arms)[:K]]
        rewards, reward = torch.from_numpy(rng.integers(2, size=K).astype(float)), float(rng.random())
        history.observe_slate(chosen, reward, rewards, torch.from_numpy(rng.random(K)))
        raw.append((chosen, reward))
    return history, raw


def means(arms: int = 4) -> Tensor:
    return torch.from_numpy(stream(0, "test means").normal(0.3, 0.6, size=arms))


def test_rewards_are_rectified_and_sorted_before_f_reads_them() -> None:
    rewards = torch.tensor([[-1.0, 3.0, 2.0]], dtype=torch.float64)
    assert SlateModel(SlateModelConfig(), K, 0).prepare(rewards).tolist() == [[3.0, 2.0, 0.0]]
    plain = SlateModelConfig(sort_input=False, relu_input=False)
    assert SlateModel(plain, K, 0).prepare(rewards).tolist() == [[-1.0, 3.0, 2.0]]


def test_the_value_does_not_depend_on_the_order_of_the_arms() -> None:
    model = SlateModel(SlateModelConfig(), K, 0)
    rewards = torch.tensor([0.2, 0.9, 0.5], dtype=torch.float64)
    assert float(model.value(rewards)) == float(model.value(rewards[[2, 0, 1]]))
    unsorted = SlateModel(SlateModelConfig(sort_input=False), K, 0)
    assert float(unsorted.value(rewards)) != float(unsorted.value(rewards[[2, 0, 1]]))


@pytest.mark.parametrize("width", [10, 15, 30])
def test_calibrated_starts_near_one_and_printed_near_n_over_four_times_the_sum(width: int) -> None:
    ones = torch.ones(5, dtype=torch.float64)
    configs = (SlateModelConfig(width=width, scale="calibrated"), SlateModelConfig(width=width, scale="printed"))
    start = [initial_slate_network(config, 5, seed) for config in configs for seed in range(40)]
    values = torch.stack([naive.slate_forward(n.parameters, n.scales, "sigmoid", ones) for n in start])
    assert float(values[:40].mean()) == pytest.approx(1.0, abs=0.15)
    assert float(values[40:].mean()) == pytest.approx(width / 4 * 5, rel=0.15)


def test_the_start_has_the_named_distribution() -> None:
    paper = initial_slate_network(SlateModelConfig(width=100), 50, 0)
    assert float(paper.weights[0].mean()) == pytest.approx(1 / 100, abs=0.05)
    assert float(paper.weights[0].std()) == pytest.approx(1.0, abs=0.05)
    assert all(torch.count_nonzero(b) == 0 for b in paper.biases)
    monotone = initial_slate_network(SlateModelConfig(width=100, init="monotone"), 50, 0)
    assert 0.8 / 50 < float(monotone.biases[0].abs().max()) <= 1 / 50
    drawn = initial_slate_network(SlateModelConfig(width=100, biases="drawn"), 50, 0)
    assert float(drawn.biases[0].std()) == pytest.approx(1.0, abs=0.2)


@pytest.mark.parametrize("engine", ["auto", "library"])
@pytest.mark.parametrize("clamp", [False, True])
def test_without_biases_there_are_as_many_parameters_as_printed(engine: Any, clamp: bool) -> None:
    training = TrainingConfig(engine=engine, guard=False)
    config = SlateModelConfig(init="monotone", biases="none", clamp_all=clamp, training=training)
    model, (history, _) = SlateModel(config, K, 0), played(25)
    model.train(history, means(), updates=1)
    assert all(torch.count_nonzero(b) == 0 for b in (*model.initial.biases, *model.net.biases))
    moved = [a - b for a, b in zip(model.net.weights, model.initial.weights, strict=True)]
    assert sum(change.numel() for change in moved) == K * 15 + 15
    assert all(bool(change.any()) for change in moved)
    assert not clamp or all(float(weight.min()) >= 0 for weight in model.net.weights)


def raw_objective(model: SlateModel, parameters: tuple[Tensor, ...], raw: list[tuple[list[int], float]]) -> float:
    """L(Θ) on the list of slates as they were played, one F a slate."""
    inputs = torch.stack([model.prepare(means()[rows]) for rows, _ in raw])
    rewards = torch.tensor([reward for _, reward in raw], dtype=torch.float64)
    net = model.net

    def predict(p: tuple[Tensor, ...]) -> Tensor:
        return naive.slate_forward(p, net.scales, net.transform, inputs, net.relu_out)

    return float(
        naive.objective(
            parameters, model.initial.parameters, predict, rewards, model.config.width, model.config.training
        )
    )


CONFIGS: dict[str, dict[str, Any]] = {
    "default": {},
    "two layers": {"depth": 2},
    "unsorted": {"sort_input": False},
    "sum": {"training": TrainingConfig(step=1e-3, loss_norm="sum", guard=False)},
    "inside the sum": {"training": TrainingConfig(step=1e-3, loss_norm="sum", pull_inside_sum=True, guard=False)},
    "to zero": {
        "training": TrainingConfig(step=1e-2, anchor="zero", pull_by_width=False, loss_factor=2.0, guard=False)
    },
    "clamped": {"clamp_all": True, "training": TrainingConfig(step=1e-2, guard=False)},
    "rectified": {"relu_out": True},
}


@pytest.mark.parametrize("engine", ["auto", "library"])
@pytest.mark.parametrize("name", list(CONFIGS))
def test_training_equals_autograd_descent_on_the_raw_slates(name: str, engine: Any) -> None:
    config = SlateModelConfig(width=6, **CONFIGS[name])
    config = replace(config, training=replace(config.training, engine=engine))
    model, (history, raw) = SlateModel(config, K, 0), played(25)
    start, net = model.net.parameters, model.net
    inputs = torch.stack([model.prepare(means()[rows]) for rows, _ in raw])
    rewards = torch.tensor([reward for _, reward in raw], dtype=torch.float64)
    expected = naive.fit(
        start,
        start,
        lambda p: naive.slate_forward(p, net.scales, net.transform, inputs, net.relu_out),
        rewards,
        config.width,
        config.training,
        lambda p, _: p.clamp(min=0) if config.clamp_all else p,
    )
    model.train(history, means(), updates=1)
    for found, wanted in zip(model.net.parameters, expected, strict=True):
        torch.testing.assert_close(found, wanted, rtol=0, atol=1e-9)
    assert any(not torch.equal(a, b) for a, b in zip(model.net.parameters, start, strict=True))


def test_training_lowers_the_printed_objective() -> None:
    model, (history, raw) = SlateModel(SlateModelConfig(), K, 0), played(25)
    before = raw_objective(model, model.net.parameters, raw)
    for t in range(1, 4):
        model.train(history, means(), updates=t)
    assert raw_objective(model, model.net.parameters, raw) < before
    assert pull_energy(model.net.parameters, model.initial.parameters, 1.0) > 0


@pytest.mark.parametrize(
    ("source", "table"), [("realised", "slate_arm_rewards"), ("predicted-then", "slate_predictions")]
)
def test_other_training_inputs_are_read_as_named(source: Any, table: str) -> None:
    config = SlateModelConfig(width=6, train_input=source, training=TrainingConfig(step=1e-2))
    model, (history, raw) = SlateModel(config, K, 0), played(10)
    inputs, net = model.prepare(getattr(history, table).rows), model.net
    expected = naive.fit(
        net.parameters,
        net.parameters,
        lambda p: naive.slate_forward(p, net.scales, net.transform, inputs),
        torch.tensor([reward for _, reward in raw], dtype=torch.float64),
        config.width,
        config.training,
    )
    model.train(history, means() * math.nan, updates=1)  # today's predictions must not matter
    for found, wanted in zip(model.net.parameters, expected, strict=True):
        torch.testing.assert_close(found, wanted, rtol=0, atol=1e-10)


def test_a_slate_with_an_unseen_arm_is_not_a_realised_example() -> None:
    config = SlateModelConfig(width=6, train_input="realised")
    model, (history, _) = SlateModel(config, K, 0), played(6)
    twin, (same, _) = SlateModel(config, K, 0), played(6)
    same.observe_slate([0, 1, 2], 1.0, torch.tensor([1.0, math.nan, 0.0]), torch.zeros(K))
    model.train(history, means(), 1)
    twin.train(same, means(), 1)
    assert all(torch.equal(a, b) for a, b in zip(model.net.parameters, twin.net.parameters, strict=True))


def test_only_biases_are_kept_non_negative_where_asked() -> None:
    config = SlateModelConfig(width=6, init="monotone", nonneg_bias=True, training=TrainingConfig(step=0.05))
    model, (history, _) = SlateModel(config, K, 0), played(10)
    model.train(history, means(), 1)
    assert all(float(b.min()) >= 0 for b in model.net.biases)
    assert float(model.net.weights[0].min()) < 0


def test_training_waits_for_data_and_for_its_turn() -> None:
    lazy = SlateModelConfig(training=TrainingConfig(train_every=2, train_until=4))
    model, (history, _) = SlateModel(lazy, K, 0), played(5)
    start = model.net
    model.train(History(2, K), means(), 2)
    model.train(history, means(), 1)
    model.train(history, means(), 6)
    assert model.net is start
    model.train(history, means(), 4)
    assert model.net is not start


def test_restart_forgets_where_training_stood() -> None:
    config = SlateModelConfig(training=TrainingConfig(start="restart", step=1e-2))
    model, (history, _) = SlateModel(config, K, 0), played(8)
    model.train(history, means(), 1)
    once = model.net.parameters
    model.train(history, means(), 2)
    assert all(torch.equal(a, b) for a, b in zip(once, model.net.parameters, strict=True))


@pytest.mark.parametrize(
    "change", [{"width": 0}, {"depth": 0}, {"transform": "relu"}, {"weight": -1.0}, {"weight": math.nan}]
)
def test_impossible_settings_are_refused(change: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=r"(?i)slate"):
        SlateModelConfig(**change)
