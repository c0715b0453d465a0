"""What slates are worth, by name, and what is refused."""

import math

import numpy as np
import pytest

from neuclust.errors import ConfigError, DataError
from neuclust.evaluation.slate_values import parse_slate_value

REWARDS = np.array([[0.0, 0.0, 0.0], [1.0, 0.0, 1.0], [0.0, 1.0, 0.0], [1.0, 1.0, 1.0]])
SLATES = np.array([0.1, 0.2, 0.3, 0.4])


@pytest.mark.parametrize(
    ("text", "values", "span"),
    [
        ("sum", [0, 2, 1, 3], (0, 3)),
        ("any", [0, 1, 1, 1], (0, 1)),
        ("threshold:2", [0, 1, 0, 1], (0, 1)),
        ("table:0,0.2,0.7,1", [0, 0.7, 0.2, 1], (0, 1)),
        ("slate", [0.1, 0.2, 0.3, 0.4], (0, 1)),
    ],
)
def test_values_by_name(text: str, values: list[float], span: tuple[float, float]) -> None:
    """Fails when a form counts otherwise, or when its range would make finite-sample intervals wrong."""
    value = parse_slate_value(text, 3)
    assert value.of(REWARDS, SLATES).tolist() == values
    assert value.range == span
    assert value.additive == (text == "sum")


def test_expected_values_are_those_of_independent_slots() -> None:
    """Fails when the reward model of an interacting slate forgets that slots vary."""
    means = np.array([0.2, 0.5, 0.9])
    assert parse_slate_value("sum", 3).expected(means) == pytest.approx(1.6)
    assert parse_slate_value("any", 3).expected(means) == pytest.approx(1 - 0.8 * 0.5 * 0.1)
    assert parse_slate_value("threshold:3", 3).expected(means) == pytest.approx(0.2 * 0.5 * 0.9)
    assert parse_slate_value("any", 3).expected(means[:2]) == pytest.approx(1 - 0.8 * 0.5)


def test_unseen_rewards_have_no_value() -> None:
    """Fails when a missing reward is counted as 0."""
    unseen = np.array([[math.nan, 1.0, 0.0]])
    assert math.isnan(parse_slate_value("any", 3).of(unseen, SLATES[:1])[0])
    assert math.isnan(parse_slate_value("sum", 3).of(unseen, SLATES[:1])[0])


@pytest.mark.parametrize(
    "text", ["", "sums", "threshold:0", "threshold:4", "threshold:x", "table:0,1", "table:0,1,nan,2"]
)
def test_other_forms_are_refused(text: str) -> None:
    """Fails when a misspelt value is silently read as another one."""
    with pytest.raises(ConfigError, match="reward"):
        parse_slate_value(text, 3)


def test_rewards_outside_the_declared_range_are_refused() -> None:
    """Fails when a reward of 7 is judged as one of at most 1, which would break every finite-sample interval."""
    with pytest.raises(DataError, match="0 to 7"):
        parse_slate_value("sum", 3).check(7 * REWARDS, SLATES)
    parse_slate_value("sum", 3, 0.0, 10.0).check(7 * REWARDS, SLATES)
    with pytest.raises(DataError, match="0 and 1"):
        parse_slate_value("any", 3).check(0.5 * REWARDS, SLATES)
