"""The online variant's profiles: running means that move only where something was seen."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from small_problems import feedback, slate_of

from neuclust.core import Round
from neuclust.errors import ConfigError
from neuclust.models.tracker import ProfileTracker, TrackerConfig

PROFILES = torch.tensor([[4.0, 2.0, 0.0], [1.0, 0.0, 3.0], [5.0, 5.0, 5.0]], dtype=torch.float64)
IDS = torch.tensor([30, 10, 20])
CONFIG = TrackerConfig(liked=5.0, disliked=1.0, weight=2.0, pseudo_count=3.0)


def shown(query: list[float] | None = None) -> Round:
    asked = None if query is None else torch.tensor(query, dtype=torch.float64)
    return Round(1, IDS.clone(), PROFILES.clone(), asked, 2)


def test_a_fresh_tracker_shows_the_round_as_it_is() -> None:
    round = shown()
    assert torch.equal(ProfileTracker(CONFIG, 3).view(round).profiles, PROFILES)


def test_a_seen_reward_moves_the_running_mean_on_the_features_asked_for() -> None:
    tracker = ProfileTracker(CONFIG, 3)
    round = shown([1.0, 0.0, 1.0])
    tracker.observe(round, slate_of(0, 1), feedback([1.0, 0.0], 1.0))
    seen = tracker.view(shown()).profiles
    # arm 30: three ratings of 4 and two of 5; feature 1 not asked for; feature 2 was empty, so two of 5 alone
    assert seen[0].tolist() == pytest.approx([(3 * 4 + 2 * 5) / 5, 2.0, 5.0])
    assert seen[1].tolist() == pytest.approx([(3 * 1 + 2 * 1) / 5, 0.0, (3 * 3 + 2 * 1) / 5])
    assert torch.equal(seen[2], PROFILES[2])
    assert torch.equal(round.profiles, PROFILES)


def test_counts_of_the_dataset_are_the_weight_of_the_start() -> None:
    counts = torch.tensor([[8.0, 1.0, 0.0]], dtype=torch.float64)
    tracker = ProfileTracker(CONFIG, 3, (torch.tensor([30]), counts))
    tracker.observe(shown(), slate_of(0, 1), feedback([1.0, math.nan], 1.0))
    assert tracker.view(shown()).profiles[0].tolist() == pytest.approx([42 / 10, 12 / 3, 5.0])


def test_an_unseen_reward_moves_nothing() -> None:
    tracker = ProfileTracker(CONFIG, 3)
    tracker.observe(shown(), slate_of(0, 1), feedback([math.nan, math.nan], 1.0))
    assert torch.equal(tracker.view(shown()).profiles, PROFILES)


def test_two_rewards_of_one_arm_add_up_and_the_shown_profile_counts_once() -> None:
    tracker = ProfileTracker(CONFIG, 3)
    for reward in (1.0, 0.0):
        tracker.observe(shown(), slate_of(2, 0), feedback([reward, math.nan], 1.0))
    expected = (3 * 5 + 2 * 5 + 2 * 1) / 7
    assert tracker.view(shown()).profiles[2].tolist() == pytest.approx([expected] * 3)


def test_arms_are_known_by_id_and_not_by_place() -> None:
    tracker = ProfileTracker(CONFIG, 3)
    tracker.observe(shown(), slate_of(0, 2), feedback([1.0, 0.0], 1.0))
    moved = tracker.view(shown()).profiles
    order = torch.tensor([2, 0, 1])
    other = Round(2, IDS[order], PROFILES[order], None, 2)
    assert torch.equal(tracker.view(other).profiles, moved[order])


def test_a_loaded_tracker_continues_as_the_first_did() -> None:
    counts = (IDS, torch.full((3, 3), 2.0, dtype=torch.float64))
    first = ProfileTracker(CONFIG, 3, counts)
    first.observe(shown(), slate_of(0, 1), feedback([1.0, 0.0], 1.0))
    again = ProfileTracker(CONFIG, 3)
    again.load_state_dict(first.state_dict())
    for tracker in (first, again):
        tracker.observe(shown(), slate_of(1, 2), feedback([1.0, 1.0], 1.0))
    assert torch.equal(first.view(shown()).profiles, again.view(shown()).profiles)


@pytest.mark.parametrize("change", [{"weight": 0.0}, {"weight": -1.0}, {"pseudo_count": -1.0}])
def test_impossible_settings_are_refused(change: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match="TrackerConfig"):
        TrackerConfig(**change)
