"""Messages: what is read, what is refused and with which sentence, and that a refusal changes nothing."""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neuclust.errors import ConfigError, DataError, NeuclustError
from neuclust.recommender.feedback.decisions import Decision, Decisions
from neuclust.recommender.feedback.messages import FeedbackConfig
from neuclust.recommender.feedback.rewards import slate_value

ITEMS = ("red", "green", 7, "8", 8)


def kind(value: object) -> str:
    return type(value).__name__


def books(reward: object = "sum", items: tuple[str | int, ...] = ITEMS, **settings: Any) -> Decisions:
    """One open decision, `one`, of time 0."""
    decisions = Decisions(FeedbackConfig(**{"remember": 4, **settings}), max(len(items), 1), slate_value(reward))
    decisions.open(Decision(1, "one", 0.0, items))
    return decisions


def rewards(decisions: Decisions, items: Mapping[Any, Any], **details: Any) -> list[float]:
    (lesson,) = decisions.feedback("one", items, now=1.0, **details).lessons
    return list(lesson.rewards)


def as_saved(decisions: Decisions) -> tuple[dict[str, Any], dict[str, bytes]]:
    state, arrays = decisions.to_state()
    state["counts"]["refused"] = None
    return state, {name: array.tobytes() for name, array in arrays.items()}


def refused(decisions: Decisions, items: Any, match: str, **details: Any) -> None:
    """The message is refused by a sentence and nothing but the count of refusals changes."""
    before, count = as_saved(decisions), decisions.counts.refused
    with pytest.raises(DataError, match=match) as caught:
        decisions.feedback(details.pop("id", "one"), items, **{"now": 1.0, **details})
    assert len(str(caught.value)) < 1500
    assert as_saved(decisions) == before
    assert decisions.counts.refused == count + 1


# --- settings -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "settings",
    [
        {"window": 0}, {"window": -1}, {"window": math.inf}, {"learn_after": -1}, {"combine": "mean"}, {"remember": 0},
        {"unanswered": "none"}, {"low": 1}, {"low": 2, "high": 1}, {"high": math.nan}, {"high": 1e60},
    ],
)  # fmt: skip
def test_settings_are_checked(settings: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match="high" if "low" in settings else next(iter(settings))):
        FeedbackConfig(**settings)


def test_an_empty_range_names_the_field() -> None:
    with pytest.raises(ConfigError, match="high: expected a range with low below high, got 2 and 2"):
        FeedbackConfig(low=2, high=2)


# --- values ---------------------------------------------------------------------------------------------------


def test_items_not_named_count_zero() -> None:
    assert rewards(books(), {"green": 1, 8: 0.5}) == [0, 1, 0, 0, 0.5]
    assert rewards(books(), {}) == [0] * 5


def test_a_word_is_not_a_number() -> None:
    assert rewards(books(), {"8": 1}) == [0, 0, 0, 1, 0]
    assert rewards(books(), {np.int64(7): 1, np.str_("red"): 1}) == [1, 0, 1, 0, 0]


@pytest.mark.parametrize("value", [True, np.True_, 1, 1.0, np.float32(1), np.int8(1), Fraction(2, 2)])
def test_real_numbers_and_bools_are_values(value: Any) -> None:
    assert rewards(books(), {"red": value}) == [1, 0, 0, 0, 0]


@pytest.mark.parametrize(
    "value", [math.nan, math.inf, None, "1", 1.01, -0.01, 10**400, 1j, [1], np.array(1.0), b"1", object(), {}]
)
def test_other_values_are_refused(value: Any) -> None:
    for details in ({}, {"partial": True}):
        refused(
            books(), {"green": 1, "red": value}, "feedback for item 'red': expected a number from 0 to 1", **details
        )


def test_a_declared_range_becomes_the_unit_range() -> None:
    assert rewards(books(low=-10, high=30), {"red": 30, "green": -10}) == [1, 0, 0.25, 0.25, 0.25]
    assert rewards(books(low=1, high=5), {"red": 5, "green": 3}) == [1, 0.5, 0, 0, 0]  # 0 lies outside: 1 is nearest
    refused(books(low=1, high=5), {"red": 0}, "expected a number from 1 to 5, got 0; .* declare another range")


