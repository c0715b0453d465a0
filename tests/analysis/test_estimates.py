"""Means, standard errors, noise, and how they are written."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neuclust.analysis.estimates import Estimate, estimate, is_within_noise, number, with_error


@given(st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=20))
def test_estimates_are_mean_and_standard_error(values: list[float]) -> None:
    found = estimate(values)
    assert found.mean == pytest.approx(np.mean(values), abs=1e-6)
    assert found.error == pytest.approx(np.std(values, ddof=1) / math.sqrt(len(values)), abs=1e-6)


def test_one_seed_has_no_error() -> None:
    assert estimate([3.0]) == Estimate(3.0, None)


@pytest.mark.parametrize(
    ("mean", "error", "noise"),
    [(1.9, 1.0, True), (-1.9, 1.0, True), (2.1, 1.0, False), (0.0, 0.0, True), (1.0, 0.0, False)],
)
def test_noise_is_under_two_standard_errors(mean: float, error: float, noise: bool) -> None:
    assert is_within_noise(Estimate(mean, error)) is noise


@pytest.mark.parametrize(("value", "text"), [(319.84, "319.8"), (13.424, "13.42"), (0.2134, "0.213"), (-3.0, "-3.00")])
def test_numbers_have_the_decimals_a_reader_can_use(value: float, text: str) -> None:
    assert number(value) == text


def test_errors_share_the_decimals_of_their_mean() -> None:
    assert with_error(Estimate(320.0, 1.26)) == "320.0 ± 1.3"
    assert with_error(Estimate(1.5, None), sign=True) == "+1.50"
