"""Intervals of means of contributions: formulas against plain loops, coverage, and cases without spread."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from neuclust.errors import ConfigError, DataError
from neuclust.evaluation import intervals as iv
from neuclust.evaluation.intervals.interval import Floats

BOUNDS = (0.0, 3.0)


def contributions(logs: int, rows: int, seed: int = 0) -> tuple[Floats, Floats]:
    """Values w·r of mean 0.3 and weights w of mean 1, E[w²] = 2.5: (logs, rows) each."""
    rng = np.random.default_rng(seed)
    weights = np.where(rng.random((logs, rows)) < 0.25, 2.5, 0.5)
    return weights * (rng.random((logs, rows)) < 0.3), weights


MAKERS: dict[str, Callable[..., iv.Interval]] = {
    "asymptotic": lambda x, w, level: iv.asymptotic(x, level),
    "bootstrap": lambda x, w, level: iv.bootstrap(x, level),
    "empirical-bernstein": lambda x, w, level: iv.empirical_bernstein(x, BOUNDS, level),
    "martingale": lambda x, w, level: iv.martingale(x, level),
    "confidence-sequence": lambda x, w, level: iv.confidence_sequence(x, w, (0, 1), level),
}


def test_every_kind_has_a_maker() -> None:
    """Fails when a kind is added that no test below makes, or returned under another name."""
    assert set(MAKERS) == set(iv.KINDS)
    x, w = contributions(2, 50)
    assert [make(x, w, 0.9).kind for make in MAKERS.values()] == list(MAKERS)


@pytest.mark.parametrize("kind", iv.KINDS)
def test_intervals_widen_with_the_level(kind: str) -> None:
    """Fails when the level does not reach the quantile, or reaches it the wrong way round."""
    x, w = contributions(5, 400)
    found = [MAKERS[kind](x, w, level) for level in (0.5, 0.8, 0.95, 0.99)]
    for narrow, wide in pairwise(found):
        assert (wide.low < narrow.low).all()
        assert (wide.high > narrow.high).all()


@pytest.mark.parametrize("kind", iv.KINDS)
def test_logs_side_by_side_are_logs_by_themselves(kind: str) -> None:
    """Fails when a sum runs over logs, or when a log's ends depend on its neighbours."""
    x, w = contributions(6, 120)
    together = MAKERS[kind](x.reshape(2, 3, 120), w.reshape(2, 3, 120), 0.95)
    assert together.low.shape == together.high.shape == (2, 3)
    for at in range(6):
        alone = MAKERS[kind](x[at], w[at], 0.95)
        np.testing.assert_allclose(together.low.ravel()[at], alone.low, rtol=1e-9)
        np.testing.assert_allclose(together.high.ravel()[at], alone.high, rtol=1e-9)


@pytest.mark.parametrize(
    ("kind", "least", "most"),
    [("asymptotic", 0.93, 0.97), ("bootstrap", 0.93, 0.97), ("martingale", 0.93, 0.97),
     ("empirical-bernstein", 0.97, 1.0), ("confidence-sequence", 0.96, 1.0)],
)  # fmt: skip
def test_intervals_cover(kind: str, least: float, most: float) -> None:
    """Fails when a variance term is dropped, doubled or made from the wrong rows."""
    x, w = contributions(1500, 300, seed=1)
    covered = MAKERS[kind](x, w, 0.95).covers(0.3).mean()
    assert least <= covered <= most


# --- asymptotic -----------------------------------------------------------------------------------------------------


def naive_asymptotic(x: list[float], level: float) -> tuple[float, float]:
    n, mean = len(x), math.fsum(x) / len(x)
    m2, m3, m4 = (math.fsum((each - mean) ** p for each in x) / n for p in (2, 3, 4))
    skew, kurtosis = m3 / m2**1.5, m4 / m2**2
    q = stats.t.ppf((1 + level) / 2, max(1.0, min(n - 1, 2 * n / (kurtosis - 1))))
    a, b = skew / (3 * math.sqrt(n)), skew / (6 * math.sqrt(n))
    error = math.sqrt(m2 * n / (n - 1) / n)
    low, high = (mean - error * (np.cbrt(1 + 3 * a * (end - b)) - 1) / a for end in (q, -q))
    return float(low), float(high)


