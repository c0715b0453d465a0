"""The books of decisions: when they close and are learned, what is remembered, saving, and a naive model of all."""

from __future__ import annotations

import gc
import json
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from naive_decisions import NaiveDecisions, Refused, same

from neuclust.errors import ConfigError, DataError, StateError
from neuclust.recommender.feedback.decisions import Answer, Decision, Decisions, FeedbackConfig, Lesson, count
from neuclust.recommender.feedback.rewards import slate_value

NAN = math.nan
ITEMS = ("a", "b", "c")


def books(reward: object = "sum", count: int = 1, **settings: Any) -> Decisions:
    """Decisions d1, d2, ... of times 0, 1, ..., each of items a, b and c."""
    config = FeedbackConfig(**{"window": 100.0, "remember": 8, **settings})
    decisions = Decisions(config, 3, slate_value(reward))
    for number in range(1, count + 1):
        decisions.open(Decision(number, f"d{number}", float(number - 1), ITEMS, payload=["rows", number], revision=7))
    return decisions


def said(lessons: list[Lesson] | tuple[Lesson, ...]) -> list[tuple[str, list[float]]]:
    return [(lesson.decision.id, lesson.rewards.tolist()) for lesson in lessons]


def reloaded(decisions: Decisions, **changes: Any) -> Decisions:
    state, arrays = decisions.to_state()
    state = {**json.loads(json.dumps(state, allow_nan=False)), **changes}
    return Decisions.from_state(state, arrays, [each.payload for each in decisions.open_decisions()])


def approx(values: list[float]) -> Any:
    return pytest.approx(values, nan_ok=True)


# --- opening --------------------------------------------------------------------------------------------------


def test_ids_are_used_once() -> None:
    decisions = books(count=2)
    decisions.feedback("d2", {}, now=1.0)
    for id in ("d1", "d2"):
        with pytest.raises(DataError, match="expected an id that was never used"):
            decisions.open(Decision(3, id, 0.0, ITEMS))
    assert [each.id for each in decisions.open_decisions()] == ["d1"]


def test_decisions_are_checked() -> None:
    with pytest.raises(DataError, match="expected slates of at most 3 items, got 4"):
        books().open(Decision(9, "x", 0.0, ("a", "b", "c", "d")))
    wrong: list[tuple[Any, ...]] = [
        (0, "x", 0.0, ITEMS), (True, "x", 0.0, ITEMS), (1, "", 0.0, ITEMS), (1, 5, 0.0, ITEMS),
        (1, "x" * 201, 0.0, ITEMS), (1, "x", NAN, ITEMS), (1, "x", "now", ITEMS), (1, "x", 0.0, ("a", "a")),
        (1, "x", 0.0, (1.5,)), (1, "x", 0.0, (True,)), (1, "x", 0.0, ("",)),
    ]  # fmt: skip
    for arguments in wrong:
        with pytest.raises(DataError, match="expected"):
            Decision(*arguments)
    with pytest.raises(ConfigError, match="slate_size"):
        Decisions(FeedbackConfig(remember=1), 0, slate_value("sum"))


def test_short_and_empty_slates_are_decisions_too() -> None:
    decisions = books()
    decisions.open(Decision(2, "short", 0.0, ("a",)))
    decisions.open(Decision(3, "empty", 0.0, ()))
    assert decisions.feedback("empty", {}, now=0.0) == Answer("learned", ())
    assert decisions.feedback("empty", {}, feedback_id="again", now=0.0).status == "duplicate"
    (lesson,) = decisions.feedback("short", {"a": 1}, now=0.0).lessons
    assert (lesson.rewards.tolist(), lesson.slate_reward) == ([1.0], 1.0)
    assert decisions.feedback("short", {"a": 1}, feedback_id="more", now=0.0).status == "duplicate"


# --- closing and learning -------------------------------------------------------------------------------------


def test_feedback_closes_the_decision_and_is_learned_once() -> None:
    decisions = books()
    answer = decisions.feedback("d1", {"b": 1}, now=5.0)
    assert (answer.status, said(answer.lessons)) == ("learned", [("d1", [0, 1, 0])])
    (lesson,) = answer.lessons
    assert lesson.slate_reward == pytest.approx(1 / 3)
    assert lesson.before is None
    assert (lesson.decision.payload, lesson.decision.revision) == (["rows", 1], 7)
    assert decisions.open_decisions() == []
    assert decisions.due(1000.0) == []


