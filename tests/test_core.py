"""Rounds, slates and feedback cast what they are given; what nobody can play is refused."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from small_problems import small_environment

from neuclust.core import LARGEST, Feedback, Round, Slate, check_feedback, check_round
from neuclust.errors import DataError

PROFILES = torch.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], dtype=torch.float64)
IDS = torch.arange(3)
PLAIN = Round(1, IDS, PROFILES, torch.ones(2, dtype=torch.float64), 2)


# they take any kind of numbers, which their types do not say
MAKE_ROUND: Any = Round
MAKE_SLATE: Any = Slate
MAKE_FEEDBACK: Any = Feedback


def made(**change: Any) -> Round:
    return replace(PLAIN, **change)


def test_a_round_takes_lists_arrays_and_other_types() -> None:
    round = MAKE_ROUND(np.int64(1), [0, 1, 2], PROFILES.numpy().astype("f4"), [1, 1], np.int32(2))
    assert torch.equal(round.profiles, PROFILES)
    assert torch.equal(round.arm_ids, IDS)
    assert round.query is not None
    assert round.query.dtype == torch.float64
    assert (type(round.t), type(round.slate_size)) == (int, int)
    check_round(round, 2, 2)


def test_a_round_keeps_tensors_that_are_right_already() -> None:
    assert made().profiles is PROFILES
    assert made().arm_ids is IDS
    environment = small_environment()
    assert environment.round(1).profiles is environment.profiles


def test_slates_and_feedback_take_lists_and_plain_numbers() -> None:
    slate, feedback = MAKE_SLATE([2, 0], [0, 1], [1, 1], [0.5, 1], explored=[0, 1]), MAKE_FEEDBACK([True, False], 1)
    assert slate.positions.dtype == torch.int64
    assert slate.propensities is not None
    assert slate.explored is not None
    assert {slate.means.dtype, slate.bonuses.dtype, slate.propensities.dtype} == {torch.float64}
    assert slate.explored.tolist() == [False, True]
    assert feedback.arm_rewards.tolist() == [1.0, 0.0]
    assert feedback.slate_reward.shape == ()
    check_feedback(PLAIN, slate, feedback)
    assert MAKE_FEEDBACK([1.0], [0.5]).slate_reward.shape == ()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"profiles": "text"}, "round 1: profiles: expected numbers"),
        ({"profiles": [[1, 2], [3]]}, "round 1: profiles: expected an array of numbers"),
        ({"query": [1j, 1]}, "round 1: query: expected real numbers"),
        ({"arm_ids": [0, 1, 2.5]}, r"round 1: arm ids: expected whole numbers, got 2\.5"),
        ({"slate_size": 2.5}, "round 1: slate_size: expected a whole number"),
        ({"t": None}, "t: expected a whole number"),
    ],
)
def test_a_round_of_no_numbers_is_refused_when_it_is_made(change: dict[str, Any], said: str) -> None:
    with pytest.raises(DataError, match=said):
        made(**change)


def test_a_slate_reward_is_one_number() -> None:
    with pytest.raises(DataError, match="slate reward: expected one number"):
        MAKE_FEEDBACK([1.0], [1.0, 2.0])


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"t": 0}, "counted 1, 2"),
        ({"t": 2**63}, "counted 1, 2"),
        ({"arm_ids": [2, 0, 2]}, "every arm once, got id 2 twice"),
        ({"profiles": PROFILES * LARGEST}, r"row 0 \(arm 0\)"),
        ({"profiles": -PROFILES * LARGEST}, r"row 0 \(arm 0\)"),
        ({"profiles": PROFILES / 0}, "NaN, infinity or more"),
        ({"query": [1, 1e60]}, "finite query"),
        ({"query": [1, float("nan")]}, "finite query"),
    ],
)
def test_what_cannot_be_played_is_refused(change: dict[str, Any], said: str) -> None:
    with pytest.raises(DataError, match=said):
        check_round(made(**change), 2, 2)


def test_ids_in_any_order_are_welcome() -> None:
    check_round(made(arm_ids=[2, -5, 2**62]), 2, 2)


@pytest.mark.parametrize("rewards", [([1e60, 0], 0), ([0, -1e60], 0), ([0, 0], 1e60)])
def test_rewards_too_large_to_compute_with_are_refused(rewards: Any) -> None:
    with pytest.raises(DataError, match="finite rewards"):
        check_feedback(PLAIN, MAKE_SLATE([0, 1], [0, 0], [0, 0]), MAKE_FEEDBACK(*rewards))


def test_a_large_table_that_changes_is_checked_again() -> None:
    table = torch.zeros(600, 500, dtype=torch.float64)
    round = Round(1, torch.arange(600), table, None, 5)
    check_round(round, 500, 5)
    check_round(round, 500, 5)
    table[3, 4] = torch.nan
    with pytest.raises(DataError, match="row 3"):
        check_round(round, 500, 5)
    with pytest.raises(DataError, match="row 3"):
        check_round(round, 500, 5)
