"""Sums of powers and the intervals of their means."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from neuclust.errors import StateError
from neuclust.evaluation.intervals import Moments, asymptotic
from neuclust.serve.statistics.sums import Sums, difference_estimate, mean_estimate

NUMBERS = st.lists(st.floats(0, 60, allow_nan=False).map(lambda x: round(x, 3)), min_size=2, max_size=40)


def sums_of(values: list[float]) -> Sums:
    found = Sums()
    for value in values:
        found.add(value)
    return found


@settings(max_examples=60, deadline=None)
@given(NUMBERS, NUMBERS)
def test_moments_are_those_of_the_numbers(first: list[float], second: list[float]) -> None:
    """Fails when merging, taking back or the central sums are wrong."""
    merged = sums_of(first)
    merged.merge(sums_of(second))
    merged.add(17.5)
    merged.add(17.5, -1)
    found, wanted = merged.moments(), Moments.of([*first, *second])
    assert found.count == wanted.count
    for name in ("mean", "second", "third", "fourth"):
        size = max(abs(float(getattr(wanted, name))), 60.0 ** (["mean", "second", "third", "fourth"].index(name) + 1))
        assert float(getattr(found, name)) == pytest.approx(float(getattr(wanted, name)), abs=1e-9 * size)


def test_a_mean_has_the_interval_of_the_evaluation_package() -> None:
    """Fails when another interval than that of the evaluation package is given."""
    values = [0.0, 1.0, 0.0, 2.0, 1.0, 0.0, 0.0, 1.0, 3.0, 0.0]
    found, wanted = mean_estimate(sums_of(values), (0, 3)), asymptotic(values, span=(0, 3))
    assert found is not None
    assert found.count == 10
    assert [found.mean, found.low, found.high] == pytest.approx([0.8, float(wanted.low), float(wanted.high)])


def test_rows_without_a_click_do_not_say_that_there_are_none() -> None:
    """Fails when equal rows give an interval without width."""
    few, many = (mean_estimate(sums_of([0.0] * count), (0, 3)) for count in (20, 900))
    assert few is not None
    assert few.high is not None
    assert many is not None
    assert many.high is not None
    assert few.low == many.low == 0
    assert 0 < many.high < few.high < 3


def test_a_difference_of_two_groups_covers_the_truth_at_its_level() -> None:
    """Fails when the interval of a difference is too narrow, too wide or of the other sign."""
    rng, covered = np.random.default_rng(3), 0
    for _ in range(300):
        first, second = rng.binomial(3, 0.3, 200).astype(float), rng.binomial(3, 0.2, 60).astype(float)
        found = difference_estimate(sums_of(first.tolist()), sums_of(second.tolist()))
        assert found is not None
        assert found.low is not None
        assert found.high is not None
        covered += found.low <= 0.3 <= found.high
    assert 273 <= covered <= 296  # of 285 expected; 3 standard errors are 11


def test_one_row_has_no_difference() -> None:
    """Fails when a difference is given from a group of one."""
    assert difference_estimate(sums_of([1.0]), sums_of([0.0, 1.0])) is None
    assert mean_estimate(Sums()) is None


@pytest.mark.parametrize("saved", [None, [1, 2], [1.5, 0, 0, 0, 0], [1, "a", 0, 0, 0], [1, float("nan"), 0, 0, 0]])
def test_damaged_sums_are_refused(saved: object) -> None:
    """Fails when a damaged save is read."""
    with pytest.raises(StateError, match="statistics: expected"):
        Sums.from_json(saved)
