"""Contestants from text: names, presets, settings for all or for one."""

from __future__ import annotations

from typing import Any

import pytest

from neuclust.environments.catalogue import build_environment
from neuclust.errors import ConfigError
from neuclust.experiment.contestants import Contestant, parse_contestants
from neuclust.experiment.problem import Problem
from neuclust.experiment.tasks import make_tasks
from neuclust.policies.exploring import Exploring
from neuclust.registry import split_name


def test_names_presets_and_settings_are_split() -> None:
    settings = ["gamma=0.5", "cn-ucb.arms.network.width = 8"]
    neuclust, cn_ucb = parse_contestants(
        ["neuclust", "cn-ucb:paper"], preset="paper-lift", clusters=4, settings=settings
    )
    assert neuclust == Contestant("neuclust", "paper-lift", 4, {"gamma": "0.5"})
    assert cn_ucb == Contestant("cn-ucb", "paper", 4, {"gamma": "0.5", "arms.network.width": "8"})
    assert (neuclust.title, cn_ucb.title, Contestant("linucb").title) == (
        "neuclust:paper-lift",
        "cn-ucb:paper",
        "linucb",
    )


def test_a_value_may_hold_an_equals_sign() -> None:
    assert parse_contestants(["a"], settings=["key=x=y"])[0].settings == {"key": "x=y"}


@pytest.mark.parametrize("setting", ["gamma", "=1", ""])
def test_settings_without_key_or_value_are_refused(setting: str) -> None:
    with pytest.raises(ConfigError, match="expected key=value"):
        parse_contestants(["neuclust"], settings=[setting])


def test_a_key_for_all_and_for_one_at_once_is_refused() -> None:
    with pytest.raises(ConfigError, match="alpha twice for linucb"):
        parse_contestants(["linucb"], settings=["alpha=1", "linucb.alpha=2"])


def test_the_same_policy_with_two_presets_is_fine_and_with_one_is_not() -> None:
    assert len(parse_contestants(["neuclust", "neuclust:paper"])) == 2
    with pytest.raises(ConfigError, match="neuclust twice"):
        parse_contestants(["neuclust:default", "neuclust"])


def test_a_class_from_outside_keeps_its_colon() -> None:
    assert split_name("linucb") == ("linucb", "")
    assert split_name("neuclust:paper") == ("neuclust", "paper")
    assert split_name("own.policies:Greedy") == ("own.policies:Greedy", "")
    assert split_name("own.policies:Greedy:cold") == ("own.policies:Greedy", "cold")


def test_a_setting_may_address_a_class_from_outside() -> None:
    own, linucb = parse_contestants(["own.policies:Greedy:cold", "linucb"], settings=["own.policies:Greedy.rate=1"])
    assert own == Contestant("own.policies:Greedy", "cold", None, {"rate": "1"})
    assert linucb == Contestant("linucb")


def test_contestants_that_explore_are_runs_of_their_own() -> None:
    """Fails when exploration is left out of the policy, of its record or of the key of its run."""
    plain, explores = Contestant("linucb"), Contestant("linucb", explore=0.25)
    first, second = make_tasks(Problem("quadratic", rounds=2), [plain, explores], [0])
    assert first.key != second.key
    assert (plain.told, explores.told) == ({}, {"explore": "0.25"})
    world: Any = build_environment("quadratic", horizon=2)
    policy = explores.build(world, 0)
    assert isinstance(policy, Exploring)
    assert policy.exploration.share == 0.25