def test_partial_feedback_waits_for_the_window() -> None:
    decisions = books()
    assert decisions.feedback("d1", {"b": 1}, partial=True, now=5.0) == Answer("open", ())
    assert decisions.feedback("d1", {"a": 0.5}, partial=True, now=99.0) == Answer("open", ())
    assert decisions.due(99.9) == []
    assert said(decisions.due(100.0)) == [("d1", [0.5, 1, 0])]
    assert decisions.counts.closed == 1


def test_the_last_word_keeps_what_was_said_before() -> None:
    decisions = books()
    decisions.feedback("d1", {"b": 1}, partial=True, now=5.0)
    assert said(decisions.feedback("d1", {"c": 1}, now=6.0).lessons) == [("d1", [0, 1, 1])]


def test_what_nobody_named_is_zero_or_unseen_at_the_end() -> None:
    decisions = books(count=2, unanswered="unseen")
    decisions.feedback("d1", {"b": 1}, partial=True, now=5.0)
    (lesson,) = decisions.due(200.0)  # nothing is known of d2
    assert lesson.rewards.tolist() == approx([NAN, 1, NAN])
    assert decisions.counts.closed == 2
    closing = books(unanswered="unseen")
    assert said(closing.feedback("d1", {"b": 1}, now=5.0).lessons) == [("d1", [0, 1, 0])]  # a last word is one


def test_decisions_without_feedback_are_settled_in_the_order_of_time() -> None:
    decisions = books(count=3)
    decisions.open(Decision(4, "early", -50.0, ITEMS))
    assert said(decisions.due(101.0)) == [("early", [0, 0, 0]), ("d1", [0, 0, 0]), ("d2", [0, 0, 0])]
    assert [each.id for each in decisions.open_decisions()] == ["d3"]


def test_expire_settles_the_older_ones() -> None:
    decisions = books(count=4)
    decisions.feedback("d2", {"a": 1}, partial=True, now=3.0)
    decisions.open(Decision(9, "early", -1.0, ITEMS))
    assert said(decisions.expire(2.0, now=3.0)) == [("early", [0, 0, 0]), ("d1", [0, 0, 0]), ("d2", [1, 0, 0])]
    assert decisions.expire(0, now=3.0, unanswered="unseen") == []  # nothing is known of them
    assert decisions.counts.closed == 5


def test_expire_may_leave_the_rest_unseen() -> None:
    decisions = books()
    decisions.feedback("d1", {"a": 1}, partial=True, now=3.0)
    (lesson,) = decisions.expire(0, now=3.0, unanswered="unseen")
    assert lesson.rewards.tolist() == approx([1, NAN, NAN])


@pytest.mark.parametrize("older_than", [-1, NAN, "1", None])
def test_expire_is_checked_before_anything_is_settled(older_than: Any) -> None:
    decisions = books()
    with pytest.raises(DataError, match="older_than: expected a number from 0"):
        decisions.expire(older_than, now=1000.0)
    wrong: Any = "zero"
    with pytest.raises(ConfigError, match="unanswered: expected one of zeros, unseen, got 'zero'; did you mean zeros"):
        decisions.expire(0, now=1000.0, unanswered=wrong)
    assert decisions.counts.open == 1


def test_learning_comes_before_the_window_where_it_is_asked_for() -> None:
    decisions = books(learn_after=10.0)
    decisions.feedback("d1", {"b": 1}, partial=True, now=5.0)
    assert decisions.due(9.0) == []
    assert said(decisions.due(10.0)) == [("d1", [0, 1, 0])]
    assert decisions.counts.open == 1
    answer = decisions.feedback("d1", {"c": 1}, partial=True, now=50.0)
    (lesson,) = answer.lessons
    assert (answer.status, lesson.rewards.tolist()) == ("open", [0, 1, 1])
    assert lesson.before is not None
    assert lesson.before.tolist() == [0, 1, 0]
    assert (lesson.slate_before, lesson.slate_reward) == approx([1 / 3, 2 / 3])
    assert decisions.due(100.0) == []  # nothing new
    assert (decisions.counts.closed, decisions.counts.learned, decisions.counts.revised) == (1, 1, 1)