@settings(max_examples=50, deadline=None)
@given(st.lists(st.integers(-50, 50), min_size=3, max_size=30), st.floats(0.5, 0.99))
def test_asymptotic_ends_are_those_of_the_formula(whole: list[int], level: float) -> None:
    """Fails when skewness, degrees of freedom or the inverse of the cubic differ from their formulas."""
    x = [each + 0.01 * each**2 for each in whole]
    gaps = np.asarray(x) - np.mean(x)
    if abs((gaps**3).sum()) < 1e-3 * np.abs(gaps**3).sum() or np.ptp(x) == 0:
        return  # the formula divides by the skewness
    found = iv.asymptotic(x, level)
    assert (found.low, found.high) == pytest.approx(naive_asymptotic(x, level), rel=1e-6, abs=1e-6)


def test_symmetric_rows_have_students_interval() -> None:
    """Fails when rows without skewness are shifted, or light tails lose degrees of freedom."""
    x = np.tile([-1.0, 0.0, 1.0], 20)
    found = iv.asymptotic(x)
    half = stats.t.ppf(0.975, 59) * x.std(ddof=1) / math.sqrt(60)
    assert (found.low, found.high) == pytest.approx((-half, half), rel=1e-6)


def test_skewed_rows_move_the_interval_to_their_long_side() -> None:
    """Fails when the correction for skewness has the wrong sign, or is gone."""
    x, _ = contributions(1, 300)
    right, left = iv.asymptotic(x[0]), iv.asymptotic(-x[0])
    mean = x.mean()
    assert right.high - mean > 1.1 * (mean - right.low)
    np.testing.assert_allclose([left.low, left.high], [-right.high, -right.low], rtol=1e-9)


def test_heavy_weights_are_covered_where_a_plain_t_interval_is_not() -> None:
    """Fails when the corrections for skewness and heavy tails no longer raise coverage into 93 to 97 %."""
    rng = np.random.default_rng(5)
    weights = np.exp(rng.normal(-0.5, 1.0, (2000, 300)))  # E[w] = 1, E[w²] = e: an ESS of 110
    x, truth = weights * (rng.random(weights.shape) < 0.4), 0.4
    half = stats.t.ppf(0.975, 299) * x.std(-1, ddof=1) / math.sqrt(300)
    plain = (np.abs(x.mean(-1) - truth) <= half).mean()
    assert plain < 0.93
    assert 0.93 <= iv.asymptotic(x).covers(truth).mean() <= 0.97


@pytest.mark.parametrize("parts", [(1, 99), (50, 50), (1, 1, 98), (30, 30, 40)])
def test_moments_of_parts_merge(parts: tuple[int, ...]) -> None:
    """Fails when a term of the merged central sums is wrong or missing."""
    x, _ = contributions(3, 100)
    x = x + 1000.0
    pieces = np.split(x, np.cumsum(parts)[:-1], axis=-1)
    merged = iv.Moments.of(pieces[0])
    for piece in pieces[1:]:
        merged = merged.merged(iv.Moments.of(piece))
    whole = iv.Moments.of(x)
    for name in ("mean", "second", "third", "fourth"):
        np.testing.assert_allclose(getattr(merged, name), getattr(whole, name), rtol=1e-8)
    np.testing.assert_allclose(iv.asymptotic(merged).high, iv.asymptotic(x).high, rtol=1e-10)


@pytest.mark.parametrize("level", [0.8, 0.95])
def test_p_values_agree_with_intervals(level: float) -> None:
    """Fails when the test and the interval of one mean say different things."""
    x, _ = contributions(40, 60, seed=3)
    covered = iv.asymptotic(x, level).covers(0.25)
    assert ((iv.p_value(x, 0.25) >= 1 - level) == covered).all()
    assert 0 < covered.mean() < 1


