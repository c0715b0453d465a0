"""Disjoint and hybrid LinUCB against the published algorithms with their d × d matrices."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import naive_reference as naive
import pytest
import torch
from small_problems import feedback, same_state, slate_of, small_environment, snapshot
from torch import Tensor

from neuclust.errors import ConfigError, DataError
from neuclust.models.armwise import ArmwiseRidge
from neuclust.models.encoder import EncoderConfig
from neuclust.policies.linear import ArmwiseLinearConfig, ArmwiseLinUCB
from neuclust.randomness import stream

DIM, K, ALPHA = 6, 3, 0.7


class NaiveDisjoint:
    """Li et al. 2010, Algorithm 1."""

    def __init__(self, ridge: float) -> None:
        self.ridge = ridge
        self.models: dict[int, tuple[Tensor, Tensor]] = {}

    def model(self, arm: int) -> tuple[Tensor, Tensor]:
        start = (self.ridge * torch.eye(DIM, dtype=torch.float64), torch.zeros(DIM, dtype=torch.float64))
        return self.models.get(arm, start)

    def belief(self, arm: int, x: Tensor) -> tuple[float, float]:
        a, b = self.model(arm)
        return float(torch.linalg.solve(a, b) @ x), ALPHA * naive.width(a, x)

    def learn(self, arm: int, x: Tensor, reward: float) -> None:
        a, b = self.model(arm)
        self.models[arm] = (a + torch.outer(x, x), b + reward * x)


class NaiveHybrid:
    """Li et al. 2010, Algorithm 2, to the letter, with the context as the shared feature z."""

    def __init__(self, ridge: float) -> None:
        self.ridge = ridge
        self.a0, self.b0 = ridge * torch.eye(DIM, dtype=torch.float64), torch.zeros(DIM, dtype=torch.float64)
        self.models: dict[int, tuple[Tensor, Tensor, Tensor]] = {}

    def model(self, arm: int) -> tuple[Tensor, Tensor, Tensor]:
        zero = torch.zeros(DIM, DIM, dtype=torch.float64)
        return self.models.get(arm, (self.ridge * torch.eye(DIM, dtype=torch.float64), zero, zero[0]))

    def belief(self, arm: int, x: Tensor) -> tuple[float, float]:
        a, big_b, b = self.model(arm)
        p0, p = torch.linalg.inv(self.a0), torch.linalg.inv(a)
        beta = p0 @ self.b0
        theta = p @ (b - big_b @ beta)
        cross = p0 @ big_b.T @ p @ x
        s = x @ p0 @ x - 2 * x @ cross + x @ p @ x + x @ p @ big_b @ cross
        return float(x @ beta + x @ theta), ALPHA * math.sqrt(float(s))

    def learn(self, arm: int, x: Tensor, reward: float) -> None:
        a, big_b, b = self.model(arm)
        p = torch.linalg.inv(a)
        self.a0, self.b0 = self.a0 + big_b.T @ p @ big_b, self.b0 + big_b.T @ p @ b
        a, big_b, b = a + torch.outer(x, x), big_b + torch.outer(x, x), b + reward * x
        p = torch.linalg.inv(a)
        self.a0 = self.a0 + torch.outer(x, x) - big_b.T @ p @ big_b
        self.b0 = self.b0 + reward * x - big_b.T @ p @ b
        self.models[arm] = (a, big_b, b)


@pytest.mark.parametrize("offered", [None, 9])
@pytest.mark.parametrize("ridge", [0.3, 3.0])
@pytest.mark.parametrize("shared", [False, True])
def test_selection_equals_the_published_algorithm(shared: bool, ridge: float, offered: int | None) -> None:
    """Few arms, so that most are played several times.

    Fails when a play does not append its row (`solved` stays x), when θ moves without its gain 1/√(1 + xᵀA⁻¹x),
    when β takes only the last θ, or when y is x in the hybrid's means.
    """
    environment = small_environment(n=14, arms_per_round=offered)
    config = ArmwiseLinearConfig(EncoderConfig("scale", rho=5.0), shared=shared, alpha=ALPHA, ridge=ridge)
    policy = ArmwiseLinUCB(config, DIM, K)
    plain = NaiveHybrid(ridge) if shared else NaiveDisjoint(ridge)
    for t in range(1, 41):
        round = environment.round(t)
        xs, ids = round.contexts / 5, round.arm_ids.tolist()
        believed = [plain.belief(arm, x) for arm, x in zip(ids, xs, strict=True)]
        slate = policy.select(round)
        expected = naive.top([m + w for m, w in believed], ids, range(len(xs)), K)
        assert slate.positions.tolist() == expected
        assert slate.means.tolist() == pytest.approx([believed[i][0] for i in expected], abs=1e-9)
        assert slate.bonuses.tolist() == pytest.approx([believed[i][1] for i in expected], abs=1e-9)
        outcome = environment.play(round, slate)
        policy.update(round, slate, outcome)
        for i, reward in zip(expected, outcome.arm_rewards.tolist(), strict=True):
            plain.learn(ids[i], xs[i], reward)


def test_an_arm_never_played_has_the_length_of_its_context_as_its_bonus() -> None:
    environment = small_environment()
    policy = ArmwiseLinUCB(ArmwiseLinearConfig(), DIM, K)
    round = environment.round(1)
    slate = policy.select(round)
    lengths = torch.linalg.vector_norm(round.contexts, dim=1)
    assert slate.bonuses.tolist() == pytest.approx(lengths.sort(descending=True).values[:K].tolist())
    assert slate.means.tolist() == [0.0] * K


def test_only_played_arms_have_state() -> None:
    """The disjoint model of one arm says nothing of another, and takes no room before it is played."""
    environment = small_environment()
    policy = ArmwiseLinUCB(ArmwiseLinearConfig(), DIM, K)
    round = environment.round(1)
    for _ in range(4):
        policy.update(round, slate_of(1, 4, 7), feedback([1.0, 1.0, math.nan], 1.0))
    state = policy.state_dict()
    assert state["own.ids"].tolist() == round.arm_ids[[1, 4]].tolist()
    assert state["own.rows"].shape == (8, DIM)


@pytest.mark.parametrize("change", [{"ridge": 0.0}, {"alpha": -0.5}, {"alpha": math.nan}])
def test_impossible_settings_are_refused(change: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match="expected"):
        ArmwiseLinearConfig(**change)


@pytest.mark.parametrize("shared", [False, True])
def test_contexts_too_long_for_the_ridge_are_refused_and_change_nothing(shared: bool) -> None:
    """Beyond, A⁻¹ = I − BᵀB is made of rounding, and estimates grew without limit."""
    environment = small_environment()
    policy = ArmwiseLinUCB(ArmwiseLinearConfig(shared=shared), 6, 3)
    round = environment.round(1)
    long = replace(round, profiles=round.profiles * 1e8)
    before = snapshot(policy)
    with pytest.raises(DataError, match=r"raise ridge"):
        policy.select(long)
    with pytest.raises(DataError, match=r"scale the features"):
        policy.update(long, slate_of(0, 1, 2), feedback([1.0, 0.0, 1.0], 1.0))
    assert same_state(before, snapshot(policy))


@pytest.mark.parametrize("sizes", [10.0 ** torch.linspace(-8, 8, 9).double(), torch.full((9,), 1e8).double()])
def test_rounding_does_not_throw_an_estimate_off(sizes: Tensor) -> None:
    """Where nothing but rounding is left of a context, learning along it made estimates grow with every play."""
    own = ArmwiseRidge(9)
    for t in range(200):
        x = torch.from_numpy(stream(0, "test long contexts", t).standard_normal(9)) * sizes
        own.learn(1, x, float(t % 2))
        assert float((own.thetas(torch.tensor([0]))[0] @ x).abs()) < 1e5