def test_a_lesson_given_away_may_be_changed() -> None:
    decisions = books(learn_after=10.0)
    (lesson,) = decisions.due(10.0)
    lesson.rewards[:] = 9.0
    (revision,) = decisions.feedback("d1", {"a": 1}, now=11.0).lessons
    assert revision.before is not None
    assert revision.before.tolist() == [0, 0, 0]


def test_a_closing_message_that_says_nothing_new_gives_no_lesson() -> None:
    decisions = books(learn_after=10.0)
    decisions.due(10.0)
    assert decisions.feedback("d1", {}, now=20.0) == Answer("learned", ())


def test_a_learn_after_beyond_the_window_is_the_window() -> None:
    assert said(books(learn_after=1000.0).due(100.0)) == [("d1", [0, 0, 0])]


def test_unseen_is_learned_for_the_first_time_when_something_is_said() -> None:
    decisions = books(learn_after=10.0, unanswered="unseen")
    assert decisions.due(10.0) == []
    (lesson,) = decisions.feedback("d1", {"a": 1}, partial=True, now=20.0).lessons
    assert (lesson.rewards.tolist(), lesson.before) == (approx([1, NAN, NAN]), None)


def test_values_after_the_window_are_late_and_not_learned() -> None:
    decisions = books()
    decisions.due(100.0)
    assert decisions.feedback("d1", {"a": 1}, now=101.0) == Answer("late")
    assert decisions.feedback("d1", {"a": 1}, now=102.0) == Answer("duplicate")
    assert decisions.feedback("d1", {}, now=103.0) == Answer("duplicate")  # as it was settled
    count(decisions, late=1)
    assert (decisions.counts.late, decisions.counts.duplicates) == (2, 2)


def test_a_window_ends_also_where_nobody_asked_what_is_due() -> None:
    decisions = books()
    decisions.feedback("d1", {"b": 1}, partial=True, now=1.0)
    answer = decisions.feedback("d1", {"a": 1}, now=100.0)
    assert (answer.status, said(answer.lessons)) == ("late", [("d1", [0, 1, 0])])
    assert decisions.due(1000.0) == []


def test_a_clock_that_goes_back_closes_nothing() -> None:
    decisions = books(count=2)
    decisions.due(50.0)
    assert decisions.due(-1000.0) == []
    assert decisions.feedback("d1", {"a": 1}, now=-5.0).status == "learned"
    early = books(learn_after=10.0)
    early.due(10.0)
    (revision,) = early.feedback("d1", {"a": 1}, partial=True, now=5.0).lessons  # it was learned before
    assert revision.before is not None


@pytest.mark.parametrize(
    ("combine", "expected"), [("max", [0.5, 0.25, 0]), ("last", [0.25, 0.25, 0]), ("sum", [1, 0.25, 0])]
)
def test_values_of_one_item_combine(combine: str, expected: list[float]) -> None:
    decisions = books(combine=combine)
    for number, value in enumerate((0.25, 0.5, 0.25)):
        decisions.feedback("d1", {"a": value}, partial=True, feedback_id=number, now=1.0)
    assert said(decisions.feedback("d1", {"b": 0.25}, now=2.0).lessons) == [("d1", expected)]


def test_a_sum_may_not_leave_the_range() -> None:
    decisions = books(combine="sum")
    decisions.feedback("d1", {"a": 0.7}, partial=True, now=1.0)
    with pytest.raises(
        DataError, match=r"item 'a': expected values that sum to .* 0 to 1, got 0\.5 after 0\.7; declare"
    ):
        decisions.feedback("d1", {"b": 1, "a": 0.5}, now=1.0)
    decisions.feedback("d1", {"a": 0.2}, partial=True, now=1.0)
    (lesson,) = decisions.feedback("d1", {"a": 0.1 + 1e-12}, now=1.0).lessons  # rounding does not count
    assert lesson.rewards.tolist() == [1, 0, 0]


# --- repeats --------------------------------------------------------------------------------------------------


def test_a_repeat_is_ignored() -> None:
    decisions = books(combine="sum")
    for _ in range(3):
        status = decisions.feedback("d1", {"a": 0.25, "b": 0.5}, partial=True, now=1.0).status
    assert status == "duplicate"
    assert decisions.feedback("d1", {"b": 0.5, "a": 0.25}, shown=None, partial=True, now=1.0).status == "duplicate"
    assert said(decisions.feedback("d1", {}, now=1.0).lessons) == [("d1", [0.25, 0.5, 0])]
    assert decisions.feedback("d1", {"a": 0.25, "b": 0.5}, partial=True, now=1.0).status == "duplicate"
    assert decisions.feedback("d1", {}, now=1.0).status == "duplicate"
    assert decisions.counts.duplicates == 5


