"""Rewards that hardly teach anything are said to, once; ordinary ones never are."""

from __future__ import annotations

import math
import warnings
from typing import Any

import pytest
import torch
from small_problems import feedback, same_state, slate_of, small_environment, snapshot

from neuclust.errors import LearningWarning
from neuclust.models.watch import IN_A_ROW, SEEN, LearningWatch
from neuclust.registry import POLICIES, build_policy

NETS = ("neuclust", "cn-ucb", "epsilon-greedy")
LEARNING = (*NETS, "neuclust-online", "neural-linear", "neural-linucb", "neural-mab", "linucb", "linucb-disjoint",
            "linucb-hybrid", "lin-ts")  # fmt: skip
REWARDS = torch.tensor([1.0, 0.0])


def said(policy: Any, rewards: list[float], rounds: int) -> list[str]:
    """Warnings of so many updates with the same rewards."""
    environment = small_environment()
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always", LearningWarning)
        for t in range(1, rounds + 1):
            policy.update(environment.round(t), slate_of(t % 40, 41, 42), feedback(rewards, rewards[0]))
    return [str(one.message) for one in found if one.category is LearningWarning]


def build(name: str) -> Any:
    return build_policy(name, environment=small_environment(), seed=1, clusters=4)


@pytest.mark.parametrize("name", NETS)
def test_trainings_that_keep_failing_are_said_once(name: str) -> None:
    (sentence,) = said(build(name), [1e6, 0.0, 1e6], 12)
    assert "10 trainings of the arm net in a row found no step that helps: rewards reach 1e+06" in sentence
    assert "divide rewards so that they lie in [0, 1]" in sentence


@pytest.mark.parametrize("name", LEARNING)
def test_negative_rewards_are_said_once(name: str) -> None:
    (sentence, *others) = said(build(name), [0.0, -5.0, math.nan], 3)
    assert "rewards fall to -5" in sentence
    assert not others


@pytest.mark.parametrize("name", ["auto", "linucb", "cn-ucb", "neural-linear"])
def test_rewards_that_bonuses_drown_are_said_once(name: str) -> None:
    (sentence,) = said(build(name), [1e-6, 0.0, 1e-6], SEEN + 5)
    assert "rewards is 1e-06" in sentence


@pytest.mark.parametrize("name", list(POLICIES))
def test_ordinary_rewards_are_learned_without_a_word(name: str) -> None:
    assert said(build(name), [1.0, 0.0, math.nan], 2) == []


def test_failures_must_come_in_a_row() -> None:
    watch = LearningWatch("the net")
    with warnings.catch_warnings():
        warnings.simplefilter("error", LearningWarning)
        for _ in range(3):
            for _ in range(IN_A_ROW - 1):
                watch.trained(True, REWARDS)
            watch.trained(False, REWARDS)
            watch.speak()
    for _ in range(IN_A_ROW):
        watch.trained(True, REWARDS)
    with pytest.warns(LearningWarning, match="rewards reach 1; lower the training step"):
        watch.speak()


def test_rewards_of_a_rare_kind_are_not_taken_for_tiny_ones() -> None:
    watch = LearningWatch("the net")
    with warnings.catch_warnings():
        warnings.simplefilter("error", LearningWarning)
        for _ in range(3 * SEEN):
            watch.see(torch.zeros(3))
        watch.see(REWARDS)
        watch.speak()


def test_what_was_said_is_no_part_of_the_state() -> None:
    loud, quiet = build("linucb"), build("linucb")
    said(loud, [-1.0, 0.0, 0.0], 1)
    quiet.load_state_dict(loud.state_dict())
    assert same_state(snapshot(loud), snapshot(quiet))


@pytest.mark.parametrize("name", LEARNING)
def test_a_warning_turned_into_an_error_finds_the_slate_learned(name: str) -> None:
    environment, rewards = small_environment(), feedback([-1.0, 0.0, 1.0], 0.0)
    quiet, loud = build(name), build(name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LearningWarning)
        quiet.update(environment.round(1), slate_of(3, 41, 42), rewards)
    with warnings.catch_warnings():
        warnings.simplefilter("error", LearningWarning)
        with pytest.raises(LearningWarning, match="rewards fall to -1"):
            loud.update(environment.round(1), slate_of(3, 41, 42), rewards)
    assert same_state(snapshot(quiet), snapshot(loud))