# --- bootstrap ------------------------------------------------------------------------------------------------------


def test_the_bootstrap_reads_chunks_and_repeats_itself() -> None:
    """Fails when chunks lose rows, or equal seeds give other numbers."""
    x, _ = contributions(2, 5000)
    whole = iv.bootstrap(x, seed=3)
    parts = iv.PoissonBootstrap(seed=3).add(x[:, :2048]).add(x[:, 2048:])
    again = parts.interval()
    np.testing.assert_allclose([again.low, again.high], [whole.low, whole.high], rtol=1e-9)
    assert parts.rows == 5000
    assert (iv.bootstrap(x, seed=4).low != whole.low).all()


def test_the_bootstrap_agrees_with_the_corrected_t_interval() -> None:
    """Fails when resamples are not studentised, or their quantiles are on the wrong sides."""
    x, _ = contributions(20, 2000)
    drawn, corrected = iv.bootstrap(x, resamples=1999), iv.asymptotic(x)
    np.testing.assert_allclose(drawn.width, corrected.width, rtol=0.15)
    mean = x.mean(-1)
    assert ((drawn.high - mean).mean() - (mean - drawn.low).mean()) > 0


# --- cases without spread -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [0.0, 0.1, 0.7])
def test_equal_rows_have_no_width_where_spread_is_all_that_is_known(value: float) -> None:
    """Fails when equal rows divide by 0, or rounding makes a spread of them."""
    x = np.full(50, value)
    for found in (iv.asymptotic(x), iv.martingale(x), iv.bootstrap(x)):
        assert found.low == pytest.approx(value)
        assert found.high == pytest.approx(value)
        assert "equal" in found.reason
    assert iv.empirical_bernstein(x, (0, 1)).width > 0.1
    assert iv.confidence_sequence(x, np.ones(50), (0, 1)).width > 0.05


@pytest.mark.parametrize("kind", iv.KINDS)
def test_one_row_leaves_everything_possible(kind: str) -> None:
    """Fails when one row gives an interval that it cannot give."""
    found = MAKERS[kind](np.array([0.5]), np.array([1.0]), 0.95)
    assert found.low <= 0
    assert found.high >= 1


def test_weights_of_zero_say_nothing() -> None:
    """Fails when a log without the target's slates bounds its value."""
    found = iv.confidence_sequence(np.zeros(20), np.zeros(20), (0, 1))
    assert found.low == 0
    assert found.high == 1
    assert iv.effective_sample_size(np.zeros(20)) == 0
    assert iv.CANNOT_TELL in iv.choose_interval(False, True, 0.0, 20)[1]


def test_ends_are_clipped_to_what_is_possible() -> None:
    """Fails when a click rate below 0 or above 1 is reported."""
    x = np.array([0.0, 0.0, 0.0, 3.0])
    for found in (iv.asymptotic(x, span=(0, 1)), iv.martingale(x, span=(0, 1)), iv.bootstrap(x, span=(0, 1))):
        assert (found.low >= 0).all()
        assert (found.high <= 1).all()
    assert iv.empirical_bernstein(x, (0, 3), span=(0, 1)).high <= 1
    assert iv.asymptotic(x).low < 0


@pytest.mark.parametrize("bad", [[], [np.nan, 1.0], [np.inf], 3.0])
def test_rows_that_are_no_numbers_are_refused(bad: Any) -> None:
    """Fails when NaN or an empty log becomes an interval."""
    with pytest.raises(DataError, match="contributions: expected"):
        iv.asymptotic(bad)


@pytest.mark.parametrize("level", [0.0, 1.0, 95.0])
def test_levels_are_inside_zero_and_one(level: float) -> None:
    """Fails when a level in per cent is taken as a share."""
    with pytest.raises(ConfigError, match="is usual"):
        iv.asymptotic([1.0, 2.0], level)