def test_one_feedback_id_is_one_message() -> None:
    decisions = books(count=2)
    decisions.feedback("d1", {"a": 1}, partial=True, feedback_id="f", now=1.0)
    match = r"same id, which was \{'a': 1\}, partial=True for 'd1', got \{'b': 1\} for 'd1'; give a new"
    with pytest.raises(DataError, match=match):
        decisions.feedback("d1", {"b": 1}, feedback_id="f", now=1.0)
    with pytest.raises(DataError, match="which was"):  # also for another decision
        decisions.feedback("d2", {"a": 1}, partial=True, feedback_id="f", now=1.0)
    with pytest.raises(DataError, match="no longer at hand"):
        reloaded(decisions).feedback("d1", {"b": 1}, feedback_id="f", now=1.0)
    assert decisions.feedback("d1", {"a": 1}, partial=True, feedback_id="f", now=1.0).status == "duplicate"


def test_the_same_values_under_another_id_are_a_duplicate() -> None:
    decisions = books()
    decisions.feedback("d1", {"a": 1}, partial=True, now=1.0)
    decisions.feedback("d1", {"b": 1}, now=1.0)
    sent: list[tuple[dict[str | int, float], bool]] = [
        ({"b": 1}, False), ({"a": 1, "b": 1, "c": 0}, False), ({"a": 1}, True), ({"c": 0}, True),
    ]  # fmt: skip
    for items, partial in sent:
        answer = decisions.feedback("d1", items, partial=partial, feedback_id=f"{items}", now=1.0)
        assert answer == Answer("duplicate")


def test_other_values_for_a_closed_decision_are_refused_with_both() -> None:
    decisions = books()
    decisions.feedback("d1", {"b": 0.5}, slate=1.5, now=1.0)
    match = r"'d1': expected no other values, as it was closed with slot 1: 0, slot 2: 0.5, slot 3: 0; slate: 1.5, got "
    others: list[dict[str | int, float]] = [{"b": 1}, {}, {"a": 1}, {"b": 0.5, "c": 0.5}]
    for items in others:
        with pytest.raises(DataError, match=match):
            decisions.feedback("d1", items, now=1000.0)
    with pytest.raises(DataError, match=match):
        decisions.feedback("d1", {"b": 0.5}, slate=1.0, now=1.0)
    with pytest.raises(DataError, match=match):
        decisions.feedback("d1", {"b": 0.5}, shown=2, now=1.0)
    assert decisions.counts.refused == 6
    unseen = books()
    unseen.feedback("d1", {"a": 1}, shown=2, now=1.0)
    assert unseen.feedback("d1", {}, shown=2, partial=True, now=1.0).status == "duplicate"
    with pytest.raises(DataError, match="slot 2: 0, slot 3: nan, got"):
        unseen.feedback("d1", {}, shown=3, partial=True, now=1.0)
    assert decisions.feedback("d1", {"b": 0.5}, feedback_id=4, now=1.0).status == "duplicate"


def test_messages_of_an_open_decision_are_known_however_many_came_since() -> None:
    decisions = books(count=12, combine="sum", remember=2)
    decisions.feedback("d1", {"a": 0.25}, partial=True, now=1.0)
    for number in range(2, 12):
        decisions.feedback(f"d{number}", {"a": 1}, now=1.0)
    for each in (decisions, reloaded(decisions)):
        assert each.feedback("d1", {"a": 0.25}, partial=True, now=1.0).status == "duplicate"


def test_one_decision_takes_a_bounded_number_of_messages() -> None:
    decisions = books()
    for number in range(1000):
        decisions.feedback("d1", {"a": 1}, partial=True, feedback_id=number, now=1.0)
    with pytest.raises(DataError, match="expected at most 1,000 messages for one decision"):
        decisions.feedback("d1", {"a": 1}, partial=True, feedback_id=1000, now=1.0)


# --- remembering ----------------------------------------------------------------------------------------------


