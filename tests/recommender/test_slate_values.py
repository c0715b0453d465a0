"""What a slate is worth: sums, thresholds and functions, with unseen items and other ranges."""

from __future__ import annotations

import contextlib
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neuclust.errors import ConfigError, DataError, NeuclustError, StateError, brief
from neuclust.recommender.feedback.rewards import OwnValue, Threshold, nothing, scaled, slate_value

NAN = math.nan


def worth(spec: object, values: list[float], low: float = 0.0, high: float = 1.0) -> float:
    return slate_value(spec).value(np.array(values, dtype=np.float64), low, high)


def test_a_sum_is_learned_per_slot() -> None:
    assert worth("sum", [1, 0, 0.5, 0]) == 0.375
    assert worth("sum", [10, -10, 0], low=-10, high=10) == pytest.approx(0.5)
    assert math.isnan(worth("sum", [1, NAN]))


def test_any_is_known_as_soon_as_one_is_rewarded() -> None:
    assert worth("any", [0, 0, 0.1]) == 1
    assert worth("any", [0, 0, 0]) == 0
    assert worth("any", [NAN, 1, NAN]) == 1
    assert math.isnan(worth("any", [NAN, 0, 0]))


def test_a_threshold_counts_rewarded_items() -> None:
    assert worth("threshold:0.8", [1, 1, 1, 1, 0]) == 1
    assert worth("threshold:0.8", [1, 1, 1, 0, 0]) == 0
    assert worth("threshold:0.8", [1, 1, 0, 0, NAN]) == 0  # the unseen one could not change it
    assert math.isnan(worth("threshold:0.8", [1, 1, 1, 0, NAN]))
    assert worth("threshold:0.8", [1, 1, 1, 1, NAN]) == 1
    assert worth("threshold:1", [1, 1]) == 1


@given(st.integers(1, 100), st.integers(1, 100))
def test_the_number_needed_is_exact(hundredths: int, size: int) -> None:
    needed = math.ceil(Fraction(hundredths, 100) * size)
    rule = f"threshold:{hundredths / 100}"
    assert worth(rule, [1.0] * needed + [0.0] * (size - needed)) == 1
    assert worth(rule, [1.0] * (needed - 1) + [0.0] * (size - needed + 1)) == 0


def test_rewarded_is_more_than_an_item_nobody_named() -> None:
    assert worth("any", [0, -0.5], low=-1, high=1) == 0
    assert worth("any", [1, 1], low=1, high=5) == 0
    assert worth("any", [1, 2], low=1, high=5) == 1
    assert (nothing(-1, 1), nothing(1, 5), nothing(-5, -1)) == (0, 1, -1)


def test_a_function_sees_the_users_units() -> None:
    seen: list[list[float]] = []

    def best(values: list[float]) -> float:
        seen.append(values)
        return max(values)

    assert worth(best, [2, 5, 3], low=0, high=10) == 5
    assert seen == [[2.0, 5.0, 3.0]]
    assert math.isnan(worth(best, [2, NAN]))
    assert len(seen) == 1


@pytest.mark.parametrize("result", [NAN, math.inf, "1", None, [1.0], 1e60, 10**400, 1j])
def test_a_function_must_give_one_finite_number(result: object) -> None:
    def broken(values: list[float]) -> object:
        return result

    with pytest.raises(DataError, match="expected the function to give one number for"):
        worth(broken, [1, 0])


def test_an_exception_in_a_function_is_a_sentence() -> None:
    with pytest.raises(DataError, match=r"for \[1\.0, 0\.0\], got ZeroDivisionError.*mend the function"):
        worth(lambda values: 1 / values[1], [1, 0])
    assert worth(lambda values: values[0] > 0, [1, 0]) == 1


@pytest.mark.parametrize("rule", ["sum", "any", "threshold:0.5", max])
def test_an_empty_slate_is_worth_nothing_known(rule: object) -> None:
    assert math.isnan(worth(rule, []))
    assert math.isnan(slate_value(rule).normalised(0.0, 0, 0.0, 1.0))


def test_stated_values_are_brought_to_the_scale() -> None:
    assert slate_value("sum").normalised(30, 5, 0, 10) == pytest.approx(0.6)
    assert slate_value("sum").bounds(5, 0, 10) == (0, 50)
    assert slate_value("any").bounds(5, 0, 10) == (0, 1)
    assert slate_value("threshold:0.5").normalised(1, 5, 0, 10) == 1
    assert slate_value(max).normalised(7, 5, 0, 10) == 7


@given(st.lists(st.floats(-2, 7), min_size=1, max_size=8))
def test_a_stated_sum_is_the_computed_one(values: list[float]) -> None:
    rule = slate_value("sum")
    assert rule.normalised(sum(values), len(values), -2, 7) == pytest.approx(worth("sum", values, -2, 7), abs=1e-9)


def test_scaling_keeps_to_the_unit_range() -> None:
    low, high = 0.1, 0.7
    assert scaled(np.array([low, high, NAN, 0.4]), low, high).tolist() == pytest.approx([0, 1, NAN, 0.5], nan_ok=True)


@pytest.mark.parametrize(
    "spec", ["mean", "threshold:", "threshold:0", "threshold:1.5", "threshold:nan", "threshold:1/2", "Sum", "", 3, None]
)
def test_other_rules_are_refused(spec: object) -> None:
    with pytest.raises(ConfigError, match="reward: expected sum, any, threshold:SHARE") as caught:
        slate_value(spec)
    assert caught.value.field == "reward"


@given(st.text() | st.binary() | st.floats() | st.integers())
def test_any_rule_is_made_or_refused(spec: object) -> None:
    with contextlib.suppress(NeuclustError):
        assert slate_value(spec).name == spec


def test_names_are_what_is_saved() -> None:
    for name in ("sum", "any", "threshold:0.8"):
        rule = slate_value(name)
        assert (rule.name, rule.needs_function) == (name, False)
        assert slate_value(rule.name) == rule
        assert slate_value(rule) is rule
    own = slate_value(max)
    assert (own.name, own.needs_function) == ("function", True)
    with pytest.raises(StateError, match="give it again"):
        slate_value(own.name)
    assert isinstance(own, OwnValue)
    assert isinstance(slate_value("any"), Threshold)


def test_values_in_messages_are_short_whatever_they_are() -> None:
    class Silent:
        def __repr__(self) -> str:
            raise RuntimeError

    assert brief(Silent()) == "a Silent"
    assert brief(10**10_000) == "a whole number of very many digits"
    assert len(brief("x" * 10_000)) == 100
