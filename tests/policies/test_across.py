"""NeUClust across clusters: CN-UCB's slates where nothing binds, and slates that keep to what is asked."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from small_problems import play, small_environment

from neuclust.errors import ConfigError, DataError
from neuclust.policies.across import NeUClustAcross
from neuclust.registry import build_policy, load_policy, policy_config
from neuclust.slates.constraints import Constraints


def across(environment: Any = None, seed: Any = 1, categories: Any = None, **overrides: Any) -> NeUClustAcross:
    environment = small_environment() if environment is None else environment
    config = policy_config("neuclust-across", clusters=4, overrides=overrides)
    catalogue = environment.arm_ids, environment.profiles
    return NeUClustAcross(
        config, environment.dim, environment.slate_size, seed, catalogue=catalogue, categories=categories
    )


@pytest.mark.parametrize("small", ["merge", "fill"])
@pytest.mark.parametrize("arms_per_round", [None, 30])
def test_without_constraints_it_is_cn_ucb_slate_for_slate(arms_per_round: int | None, small: str) -> None:
    environment = small_environment(arms_per_round=arms_per_round)
    plain = build_policy("cn-ucb", environment=environment, seed=1)
    policy = across(environment, **{"clustering.small": small})
    assert play(policy, environment, range(1, 16)) == play(plain, environment, range(1, 16))


def test_slates_do_mix_clusters() -> None:
    environment = small_environment()
    policy = across(environment)
    slates = play(policy, environment, range(1, 25))
    clusters = policy.model.clusters.partition(environment.round(1)).cluster_of(48)
    assert any(len(set(clusters[slate].tolist())) > 1 for slate in slates)


def test_one_of_each_cluster_and_required_and_excluded_arms_are_kept_to() -> None:
    environment = small_environment()
    policy = across(environment, **{"constraints.at_most": "1"})
    play(policy, environment, range(1, 6))
    round = environment.round(6)
    clusters = policy.model.clusters.partition(round).cluster_of(48)
    assert len(set(clusters[policy.select(round).positions].tolist())) == 3
    first = round.arm_ids[policy.select(round).positions].tolist()
    wanted = next(arm for arm in round.arm_ids.tolist() if arm not in first)
    wish = Constraints(required=(wanted,), excluded=tuple(first))
    chosen = round.arm_ids[policy.select(round, constraints=wish).positions].tolist()
    assert wanted in chosen
    assert not set(chosen) & set(first)


def test_given_categories_are_counted_instead_of_clusters_and_saved(tmp_path: Path) -> None:
    environment = small_environment()
    given = environment.arm_ids, torch.arange(48) % 2
    policy = across(environment, categories=given, **{"constraints.at_most": "2"})
    play(policy, environment, range(1, 4))
    policy.save(tmp_path / "saved")
    again = load_policy(tmp_path / "saved")
    for t in range(4, 9):
        positions = policy.select(environment.round(t)).positions
        assert sorted(set((positions % 2).tolist())) == [0, 1]
        assert again.select(environment.round(t)).positions.tolist() == positions.tolist()


@pytest.mark.parametrize("soft", ["false", "true"])
def test_a_large_diversity_weight_spreads_the_slate_over_clusters(soft: str) -> None:
    environment = small_environment()
    policy = across(environment, **{"constraints.diversity_weight": "50", "assembly.soft": soft})
    round = environment.round(1)
    clusters = policy.model.clusters.partition(round).cluster_of(48)
    assert len(set(clusters[policy.select(round).positions].tolist())) == 3


def test_exploration_plays_every_cluster_and_counts_only_what_was_seen() -> None:
    environment = small_environment()
    policy = across(environment, explore="3")
    play(policy, environment, range(1, 31))
    assert int(policy._plays.min()) >= 3
    assert len(policy._plays) == 4
    assert int(policy._plays.sum()) == 90
    round = environment.round(31)
    slate = policy.select(round)
    nothing = replace(environment.play(round, slate), arm_rewards=torch.full((3,), math.nan, dtype=torch.float64))
    policy.update(round, slate, nothing)
    assert int(policy._plays.sum()) == 90


def test_constraints_of_one_round_that_cannot_be_kept_are_refused() -> None:
    environment = small_environment()
    with pytest.raises(DataError, match="arm 1, which is not"):
        across(environment).select(environment.round(1), constraints=Constraints(required=(1,)))
    ids = environment.arm_ids[1:]
    lacking = across(environment, categories=(ids, torch.zeros_like(ids)), **{"constraints.at_most": "3"})
    with pytest.raises(DataError, match="expected a category for every arm, got none for arm 7"):
        lacking.select(environment.round(1))


@pytest.mark.parametrize(
    ("setting", "value", "said"),
    [
        ("slate.sort_input", "false", "expected true"),
        ("explore", "-1", "at least 0"),
        ("constraints.required", "1,x", "whole numbers with commas"),
        ("constraints.at_most", "0", "at least 1"),
    ],
)
def test_settings_that_cannot_work_are_refused(setting: str, value: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        policy_config("neuclust-across", overrides={setting: value})