def test_older_decisions_are_forgotten() -> None:
    decisions = books(count=5, remember=3)
    for number in range(1, 6):
        decisions.feedback(f"d{number}", {"a": 1}, now=1.0)
    for id in ("d1", "d2"):
        with pytest.raises(DataError, match="unknown decision"):
            decisions.feedback(id, {"a": 1}, feedback_id=f"{id} again", now=1.0)
    for id in ("d3", "d4", "d5"):
        assert decisions.feedback(id, {"a": 1}, feedback_id=f"{id} again", now=1.0).status == "duplicate"


def test_an_id_may_come_again_when_it_is_forgotten() -> None:
    decisions = books(count=2, remember=1)
    decisions.feedback("d1", {}, now=0.0)
    decisions.feedback("d2", {}, now=0.0)
    decisions.open(Decision(3, "d1", 50.0, ITEMS))
    assert decisions.due(149.0) == []
    assert said(decisions.due(150.0)) == [("d1", [0, 0, 0])]


def play(decisions: Decisions, first: int, last: int) -> None:
    """Requests of one second each: half closed by clicks, some partial, the rest left to the window."""
    for number in range(first, last):
        now = float(number)
        decisions.due(now)
        decisions.open(Decision(number, f"d{number}", now, (f"i{number}", number, "c"), payload=[number]))
        if number % 2:
            decisions.feedback(f"d{number}", {"c": 1}, now=now)
        elif number % 3:
            decisions.feedback(f"d{number}", {number: 0.5}, partial=True, now=now)
            decisions.feedback(f"d{number}", {number: 0.5}, partial=True, now=now)


def test_memory_and_saves_stay_flat() -> None:
    decisions = books(count=0, remember=500, window=50.0, learn_after=20.0)
    play(decisions, 1, 1_501)
    gc.collect()
    objects, size = len(gc.get_objects()), sum(array.nbytes for array in decisions.to_state()[1].values())
    play(decisions, 1_501, 30_001)
    gc.collect()
    assert len(gc.get_objects()) - objects < 200  # fewer: what other tests left behind went meanwhile
    assert abs(sum(array.nbytes for array in decisions.to_state()[1].values()) - size) < 2_000
    assert len(json.dumps(decisions.to_state()[0])) < 1_000
    assert decisions.counts.open <= 25


def test_deadlines_of_closed_decisions_are_cleared_while_the_clock_stands() -> None:
    decisions = books(count=0)
    for number in range(1, 5_001):
        decisions.open(Decision(number, f"d{number}", 0.0, ITEMS))
        decisions.feedback(f"d{number}", {}, now=0.0)
    assert len(decisions._open._deadlines) <= 100


# --- saving ---------------------------------------------------------------------------------------------------


def state_of(decisions: Decisions) -> Any:
    state, arrays = decisions.to_state()
    return state, {name: (array.dtype.str, array.shape, array.tobytes()) for name, array in arrays.items()}


def test_a_save_is_the_same_after_loading() -> None:
    decisions = books(count=6, learn_after=10.0, remember=3)
    decisions.feedback("d1", {"a": 1}, partial=True, shown=2, slate=0.5, feedback_id="f", now=1.0)
    decisions.due(10.5)
    for number in (2, 3, 4, 5):
        decisions.feedback(f"d{number}", {"b": 1}, now=11.0)
    again = reloaded(decisions)
    assert state_of(again) == state_of(decisions)
    assert again.counts == decisions.counts
    assert [each.payload for each in again.open_decisions()] == [["rows", 1], ["rows", 6]]
    for both in (decisions, again):
        assert both.feedback("d1", {"a": 1}, partial=True, shown=2, slate=0.5, feedback_id="f", now=12.0).lessons == ()
        (revision,) = both.feedback("d1", {"b": 1}, now=12.0).lessons
        assert revision.before is not None
        assert revision.before.tolist() == approx([1, 0, NAN])


def test_functions_are_given_again() -> None:
    decisions = books(max)
    state, arrays = decisions.to_state()
    assert state["reward"] == "function"
    with pytest.raises(StateError, match="give it again"):
        Decisions.from_state(state, arrays, [None])
    again = Decisions.from_state(state, arrays, [None], slate_value(max))
    assert again.feedback("d1", {"a": 0.5}, now=0.0).lessons[0].slate_reward == 0.5
    with pytest.raises(StateError, match="reward: expected 'function', as it was saved, got 'sum'"):
        Decisions.from_state(state, arrays, [None], slate_value("sum"))


