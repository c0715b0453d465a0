"""ε-greedy: how often it explores, and what it plays otherwise."""

from __future__ import annotations

import math

import naive_reference as naive
import pytest
from small_problems import play, random_round, small_environment

from neuclust.errors import ConfigError
from neuclust.policies.combinatorial_neural import EpsilonGreedy, EpsilonGreedyConfig

DIM, K = 6, 3


def test_it_explores_as_often_as_it_says() -> None:
    """Fails when ε_t stays at c (no division by t), when it never explores, or when probabilities forget one part."""
    policy = EpsilonGreedy(EpsilonGreedyConfig(exploration=20.0), DIM, K)
    explored, expected, variance = 0, 0.0, 0.0
    for t in range(1, 501):
        round = random_round(t, 20, DIM, K)
        means = policy.arms.scores(round).means.tolist()
        greedy = naive.top(means, round.arm_ids.tolist(), range(20), K)
        slate = policy.select(round)
        epsilon = min(1.0, 20 / t)
        explored += slate.positions.tolist() != greedy
        expected, variance = expected + epsilon, variance + epsilon * (1 - epsilon)
        assert slate.propensities is not None
        chosen = slate.positions.tolist()
        expected_chances = naive.one_coin_propensities(chosen, greedy, 20, epsilon)
        assert slate.propensities.tolist() == pytest.approx(expected_chances)
    assert abs(explored - expected) < 4 * math.sqrt(variance)
    assert explored > 20


def test_without_exploration_it_is_greedy_and_learns() -> None:
    """Fails when `update` does not train or when the bonus of the arm model enters the ranking."""
    environment = small_environment()
    policy = EpsilonGreedy(EpsilonGreedyConfig(exploration=0.0), DIM, K)
    play(policy, environment, range(1, 8))
    round = environment.round(8)
    scores = policy.arms.scores(round)
    slate = policy.select(round)
    expected = naive.top(scores.means.tolist(), round.arm_ids.tolist(), range(len(scores.means)), K)
    assert slate.positions.tolist() == expected
    assert expected != naive.top(scores.optimistic.tolist(), round.arm_ids.tolist(), range(len(scores.means)), K)
    assert policy.arms.history.observations == 7 * K
    assert float(scores.means.abs().max()) > 0.05  # the net starts at 0


def test_negative_exploration_is_refused() -> None:
    with pytest.raises(ConfigError, match="exploration: expected"):
        EpsilonGreedyConfig(exploration=-1.0)
