"""The exponent of regret: recovered, with an interval that holds what it promises."""

from __future__ import annotations

import math

import numpy as np
import pytest

from neuclust.errors import DataError
from neuclust.randomness import stream
from neuclust.theory.growth import Curve, growth, power_slope

TIMES = np.unique(np.round(np.linspace(0, 1000, 101)[1:])).astype(int)


def curve(exponent: float, scale: float = 1.0) -> Curve:
    return [(int(t), scale * float(t) ** exponent) for t in TIMES]


def noisy(exponent: float, seed: int) -> Curve:
    """Rewards of 0 or 1 with a chance of loss ∝ t^{b−1}."""
    rng = stream(seed, "noisy regret")
    t = np.arange(1, 1001)
    sums = np.cumsum(rng.random(1000) < 0.5 * t ** (exponent - 1.0))
    return [(int(each), float(sums[each - 1])) for each in TIMES]


@pytest.mark.parametrize("exponent", [0.3, 0.5, 0.8, 1.0, 1.5])
def test_a_power_is_found(exponent: float) -> None:
    found = growth([curve(exponent, 3.0)])
    assert found.exponent == pytest.approx(exponent, abs=0.03)
    assert found.final == pytest.approx(3.0 * 1000**exponent)


def test_verdicts() -> None:
    assert growth([noisy(1.0, 1)]).verdict == "faster than √t"
    assert growth([[(t, math.log(t + 1)) for t, _ in curve(1.0)]]).verdict == "slower than √t"
    assert growth([noisy(0.5, seed) for seed in range(5)]).verdict == "as √t could"


@pytest.mark.parametrize(("exponent", "runs"), [(0.5, 1), (0.8, 1), (0.5, 12)])
def test_intervals_cover_about_as_often_as_they_say(exponent: float, runs: int) -> None:
    trials = 120 if runs == 1 else 10
    found = [growth([noisy(exponent, 1000 * runs + trial * runs + i) for i in range(runs)]) for trial in range(trials)]
    covered = np.mean([each.low - 0.02 <= exponent <= each.high + 0.02 for each in found])
    assert covered >= 0.8
    assert np.mean([each.high - each.low for each in found]) < 0.6


def test_no_regret_has_exponent_zero_and_few_points_are_refused() -> None:
    assert growth([[(int(t), 0.0) for t in TIMES]]).exponent == 0.0
    with pytest.raises(DataError, match="play more rounds"):
        growth([curve(0.5)[:5]])
    with pytest.raises(DataError, match="equal length"):
        growth([curve(0.5), [(t + 1, v) for t, v in curve(0.5)]])


def test_the_slope_of_logarithms_leaves_out_what_has_none() -> None:
    t = np.arange(1.0, 50.0)
    values = 2 / t
    values[3] = 0.0
    assert power_slope(t, values) == pytest.approx(-1.0)
    assert math.isnan(power_slope(t, np.zeros_like(t)))