CHANGES: list[dict[str, Any]] = [
    {"slate_size": 4}, {"slate_size": 0}, {"slate_size": 2**80}, {"config": {}}, {"config": {"window": "x"}},
    {"config": 3}, {"config": {"remember": 10_000_000}}, {"reward": "mean"}, {"reward": None}, {"counts": {}},
    {"counts": None}, {"closed": -1}, {"closed": "3"}, {"messages": 1.5}, {"messages": None},
]  # fmt: skip


@pytest.mark.parametrize("change", CHANGES, ids=str)
def test_damaged_states_are_refused(change: dict[str, Any]) -> None:
    decisions = books()
    with pytest.raises(StateError):
        reloaded(decisions, **change)
    state, arrays = decisions.to_state()
    del state[next(iter(change))]
    with pytest.raises(StateError, match="expected an entry"):
        Decisions.from_state(state, arrays, [None])


def test_damaged_arrays_are_refused() -> None:
    decisions = books(count=2)
    decisions.feedback("d1", {"a": 1}, now=0.0)
    state, arrays = decisions.to_state()
    for name, array in arrays.items():
        damaged: list[dict[str, Any]] = [
            {key: value for key, value in arrays.items() if key != name},
            {**arrays, name: array[:-1]},
            {**arrays, name: array.astype(np.float32)},
            {**arrays, name: array.tolist()},
        ]
        for each in damaged:
            with pytest.raises(StateError):
                Decisions.from_state(state, each, [None])
    infinite = arrays["closed.values"].copy()
    infinite[0, 0] = math.inf
    marks = arrays["closed.shown"].copy()
    marks[0] = (1, -1, 1)
    for name, array in (("closed.values", infinite), ("closed.shown", marks), ("closed.shown", marks + 2)):
        with pytest.raises(StateError, match="closed decisions"):
            Decisions.from_state(state, {**arrays, name: array}, [None])
    with pytest.raises(StateError, match="expected 2, one for each payload"):
        Decisions.from_state(state, arrays, [None, None])


OPEN: list[Any] = [
    {"number": 0}, {"id": 3}, {"id": "closed"}, {"time": None}, {"time": "1e999"}, {"items": "abc"}, {"shown": [5]},
    {"items": ["a", "a", "b"]}, {"items": ["a", "b"]}, {"values": [1, 2]}, {"values": ["x", None, None]}, {"shown": 3},
    {"slate": "x"}, {"learned": [1]}, {"messages": [[1, 2]]}, {"messages": 3}, {"deadline": None}, {"revision": -1},
    {"revision": "1"},
]  # fmt: skip


@pytest.mark.parametrize("change", OPEN, ids=str)
def test_damaged_open_decisions_are_refused(change: dict[str, Any]) -> None:
    decisions = books()
    decisions.open(Decision(2, "closed", 0.0, ITEMS))
    decisions.feedback("closed", {}, now=0.0)
    state, arrays = decisions.to_state()
    (entry,) = json.loads(arrays["open"].tobytes())
    missing = {key: value for key, value in entry.items() if key not in change}
    for text in (json.dumps([{**entry, **change}]), json.dumps([missing]), "[3]", "{}", "[", "[" * 100_000, "\udcff"):
        damaged = np.frombuffer(text.replace('"1e999"', "1e999").encode("utf-8", "surrogateescape"), dtype=np.uint8)
        with pytest.raises(StateError, match="open decisions"):
            Decisions.from_state(state, {**arrays, "open": damaged}, [None])
    twice = np.frombuffer(json.dumps([entry, entry]).encode(), dtype=np.uint8)
    with pytest.raises(StateError, match="every id once"):
        Decisions.from_state(state, {**arrays, "open": twice}, [None, None])


# --- against a naive model ------------------------------------------------------------------------------------

