"""The change-point test against enumeration and simulation."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
import torch

from neuclust.errors import ConfigError
from neuclust.policies.auto.change_point import ChangePointTest, DriftConfig, excess_log_loss, log_likelihood
from neuclust.randomness import stream

CHANCES = torch.tensor([0.9, 0.3, 0.6], dtype=torch.float64)


def test_the_excess_has_mean_zero_and_the_named_variance_where_predictions_are_right() -> None:
    total = mean = square = 0.0
    for outcome in itertools.product((0.0, 1.0), repeat=3):
        rewards = torch.tensor(outcome, dtype=torch.float64)
        weight = float((rewards * CHANCES + (1 - rewards) * (1 - CHANCES)).prod())
        excess, variance = excess_log_loss(CHANCES, rewards)
        entropy = -(CHANCES * CHANCES.log() + (1 - CHANCES) * (1 - CHANCES).log()).sum()
        assert excess == pytest.approx(float(-log_likelihood(CHANCES, rewards) - entropy))
        total, mean, square = total + weight, mean + weight * excess, square + weight * excess**2
    assert total == pytest.approx(1)
    assert mean == pytest.approx(0, abs=1e-12)
    assert square == pytest.approx(variance)


def simulated(test: ChangePointTest, truth: float, slates: int, seed: int) -> list[int | None]:
    """Predictions of 0.8, five arms per slate, rewarded with the true chance."""
    rng, found = stream(seed, "test surprise"), []
    for _ in range(slates):
        test.observe(torch.full((5,), 0.8).double(), torch.from_numpy((rng.random(5) < truth).astype(float)))
        found.append(test.change())
    return found


def test_a_fall_of_rewards_is_detected_and_dated_and_there_are_no_false_alarms() -> None:
    for seed in range(10):
        test = ChangePointTest(DriftConfig())
        assert simulated(test, 0.8, 300, seed) == [None] * 300
        found = simulated(test, 0.1, 20, seed + 100)
        after = next(i for i, since in enumerate(found, 1) if since is not None)
        since = found[after - 1]
        assert since is not None
        assert abs(since - after) <= 3


def test_there_is_no_alarm_before_two_windows_nor_without_a_threshold() -> None:
    assert simulated(ChangePointTest(DriftConfig(window=20, keep=10)), 0.0, 39, 0) == [None] * 39
    assert simulated(ChangePointTest(DriftConfig(window=20, keep=10)), 0.0, 40, 0)[-1] is not None
    assert simulated(ChangePointTest(DriftConfig(threshold=None)), 0.0, 100, 0) == [None] * 100


def test_predictions_of_one_half_raise_no_alarm() -> None:
    test = ChangePointTest(DriftConfig(window=3, keep=2, shortest=1))
    for _ in range(8):
        test.observe(torch.full((2,), 0.5).double(), torch.zeros(2).double())
        assert test.change() is None


def test_a_gradual_change_is_detected_by_the_long_window_alone() -> None:
    """Rewards a little below the predictions: too little for the short window, seen only after two long ones."""
    patient = DriftConfig(window=10, keep=5, threshold=8.0, long_window=40, long_keep=15, long_threshold=5.0)
    found = simulated(ChangePointTest(patient), 0.6, 100, 1)
    assert found[:79] == [None] * 79
    assert set(found[79:]) == {15}
    assert simulated(ChangePointTest(DriftConfig(window=10, keep=5, threshold=8.0)), 0.6, 100, 1) == [None] * 100


def test_a_false_alarm_is_followed_by_one_quiet_window() -> None:
    config = DriftConfig(window=10, keep=5, shortest=2)
    test, again = ChangePointTest(config), ChangePointTest(config)
    assert simulated(test, 0.0, 20, 0)[-1] is not None
    test.suspend()
    assert test.change() is None
    assert simulated(test, 0.0, 4, 0) == [None] * 4
    again.load_state_dict(test.state_dict())  # the quiet window is saved as well
    for one in (test, again):
        found = simulated(one, 0.0, 6, 0)
        assert found[:5] == [None] * 5
        assert found[5] is not None


@pytest.mark.parametrize(
    "change",
    [
        {"keep": 40}, {"shortest": 0}, {"shortest": 30}, {"threshold": 0.0}, {"long_keep": 0}, {"long_keep": 121},
        {"long_threshold": 0.0},
    ],
)  # fmt: skip
def test_impossible_settings_are_refused(change: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match="expected"):
        DriftConfig(**change)
