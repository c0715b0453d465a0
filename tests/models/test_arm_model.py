"""The arm model's training against autograd descent on the raw observations, and what it does with bad steps."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import naive_reference as naive
import pytest
import torch
from small_problems import feedback, random_round, slate_of

from neuclust.errors import ConfigError
from neuclust.kernels.training import finite
from neuclust.models.arm_model import ArmModel, ArmModelConfig, NetworkConfig
from neuclust.models.encoder import EncoderConfig
from neuclust.models.fitting import TrainingConfig
from neuclust.randomness import stream

DIM, K = 4, 3


def arm_model(training: TrainingConfig, depth: int = 1, init: Any = "he") -> ArmModel:
    network = NetworkConfig(6, depth, init)
    return ArmModel(ArmModelConfig(EncoderConfig("raw"), network, training=training), DIM, K, seed=2)


def feed(model: ArmModel, rounds: range) -> None:
    """Slates of five arms that come again and again, so that contexts repeat."""
    for t in rounds:
        rng = stream(t, "test feed")
        chosen = slate_of(*rng.permutation(5)[:K].tolist())
        rewards = rng.integers(2, size=K).astype(float).tolist()
        model.observe(random_round(1, 5, DIM, K), chosen, feedback(rewards, math.nan))
        model.train()


def raw_training(model: ArmModel, start: tuple[torch.Tensor, ...]) -> tuple[torch.Tensor, ...]:
    """J steps on the list of observations as it came in."""
    history, net, config = model.history, model.net, model.config
    inputs, rewards = history.contexts.rows[history.seen.rows], history.rewards.rows.clone()
    return naive.fit(
        start,
        model.initial.weights,
        lambda w: naive.forward(w, inputs, net.scale, net.bias),
        rewards,
        config.network.width,
        config.training,
    )


TRAININGS: dict[str, TrainingConfig] = {
    "automatic step": TrainingConfig(steps=10),
    "fixed step": TrainingConfig(steps=10, step=1e-2),
    "absurd step, guarded": TrainingConfig(steps=10, step=64.0),
    "sum": TrainingConfig(steps=10, step=1e-3, loss_norm="sum", guard=False),
    "inside the sum": TrainingConfig(steps=10, step=1e-4, loss_norm="sum", pull_inside_sum=True),
    "to zero, another ridge": TrainingConfig(steps=10, anchor="zero", pull_by_width=False, ridge=0.3, loss_factor=2.0),
    "restart": TrainingConfig(steps=10, start="restart"),
}


@pytest.mark.parametrize("engine", ["auto", "library"])
@pytest.mark.parametrize(("depth", "init"), [(1, "he"), (1, "torch-default"), (2, "he")])
@pytest.mark.parametrize("name", list(TRAININGS))
def test_training_equals_autograd_descent_on_the_raw_observations(
    name: str, depth: int, init: Any, engine: Any
) -> None:
    model = arm_model(replace(TRAININGS[name], engine=engine), depth, init)
    for t in range(1, 7):
        before = model.initial.weights if model.config.training.start == "restart" else model.net.weights
        feed(model, range(t, t + 1))
        for found, expected in zip(model.net.weights, raw_training(model, before), strict=True):
            torch.testing.assert_close(found, expected, rtol=0, atol=1e-9)
    assert any(not torch.equal(a, b) for a, b in zip(model.net.weights, model.initial.weights, strict=True))
    assert len(model.history.contexts) <= 5 < model.history.observations


def objective(model: ArmModel) -> float:
    history, net = model.history, model.net
    inputs, rewards = history.contexts.rows[history.seen.rows], history.rewards.rows
    return float(
        naive.objective(
            net.weights,
            model.initial.weights,
            lambda w: naive.forward(w, inputs, net.scale, net.bias),
            rewards,
            model.config.network.width,
            model.config.training,
        )
    )


@pytest.mark.parametrize("step", [None, 1e-3, 1.0, 1e6])
@pytest.mark.parametrize("depth", [1, 2])
def test_a_guarded_fit_never_raises_the_objective(step: float | None, depth: int) -> None:
    model = arm_model(TrainingConfig(step=step), depth)
    feed(model, range(1, 6))
    for _ in range(5):
        before = objective(model)
        model.fit()
        assert objective(model) <= before * (1 + 1e-9)
    assert finite(model.net.weights)


def test_the_same_step_unguarded_blows_up_and_is_counted_or_kills_the_net() -> None:
    """What `paper-literal` risks by design: sum loss, fixed step, no guard."""
    model = arm_model(TrainingConfig(step=1e6, loss_norm="sum", guard=False))
    feed(model, range(1, 2))
    largest = max(float(w.abs().max()) for w in model.net.weights)
    assert model.failures > 0 or largest > 1e3


def test_training_after_every_sample_makes_as_many_fits_as_samples() -> None:
    model = arm_model(TrainingConfig(steps=5, step=1e-2, after="sample"))
    round, played = random_round(1, 5, DIM, K), slate_of(0, 1, 2)
    weights, inputs, rewards = model.net.weights, round.contexts[:K], torch.tensor([1.0, 0.0, 1.0], dtype=torch.float64)
    for n in (1, 2, 3):
        weights = naive.fit(
            weights,
            model.initial.weights,
            lambda w, n=n: naive.forward(w, inputs[:n], model.net.scale),
            rewards[:n],
            6,
            model.config.training,
        )
    model.observe(round, played, feedback(rewards.tolist(), math.nan))
    model.train()
    for found, expected in zip(model.net.weights, weights, strict=True):
        torch.testing.assert_close(found, expected, rtol=0, atol=1e-10)


def test_an_unseen_reward_is_no_observation_and_spoils_no_training() -> None:
    model = arm_model(TrainingConfig(steps=10))
    start = model.net.weights
    model.observe(random_round(1, 5, DIM, K), slate_of(0, 1, 2), feedback([1.0, math.nan, 0.0], math.nan))
    model.train()
    assert model.history.rewards.rows.tolist() == [1.0, 0.0]
    assert model.failures == 0
    for found, expected in zip(model.net.weights, raw_training(model, start), strict=True):
        torch.testing.assert_close(found, expected, rtol=0, atol=1e-10)


def test_training_keeps_its_timetable() -> None:
    model = arm_model(TrainingConfig(train_every=2, train_until=4))
    moved = []
    for t in range(1, 8):
        before = model.net.weights[0].clone()
        feed(model, range(t, t + 1))
        moved.append(not torch.equal(before, model.net.weights[0]))
    assert moved == [False, True, False, True, False, False, False]


def test_minibatches_are_the_same_again_and_learn() -> None:
    first, again = (arm_model(TrainingConfig(optimizer="sgd", batch_size=4, step=1e-2)) for _ in range(2))
    feed(first, range(1, 6))
    feed(again, range(1, 6))
    assert all(torch.equal(a, b) for a, b in zip(first.net.weights, again.net.weights, strict=True))
    full = arm_model(TrainingConfig(step=1e-2))
    feed(full, range(1, 6))
    assert not torch.equal(first.net.weights[0], full.net.weights[0])
    assert objective(first) < 0.5 * float((first.history.rewards.rows**2).mean()) + 1e-9


def test_the_wide_net_fitted_long_from_its_start_approaches_kernel_ridge_regression() -> None:
    """GD to convergence in the lazy regime is f(x) = k(x)ᵀ(λI + ĜĜᵀ)⁻¹ r with k the gradient kernel at θ_0."""
    gaps = []
    for width in (64, 1024):
        training = TrainingConfig(steps=4000, start="restart", train_every=3)
        config = ArmModelConfig(EncoderConfig("raw"), NetworkConfig(width, 1, "mirrored"), training=training)
        model = ArmModel(config, DIM, K, seed=2)
        feed(model, range(1, 4))
        x, r = model.history.contexts.rows[model.history.seen.rows], model.history.rewards.rows
        g = torch.stack([naive.gradient(model.initial.weights, row, model.net.scale) for row in x]) / math.sqrt(width)
        kernel = g @ g.T
        expected = kernel @ torch.linalg.solve(kernel + torch.eye(len(r), dtype=torch.float64), r)
        gaps.append(float((model.predict(x) - expected).abs().max()))
    assert max(gaps) < 0.005


@pytest.mark.parametrize(
    "change",
    [{"steps": -1}, {"train_every": 0}, {"batch_size": 0}, {"step": 0.0}, {"step": -1.0}, {"ridge": -0.1},
     {"step": math.nan}, {"ridge": math.nan}],
)  # fmt: skip
def test_impossible_training_is_refused(change: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=r"TrainingConfig\.\w+: expected a (finite )?number"):
        TrainingConfig(**change)


@pytest.mark.parametrize("change", [{"width": 0}, {"depth": 0}])
def test_impossible_nets_are_refused(change: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match="NetworkConfig"):
        NetworkConfig(**change)