@pytest.mark.parametrize("items", [None, "red", ["red"], [("red", 1)], 3, {"red"}])
def test_items_come_as_a_mapping(items: Any) -> None:
    refused(books(), items, "expected a mapping from items to values")


@pytest.mark.parametrize(
    "item", ["blue", 9, True, 7.0, None, (1, 2), "", "07", 10**5000, "x" * 10_000, "🙂", "\ud800"], ids=kind
)
def test_items_must_be_of_the_slate(item: Any) -> None:
    refused(books(), {item: 1}, r"of this decision's slate of 5 \('red', 'green', 7, '8', 8\), got")
    closed = books()
    closed.feedback("one", {}, now=0.0)
    refused(closed, {item: 1}, "expected items of this decision's slate of 5, got")


def test_at_most_five_items_are_named() -> None:
    many = tuple(f"item-{number}" for number in range(8))
    refused(books(items=many), {"x": 1}, r"slate of 8 \('item-0', .*'item-4' and 3 more\)")


# --- shown ----------------------------------------------------------------------------------------------------


def test_items_not_shown_are_unseen() -> None:
    nan = math.nan
    assert rewards(books(), {"red": 1}, shown=3) == pytest.approx([1, 0, 0, nan, nan], nan_ok=True)
    assert rewards(books(), {"8": 1}, shown={"8", 7}) == pytest.approx([nan, nan, 0, 1, nan], nan_ok=True)
    assert rewards(books(), {}, shown=np.array([7, 8])) == pytest.approx([nan, nan, 0, nan, 0], nan_ok=True)
    assert books().feedback("one", {}, shown=0, now=1.0).lessons == ()  # nothing is known of it


def test_shown_adds_up_over_messages() -> None:
    decisions = books()
    decisions.feedback("one", {"red": 1}, shown=1, partial=True, now=0.0)
    refused(decisions, {"green": 1}, "item 'green': expected values of items that were shown, it was not")
    assert decisions.feedback("one", {"green": 1}, shown=["green"], partial=True, now=0.0).status == "open"
    assert rewards(decisions, {}) == pytest.approx([1, 1, math.nan, math.nan, math.nan], nan_ok=True)


def test_a_value_for_an_item_not_shown_is_refused() -> None:
    refused(books(), {"green": 0}, "item 'green': expected values of items that were shown", shown=1)
    spoken = books()
    spoken.feedback("one", {"green": 1}, partial=True, now=0.0)
    refused(spoken, {}, "item 'green': expected values of items that were shown", shown=1)
    closed = books()
    closed.feedback("one", {"red": 1}, shown=1, now=0.0)
    refused(closed, {"green": 1}, "item in slot 2: expected values of items that were shown")
    refused(closed, {"green": 1}, "item in slot 2: expected values of items that were shown", shown=1)
    late = books()
    late.feedback("one", {"red": 1}, shown=1, partial=True, now=0.0)
    late.due(3600.0)
    refused(late, {"green": 1}, "item in slot 2: expected values of items that were shown")


@pytest.mark.parametrize("shown", [-1, 6, True, 1.0, "red", b"red", {"red": 1}, object(), math.nan])
def test_shown_is_a_number_of_slots_or_items(shown: Any) -> None:
    refused(books(), {}, "shown: expected a number of leading slots from 0 to 5, or a list of items", shown=shown)


@pytest.mark.parametrize("shown", [["blue"], [["red"]], [None], [True], {9}])
def test_shown_items_must_be_of_the_slate(shown: Any) -> None:
    refused(books(), {}, "expected items of this decision's slate", shown=shown)


# --- the slate's value ----------------------------------------------------------------------------------------


def test_the_slate_reward_is_computed_or_stated() -> None:
    (lesson,) = books(low=0, high=10).feedback("one", {"red": 5}, now=0.0).lessons
    assert lesson.slate_reward == pytest.approx(0.1)
    (lesson,) = books(low=0, high=10).feedback("one", {"red": 5}, slate=25, now=0.0).lessons
    assert lesson.slate_reward == pytest.approx(0.5)  # 5 per slot
    (lesson,) = books("any").feedback("one", {}, slate=True, now=0.0).lessons
    assert lesson.slate_reward == 1
    (lesson,) = books().feedback("one", {}, slate=1, shown=0, now=0.0).lessons  # items unseen, the slate known
    assert lesson.slate_reward == pytest.approx(0.2)
    assert np.isnan(lesson.rewards).all()


