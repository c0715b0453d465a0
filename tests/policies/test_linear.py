"""Shared LinUCB against explicit ridge regression."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import naive_reference as naive
import pytest
import torch
from small_problems import feedback, play, same_state, slate_of, small_environment, snapshot

from neuclust.core import Feedback, Round
from neuclust.errors import ConfigError, StateError
from neuclust.models.encoder import EncoderConfig
from neuclust.policies.linear import LinearConfig, SharedLinUCB
from neuclust.randomness import stream
from neuclust.registry import load_policy

DIM, K = 6, 3


@pytest.mark.parametrize("refresh", [1, 4, 1000])
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("ridge", [0.3, 3.0])
def test_selection_equals_explicit_ridge_regression(ridge: float, bias: bool, refresh: int) -> None:
    environment = small_environment()
    config = LinearConfig(EncoderConfig("scale", rho=5.0), alpha=0.7, ridge=ridge, bias=bias, refresh=refresh)
    policy = SharedLinUCB(config, DIM, K)
    size = DIM + bias
    v, b = ridge * torch.eye(size, dtype=torch.float64), torch.zeros(size, dtype=torch.float64)
    for t in range(1, 21):
        round = environment.round(t)
        x = round.contexts / 5
        x = torch.cat([x, x.new_ones(len(x), 1)], 1) if bias else x
        theta = torch.linalg.solve(v, b)
        mean = [float(theta @ row) for row in x]
        bonus = [0.7 * naive.width(v, row) for row in x]
        slate = policy.select(round)
        scores = [m + w for m, w in zip(mean, bonus, strict=True)]
        assert slate.positions.tolist() == naive.top(scores, round.arm_ids.tolist(), range(len(x)), K)
        for position, m, w in zip(slate.positions.tolist(), slate.means, slate.bonuses, strict=True):
            assert float(m) == pytest.approx(mean[position], abs=1e-9)
            assert float(w) == pytest.approx(bonus[position], abs=1e-9)
        outcome = environment.play(round, slate)
        policy.update(round, slate, outcome)
        for position, reward in zip(slate.positions.tolist(), outcome.arm_rewards, strict=True):
            v, b = v + torch.outer(x[position], x[position]), b + float(reward) * x[position]


def test_an_automatic_scale_is_settled_by_the_first_update() -> None:
    environment = small_environment()
    policy = SharedLinUCB(LinearConfig(EncoderConfig("scale", rho=None)), DIM, K)
    play(policy, environment, range(1, 2))
    settled = float(policy.state_dict()["rho"])
    play(policy, environment, range(2, 8))
    assert float(policy.state_dict()["rho"]) == settled
    assert settled > 0


def test_it_learns_a_linear_truth() -> None:
    """Greedy after 60 rounds it finds arms close to the best, a fresh policy does not."""
    environment = small_environment(n=80, horizon=80)
    policy = SharedLinUCB(LinearConfig(), DIM, K)
    play(policy, environment, range(1, 61))

    def lost(one: SharedLinUCB) -> float:
        rounds = [environment.round(t) for t in range(61, 81)]
        return sum(environment.best_expected_reward(r) - environment.expected_reward(r, one.select(r)) for r in rounds)

    worst = sum(
        environment.best_expected_reward(r) - environment.expected_reward(r, slate_of(*range(K)))
        for r in (environment.round(t) for t in range(61, 81))
    )
    assert lost(policy) < 0.3 * worst


@pytest.mark.parametrize(
    "change", [{"ridge": 0.0}, {"ridge": -1.0}, {"alpha": -0.5}, {"refresh": 0}, {"alpha": math.nan}]
)
def test_impossible_settings_are_refused(change: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match="expected"):
        LinearConfig(**change)


# --- features of very different sizes --------------------------------------------------------------------------

SIZES = {
    "from 1e-8 to 1e8": 10.0 ** torch.linspace(-8, 8, DIM).double(),
    "all 1e8": torch.full((DIM,), 1e8).double(),
    "all 1e-8": torch.full((DIM,), 1e-8).double(),
    "two of 1e8": torch.tensor([1e8, 1e8, 1, 1, 1, 1]).double(),
}


@pytest.mark.parametrize("refresh", [1, 200])
@pytest.mark.parametrize("sizes", SIZES.values(), ids=SIZES.keys())
def test_features_of_any_size_are_learned_from(sizes: torch.Tensor, refresh: int) -> None:
    """Against the triangular factor of [√λ I; X], whose entries are not squared: 1 beside 1e8, not beside 1e16."""
    policy = SharedLinUCB(LinearConfig(EncoderConfig("raw"), refresh=refresh), DIM, K)
    past, rewards = [torch.eye(DIM, dtype=torch.float64)], [torch.zeros(DIM, dtype=torch.float64)]
    for t in range(1, 61):
        x = torch.from_numpy(stream(0, "test sizes", t).standard_normal((20, DIM))) * sizes
        round = Round(t, torch.arange(20), x, None, K)
        slate = policy.select(round)
        assert bool(torch.isfinite(slate.means).all() and torch.isfinite(slate.bonuses).all())
        if t > 20:
            root = torch.linalg.qr(torch.cat(past), mode="r").R
            widths = torch.linalg.solve_triangular(root.T, x[slate.positions].T, upper=False).norm(dim=0)
            torch.testing.assert_close(slate.bonuses, widths, rtol=1e-6, atol=1e-12)
        liked = (x[slate.positions, 2] > 0).double()
        policy.update(round, slate, Feedback(liked, liked.mean()))
        past, rewards = [*past, x[slate.positions]], [*rewards, liked]
    fitted = torch.linalg.lstsq(torch.cat(past) / sizes, torch.cat(rewards), driver="gelsd").solution
    if float(sizes.min()) >= 1:  # where the ridge is next to nothing, θ is the least squares fit
        expected = (x[slate.positions] / sizes) @ fitted
        torch.testing.assert_close(slate.means, expected, rtol=0, atol=0.1)


def test_an_update_that_is_refused_changes_nothing() -> None:
    environment = small_environment()
    policy = SharedLinUCB(LinearConfig(EncoderConfig("scale", rho=None), refresh=1), DIM, K)
    policy.matrix[0, 0] = -1e6  # no sum of squares
    before = snapshot(policy)
    with pytest.raises(StateError, match="scale the features"):
        policy.update(environment.round(1), slate_of(0, 1, 2), feedback([1.0, 0.0, 1.0], 1.0))
    assert same_state(before, snapshot(policy))


def test_a_saved_one_goes_on_byte_for_byte_past_a_new_factor(tmp_path: Path) -> None:
    """Fails when what is in memory after a factor of all of V lies by columns: products with it round to zeros of
    other signs than those with one that was read back, and two models of one log have other hashes."""
    environment = small_environment(n=60, d=20, seed=3)
    policy = SharedLinUCB(LinearConfig(refresh=5), environment.dim, environment.slate_size, seed=1)
    play(policy, environment, range(1, 13))
    policy.save(tmp_path / "policy")
    again = load_policy(tmp_path / "policy")
    for t in range(13, 41):
        assert play(again, environment, range(t, t + 1)) == play(policy, environment, range(t, t + 1))
        assert same_state(snapshot(policy), snapshot(again)), t
