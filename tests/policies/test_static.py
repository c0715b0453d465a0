"""One slate for all rounds: the arms with the highest average mean, and the best of those offered."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from small_problems import play, random_round, small_environment

from neuclust.errors import StateError
from neuclust.policies.reference import ReferenceConfig, Static
from neuclust.registry import build_policy, load_policy


def test_the_same_slate_every_round_and_no_other_is_better_on_average() -> None:
    environment = small_environment(n=10, d=4, centres=2, slate_size=2, horizon=40)
    slates = play(build_policy("static", environment=environment), environment, range(1, 41))
    assert all(slate == slates[0] for slate in slates)
    means = torch.stack([environment.means(environment.round(t)) for t in range(1, 41)]).mean(0)
    assert slates[0] == torch.argsort(-means)[:2].tolist()


def test_of_a_part_of_the_arms_the_best_by_the_same_average() -> None:
    every = small_environment()
    some = small_environment(arms_per_round=10)
    policy = build_policy("static", environment=some)
    assert torch.equal(every.average_means(), some.average_means())
    for t in (1, 2, 30):
        round = some.round(t)
        offered = every.average_means()[(round.arm_ids - 7) // 3]
        assert policy.select(round).positions.tolist() == torch.argsort(-offered)[:3].tolist()


def test_arms_nobody_knows_come_last() -> None:
    known = (torch.tensor([9, 2]), torch.tensor([0.3, 0.6], dtype=torch.float64))
    policy = Static(ReferenceConfig(), 2, 2, averages=known)
    round = random_round(1, 12, 2, 2)  # arms 0 to 11
    slate = policy.select(round)
    assert slate.positions.tolist() == [2, 9]
    assert slate.means.tolist() == [0.6, 0.3]


def test_a_save_holds_all_it_needs(tmp_path: Path) -> None:
    environment = small_environment()
    policy = build_policy("static", environment=environment)
    policy.save(tmp_path / "save")
    loaded = load_policy(tmp_path / "save")
    assert play(loaded, environment, range(1, 4)) == play(policy, environment, range(1, 4))


def test_without_averages_it_says_so() -> None:
    with pytest.raises(StateError, match="averages"):
        Static(ReferenceConfig(), 2, 2).select(random_round(1, 12, 2, 2))