def test_the_last_stated_value_stands() -> None:
    decisions = books("any")
    decisions.feedback("one", {}, slate=1, partial=True, now=0.0)
    decisions.feedback("one", {"red": 1}, slate=0.25, partial=True, now=0.0)
    (lesson,) = decisions.feedback("one", {}, now=0.0).lessons
    assert lesson.slate_reward == 0.25


@pytest.mark.parametrize("slate", [5.01, -0.1, math.nan, "1", [1], 10**400])
def test_a_stated_value_must_be_possible(slate: Any) -> None:
    refused(books(), {}, r"slate \(what it is worth by sum\): expected a number from 0 to 5", slate=slate)


def test_a_function_that_fails_refuses_the_message() -> None:
    def strict(values: list[float]) -> float:
        if values[0] == 1:
            raise ValueError("no red")
        return 0.5

    decisions = books(strict)
    refused(decisions, {"red": 1}, "expected the function to give one number for .* got ValueError.'no red'")
    decisions.feedback("one", {"red": 1}, partial=True, now=0.0)
    (lesson,) = decisions.due(3600.0)  # time closes it all the same
    assert math.isnan(lesson.slate_reward)
    assert "got ValueError('no red')" in lesson.problem
    with pytest.raises(DataError, match="IndexError"):
        books(lambda values: values[9])


# --- ids ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("id", ["two", "", 1, None, ["one"], True, "x" * 10_000, b"one"], ids=kind)
def test_unknown_decisions_are_refused(id: Any) -> None:
    refused(books(), {}, "unknown decision .*hand back the id", id=id)


@pytest.mark.parametrize("feedback_id", ["", "x" * 1001, 1.5, True, ["a"], b"a", 10**5000], ids=kind)
def test_feedback_ids_are_words_or_numbers(feedback_id: Any) -> None:
    refused(books(), {}, "feedback_id: expected a word of 1 to 1,000 characters", feedback_id=feedback_id)


@pytest.mark.parametrize("partial", [None, 1, "yes"])
def test_partial_is_a_bool(partial: Any) -> None:
    refused(books(), {}, "partial: expected true or false", partial=partial)


def test_unknown_arguments_are_a_mistake_of_the_caller() -> None:
    details: dict[str, Any] = {"partiall": True, "click": 1}
    with pytest.raises(TypeError, match="unexpected arguments click, partiall"):
        books().feedback("one", {}, now=0.0, **details)


@pytest.mark.parametrize("now", [math.nan, math.inf, "1", None, True, 10**400])
def test_the_clock_gives_numbers(now: Any) -> None:
    refused(books(), {}, "clock: expected seconds as a finite number", now=now)
    with pytest.raises(DataError, match="clock"):
        books().due(now)


VALUES = (
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=5) | st.lists(st.integers(), max_size=2)
)
NAMES = st.sampled_from([*ITEMS, "x", 9]) | st.text(max_size=3) | st.integers() | st.booleans() | st.none()


@given(
    st.dictionaries(NAMES, VALUES, max_size=3) | VALUES,
    st.fixed_dictionaries(
        {},
        optional={
            "slate": VALUES, "shown": VALUES | st.lists(NAMES, max_size=3), "feedback_id": VALUES, "partial": VALUES,
            "now": VALUES,
        },
    ),
)  # fmt: skip
def test_whatever_comes_is_taken_or_refused_whole(items: Any, details: dict[str, Any]) -> None:
    decisions = books(remember=3)
    before = as_saved(decisions)
    try:
        answer = decisions.feedback("one", items, **{"now": 1.0, **details})
    except NeuclustError:
        assert as_saved(decisions) == before
        return
    for lesson in answer.lessons:
        assert ((lesson.rewards >= 0) & (lesson.rewards <= 1) | np.isnan(lesson.rewards)).all()
        assert math.isnan(lesson.slate_reward) or 0 <= lesson.slate_reward <= 1