VALUES = st.sampled_from([0.0, 0.25, 0.5, 1.0] * 4 + [2.0])
MESSAGES = st.fixed_dictionaries(
    {
        "items": st.dictionaries(
            st.sampled_from("abc" * 5 + "d"), st.sampled_from([0.0, 0.25, 0.5, 1.0] * 4 + [2.0]), max_size=3
        ),
        "slate": st.sampled_from([None] * 6 + [0.5, 1.5, 4.0]),
        "shown": st.none() | st.lists(st.sampled_from("abc"), max_size=3, unique=True),
        "feedback_id": st.sampled_from([None, None, None, "f", "g"]),
        "partial": st.booleans(),
    }
)
SETTINGS = st.fixed_dictionaries(
    {
        "learn_after": st.sampled_from([None, 0.0, 4.0, 50.0]),
        "combine": st.sampled_from(["max", "last", "sum"]),
        "unanswered": st.sampled_from(["zeros", "unseen"]),
        "remember": st.sampled_from([1, 2, 5]),
    }
)


class Compared(RuleBasedStateMachine):
    """Random calls give the answers, lessons and counts of the naive model, with saves and loads in between."""

    @initialize(chosen=SETTINGS)
    def begin(self, chosen: dict[str, Any]) -> None:
        config = FeedbackConfig(window=10.0, **chosen)
        self.books, self.naive = Decisions(config, 3, slate_value("sum")), NaiveDecisions(config, 3)
        self.number, self.now, self.sent = 0, 0.0, list[tuple[str, dict[str, Any]]]()

    def compare(self, lessons: Any, expected: list[Any]) -> None:
        assert len(lessons) == len(expected)
        for lesson, (id, rewards, slate, before) in zip(lessons, expected, strict=True):
            assert lesson.decision.id == id
            assert lesson.decision.payload == f"payload of {id}"
            assert same(lesson.rewards, rewards)
            assert [lesson.slate_reward] == approx([slate])
            assert (lesson.before is None) == (before is None)
            if before is not None:
                assert same(lesson.before, before[0])
                assert [lesson.slate_before] == approx([before[1]])

    @rule(size=st.integers(1, 3), ago=st.sampled_from([0.0, 0.0, 3.0, 30.0]))
    def open(self, size: int, ago: float) -> None:
        self.number += 1
        id, items = f"d{self.number}", ITEMS[:size]
        self.books.open(Decision(self.number, id, self.now - ago, items, f"payload of {id}"))
        self.naive.open(self.number, id, self.now - ago, items)

    def send(self, id: str, message: dict[str, Any]) -> None:
        details: Any = {name: value for name, value in message.items() if name != "items"}
        try:
            expected = self.naive.feedback(id, message, self.now)
        except Refused:
            with pytest.raises(DataError):
                self.books.feedback(id, message["items"], now=self.now, **details)
            return
        answer = self.books.feedback(id, message["items"], now=self.now, **details)
        assert answer.status == expected[0]
        self.compare(answer.lessons, expected[1])

    @rule(message=MESSAGES, back=st.integers(0, 4))
    def feedback(self, message: dict[str, Any], back: int) -> None:
        id = f"d{self.number - back}"
        self.sent.append((id, message))
        self.send(id, message)

    @precondition(lambda self: self.sent)
    @rule(data=st.data(), change=st.sampled_from([None, None, "id", "partial"]))
    def repeat(self, data: st.DataObject, change: str | None) -> None:
        id, message = data.draw(st.sampled_from(self.sent[-6:]))
        if change == "id":
            message = {**message, "feedback_id": "another"}
        elif change == "partial":
            message = {**message, "partial": not message["partial"]}
        self.send(id, message)

    @rule(step=st.sampled_from([-3.0, 0.0, 1.0, 4.0, 12.0]), asked=st.booleans())
    def pass_time(self, step: float, asked: bool) -> None:
        self.now += step
        if asked:
            self.compare(self.books.due(self.now), self.naive.due(self.now))

    @rule(older_than=st.sampled_from([0.0, 1.0, 5.0]), unanswered=st.sampled_from([None, "zeros", "unseen"]))
    def expire(self, older_than: float, unanswered: Any) -> None:
        self.compare(
            self.books.expire(older_than, self.now, unanswered), self.naive.expire(older_than, self.now, unanswered)
        )

    @rule()
    def save_and_load(self) -> None:
        self.books = reloaded(self.books)

    @invariant()
    def agree(self) -> None:
        if hasattr(self, "books"):
            counts = self.books.counts
            assert {name: getattr(counts, name) for name in self.naive.counts} == self.naive.counts
            assert [each.id for each in self.books.open_decisions()] == [each.id for each in self.naive.opened()]


TestCompared = Compared.TestCase
TestCompared.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
