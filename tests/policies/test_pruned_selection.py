"""Selection from bounds gives the slates, means and bonuses of selection from all widths."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from small_problems import built_in, play, small_environment

from neuclust.core import Round
from neuclust.data.dataset import load_dataset
from neuclust.environments.profiles import profile_environment
from neuclust.environments.slates import SlateEnvironment
from neuclust.kernels import jit
from neuclust.kernels.network import Network
from neuclust.kernels.pruning import SLACK
from neuclust.models import covariance
from neuclust.policies.combinatorial_neural import CombinatorialNeuralUCB
from neuclust.policies.neuclust import NeUClust
from neuclust.registry import build_policy, policy_config

pytestmark = pytest.mark.skipif(not jit.available, reason="Numba is not installed: nothing is pruned")

SHARED = Path(os.environ.get("NEUCLUST_SHARED_DATA", Path(__file__).resolve().parents[3] / "shared" / "data"))


def with_pruning(policy: Any, word: str) -> Any:
    """The same policy, told to prune or not to."""
    policy.arms.confidence.config = replace(policy.arms.confidence.config, pruning=word)
    return policy


def agree(policy: Any, environment: SlateEnvironment, rounds: range) -> set[str]:
    """Select both ways in every round, and learn; the ways that were taken."""
    ways = set()
    for t in rounds:
        round = environment.round(t)
        plain = with_pruning(policy, "off").select(round)
        ways.add(policy.arms.last_choice.way)
        pruned = with_pruning(policy, "on").select(round)
        ways.add(policy.arms.last_choice.way)
        assert pruned.positions.tolist() == plain.positions.tolist(), t
        assert pruned.cluster == plain.cluster
        torch.testing.assert_close(pruned.means, plain.means, rtol=1e-9, atol=1e-12)
        torch.testing.assert_close(pruned.bonuses, plain.bonuses, rtol=1e-6, atol=1e-9)
        policy.update(round, plain, environment.play(round, plain))
    return ways


@settings(max_examples=15)
@given(
    st.integers(0, 10**6),
    st.sampled_from(["primal", "dual"]),
    st.sampled_from([0.0, 0.1, 1.0, 5.0]),
    st.sampled_from(["mean", "optimistic"]),
    st.booleans(),
    st.sampled_from(["id", "random"]),
)
def test_random_problems(seed: int, solver: str, gamma: float, source: str, sort: bool, tie: str) -> None:
    environment = small_environment(n=40, seed=seed, horizon=8)
    config = policy_config("neuclust", "default", 4)
    arms = replace(
        config.arms,
        network=replace(config.arms.network, width=6, init="he"),
        confidence=replace(config.arms.confidence, solver=solver, ridge=0.7),
        schedule=replace(config.arms.schedule, gamma=gamma),
    )
    slate = replace(config.slate, input=source, sort_input=sort)
    policy = NeUClust(replace(config, arms=arms, slate=slate, tie=tie), environment.dim, 3, seed)
    assert "pruned" in agree(policy, environment, range(1, 8))


@pytest.mark.parametrize("name", ["neuclust", "cn-ucb"])
def test_bounds_from_explored_directions(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Dense contexts and the primal, from the second update on: fewer widths, the same slates."""
    monkeypatch.setattr(covariance, "FEW", 2)
    environment = built_in("bump", slate_size=5, horizon=12, seed=3)
    policy: Any = build_policy(name, environment=environment, seed=3)
    assert "pruned" in agree(policy, environment, range(1, 12))
    assert policy.arms.confidence._covariance._basis() is not None
    assert policy.arms.last_choice.widths < policy.arms.last_choice.contexts / 2


@pytest.mark.parametrize("preset", ["default", "paper"])
def test_equal_contexts_are_ties_that_go_to_the_smaller_id(preset: str) -> None:
    """Arms in threes: whole slates, and clusters, that differ in nothing but their ids."""
    once = small_environment(n=30, horizon=12)
    twins = torch.cat([once.profiles] * 3)
    ids = torch.arange(90).flip(0).contiguous()
    config = policy_config("neuclust", preset, 4)
    policy = NeUClust(config, once.dim, 3, 1)
    for t in range(1, 11):
        round = Round(t, ids, twins, once.round(t).query, 3)
        plain = with_pruning(policy, "off").select(round)
        pruned = with_pruning(policy, "on").select(round)
        assert pruned.positions.tolist() == plain.positions.tolist()
        small = once.round(t)
        chosen = replace(plain, positions=torch.tensor([0, 1, 2]))
        policy.update(small, chosen, once.play(small, chosen))


def test_cn_ucb_and_profiles_that_change_in_place() -> None:
    environment = small_environment(n=40, horizon=12)
    policy = CombinatorialNeuralUCB(policy_config("cn-ucb"), environment.dim, 3, 0)
    assert "pruned" in agree(policy, environment, range(1, 8))
    environment.profiles[5] *= 1.5  # what was kept of the profiles must not outlive them
    agree(policy, environment, range(8, 12))


def test_the_yelp_twin() -> None:
    environment = built_in("yelp-twin", slate_size=5, horizon=6, seed=0)
    policy: Any = build_policy("neuclust", environment=environment, preset="paper-yelp", clusters=3)
    assert "pruned" in agree(policy, environment, range(1, 5))
    assert policy.arms.last_choice.widths < 500 < policy.arms.last_choice.contexts


@pytest.mark.skipif(not (SHARED / "movielens-25m.npz").is_file(), reason="the real MovieLens problem is not at hand")
@pytest.mark.parametrize("solver", ["primal", "dual"])
def test_the_real_movielens(solver: str) -> None:
    dataset = load_dataset(SHARED / "movielens-25m.npz")
    environment = profile_environment(dataset, slate_size=5, horizon=40, seed=0)
    overrides = {"confidence.solver": solver}
    policy: Any = build_policy("neuclust", environment=environment, clusters=6, overrides=overrides)
    assert "pruned" in agree(policy, environment, range(1, 16))


def test_what_is_left_a_bound_ends_below_the_floor_however_low_its_mean() -> None:
    """Otherwise the same rows are tightened again and again: the slack of a bound grows with −f, which rewards set."""
    environment = small_environment()
    bold = {"confidence.pruning": "on", "schedule.gamma": "1e6"}
    policy: Any = build_policy("cn-ucb", environment=environment, seed=1, overrides=bold)
    play(policy, environment, range(1, 13))
    net = policy.arms.net
    policy.arms.net = Network((net.weights[0], net.weights[1] - 1e6), net.scale, net.bias)
    bounds = policy.arms.bounds(environment.round(13))
    for row in map(np.array, [[i] for i in range(20)]):
        bounds.tighten(row, -np.inf, early=True)
        floor = float(bounds.upper[row[0]] - 0.5 * SLACK * abs(bounds.means[row[0]]))
        assert floor < bounds.upper[row[0]]
        bounds.tighten(row, floor)
        assert bounds.exact[row[0]] or bounds.upper[row[0]] < floor
