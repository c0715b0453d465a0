"""Yardsticks: uniform slates are uniform, the oracle is optimal."""

from __future__ import annotations

from collections import Counter

import pytest
import torch
from small_problems import play, random_round, small_environment

from neuclust.core import Round
from neuclust.errors import StateError
from neuclust.policies.reference import Oracle, ReferenceConfig, Static, Uniform


def test_every_arm_and_every_slot_is_equally_likely() -> None:
    policy = Uniform(ReferenceConfig(), 2, 3, seed=1)
    round = random_round(1, 6, 2, 3)
    draws = 3000
    slots: list[Counter[int]] = [Counter(), Counter(), Counter()]
    for t in range(1, draws + 1):
        chosen = policy.select(type(round)(t, round.arm_ids, round.profiles, None, 3)).positions.tolist()
        assert len(set(chosen)) == 3
        for slot, arm in zip(slots, chosen, strict=True):
            slot[arm] += 1
    spread = 4.5 * (draws * (1 / 6) * (5 / 6)) ** 0.5  # 4.5 standard deviations
    assert all(abs(slot[arm] - draws / 6) < spread for slot in slots for arm in range(6))


def test_uniform_says_its_probabilities_and_depends_on_its_seed() -> None:
    round = random_round(3, 30, 2, 4)
    slate = Uniform(ReferenceConfig(), 2, 4, seed=1).select(round)
    assert slate.propensities is not None
    assert slate.propensities.tolist() == pytest.approx([1 / 30, 1 / 29, 1 / 28, 1 / 27])
    assert slate.positions.tolist() != Uniform(ReferenceConfig(), 2, 4, seed=2).select(round).positions.tolist()


def test_the_oracle_has_no_regret() -> None:
    environment = small_environment()
    policy = Oracle(ReferenceConfig(), environment.dim, environment.slate_size, means=environment.means)
    for t in range(1, 21):
        round = environment.round(t)
        slate = policy.select(round)
        assert environment.expected_reward(round, slate) == pytest.approx(environment.best_expected_reward(round))
        assert torch.equal(slate.means, environment.means(round)[slate.positions])


def test_the_oracle_beats_uniform() -> None:
    environment = small_environment()
    size = (environment.dim, environment.slate_size)
    oracle = Oracle(ReferenceConfig(), *size, means=environment.means)
    slates = [play(policy, environment, range(1, 21)) for policy in (oracle, Uniform(ReferenceConfig(), *size))]
    totals = [
        sum(float(environment.means(environment.round(t))[slate].sum()) for t, slate in enumerate(chosen, 1))
        for chosen in slates
    ]
    assert totals[0] > totals[1]


def test_static_keeps_the_offered_arms_with_the_largest_averages() -> None:
    ids, averages = torch.tensor([8, 3, 5, 1]), torch.tensor([0.2, 0.9, 0.9, 0.4], dtype=torch.float64)
    policy = Static(ReferenceConfig(), 2, 2, averages=(ids, averages))
    profiles = torch.zeros(4, 2, dtype=torch.float64)
    for t in (1, 2):
        slate = policy.select(Round(t, ids, profiles, None, 2))
        assert ids[slate.positions].tolist() == [3, 5]
        assert slate.means.tolist() == [0.9, 0.9]
    some = torch.tensor([1, 99, 8])  # 99 is not among the averages and counts as 0
    slate = policy.select(Round(3, some, profiles[:3], None, 2))
    assert some[slate.positions].tolist() == [1, 8]


def test_static_without_averages_says_so() -> None:
    with pytest.raises(StateError, match="averages"):
        Static(ReferenceConfig(), 2, 2).select(random_round(1, 5, 2, 2))
