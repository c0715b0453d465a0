"""CUCB against a dictionary of reward lists."""

from __future__ import annotations

import math

import naive_reference as naive
import pytest
from small_problems import play, small_environment

from neuclust.errors import ConfigError
from neuclust.policies.tabular import CountConfig, CountUCB

DIM, K = 6, 3


@pytest.mark.parametrize("offered", [None, 6])
def test_selection_equals_a_dictionary_of_rewards(offered: int | None) -> None:
    """Fails when unplayed arms do not come first, when the bonus loses log t, or when sums stand for means."""
    environment = small_environment(n=10, arms_per_round=offered)
    policy = CountUCB(CountConfig(tie="id"), DIM, K)
    seen: dict[int, list[float]] = {}
    for t in range(1, 61):
        round = environment.round(t)
        ids = round.arm_ids.tolist()
        means = [sum(seen[arm]) / len(seen[arm]) if arm in seen else 0.0 for arm in ids]
        bonuses = [math.sqrt(3 * math.log(t) / (2 * len(seen[arm]))) if arm in seen else math.inf for arm in ids]
        scores = [m + b for m, b in zip(means, bonuses, strict=True)]
        slate = policy.select(round)
        expected = naive.top(scores, ids, range(len(ids)), K)
        assert slate.positions.tolist() == expected
        assert slate.means.tolist() == pytest.approx([means[i] for i in expected])
        outcome = environment.play(round, slate)
        policy.update(round, slate, outcome)
        for i, reward in zip(expected, outcome.arm_rewards.tolist(), strict=True):
            seen.setdefault(ids[i], []).append(reward)


def test_every_arm_is_played_once_before_any_is_played_twice() -> None:
    environment = small_environment(n=30)
    policy = CountUCB(CountConfig(), DIM, K)
    slates = play(policy, environment, range(1, 11))
    assert sorted(position for slate in slates for position in slate) == list(range(30))
    assert slates[0] != [0, 1, 2]  # in random order


def test_a_negative_bonus_is_refused() -> None:
    with pytest.raises(ConfigError, match="bonus: expected"):
        CountConfig(bonus=-1.0)
