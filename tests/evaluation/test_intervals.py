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


# --- finite sample and sequences ------------------------------------------------------------------------------------


def test_empirical_bernstein_is_the_formula_of_maurer_and_pontil() -> None:
    """Fails when a term or a logarithm of the bound changes."""
    x = np.array([0.0, 1.0, 2.0, 5.0, 0.5] * 40)
    found = iv.empirical_bernstein(x, (0.0, 8.0), 0.9)
    log, n = math.log(4 / 0.1), 200
    variance = sum((a - b) ** 2 for a in x for b in x) / (2 * n * (n - 1))
    half = math.sqrt(2 * variance * log / n) + 7 * 8 * log / (3 * (n - 1))
    assert (found.low, found.high) == pytest.approx((x.mean() - half, x.mean() + half))


def test_values_outside_their_bounds_are_refused() -> None:
    """Fails when bounds are taken on trust."""
    with pytest.raises(DataError, match="widen the bounds"):
        iv.empirical_bernstein([0.0, 9.0], (0.0, 8.0))


def naive_lower_bounds(scores: list[float], alpha: float) -> list[float]:
    """The running Bernstein form, row by row."""
    total, squares, bets, gains = 0.5, 0.25, 0.0, 0.0
    found: list[float] = []
    for t, score in enumerate(scores, start=1):
        mean, variance = min(1.0, total / t), squares / t
        bet = min(0.5, math.sqrt(2 * math.log(1 / alpha) / (variance * t * math.log(1 + t))))
        gains += bet * score - (-math.log(1 - bet) - bet) * (score - mean) ** 2
        bets += bet
        found.append(max(0.0, (gains - math.log(1 / alpha)) / bets, found[-1] if found else 0.0))
        total, squares = total + score, squares + (score - mean) ** 2
    return found


def test_running_ends_are_those_of_a_loop() -> None:
    """Fails when a bet sees its own row, or a sum is off by one."""
    x, w = contributions(1, 80)
    found = iv.confidence_sequence(x[0], w[0], (0, 1), running=True)
    below = naive_lower_bounds(x[0].tolist(), 0.025)
    above = naive_lower_bounds((w - x)[0].tolist(), 0.025)
    np.testing.assert_allclose(found.low, below, rtol=1e-9)
    np.testing.assert_allclose(found.high, [1 - each for each in above], rtol=1e-9)


def test_the_betting_end_is_where_the_wealth_is_one_over_alpha() -> None:
    """Fails when Newton's steps stop early, or bets depend on rows to come."""
    x, w = contributions(4, 300)
    found = iv.confidence_sequence(x, w, (0, 1), 0.9)
    for log in range(4):
        total, squares, gains = 0.5, 0.25, 0.0
        for t, score in enumerate(x[log].tolist(), start=1):
            bet = min(0.9, math.sqrt(2 * math.log(20) / (squares / t * 300)))
            gains += math.log(1 + bet * (score - float(found.low[log])))
            squares += (score - min(1.0, total / t)) ** 2
            total += score
        assert gains == pytest.approx(math.log(20), abs=1e-6)


def test_a_sequence_is_left_at_any_time_by_few_logs() -> None:
    """Fails when a running interval holds at each n but not at all of them together."""
    x, w = contributions(1000, 500, seed=7)
    found = iv.confidence_sequence(x, w, (0, 1), running=True)
    assert found.covers(0.3).all(-1).mean() >= 0.95
    assert (np.diff(found.low) >= 0).all()
    assert (np.diff(found.high) <= 0).all()
    assert found.width[:, -1].mean() < 0.5


def test_betting_is_narrower_than_bernstein() -> None:
    """Fails when the default form of a sequence loses its advantage."""
    x, w = contributions(50, 300)
    both = [iv.confidence_sequence(x, w, (0, 1), form=form) for form in ("betting", "bernstein")]
    assert both[0].width.mean() < 0.9 * both[1].width.mean()


def test_sequences_scale_with_the_rewards() -> None:
    """Fails when a span other than (0, 1) is not scaled in and out."""
    x, w = contributions(3, 200)
    plain = iv.confidence_sequence(x, w, (0, 1))
    moved = iv.confidence_sequence(5 * x - 2 * w, w, (-2, 3))
    np.testing.assert_allclose(moved.low, 5 * plain.low - 2, rtol=1e-9)
    np.testing.assert_allclose(moved.high, 5 * plain.high - 2, rtol=1e-9)


def test_scores_below_zero_are_refused() -> None:
    """Fails when rewards outside the span give a bound that does not hold."""
    with pytest.raises(DataError, match="span of the rewards"):
        iv.confidence_sequence([2.0, 0.0], [1.0, 1.0], (0, 1))


# --- learning loggers -----------------------------------------------------------------------------------------------


def test_weights_that_level_the_variance_restore_coverage() -> None:
    """Fails when h is not squared in the variance, or not divided out of the estimate."""
    rng = np.random.default_rng(11)
    early = rng.random((1500, 1)) < 0.5  # whether the logger found the target's slate at once
    chance = np.where(early, 0.9, 0.02) * np.ones((1500, 600))
    chance[:, :60] = 0.3
    x = (rng.random(chance.shape) < chance) / chance * (rng.random(chance.shape) < 0.5)
    found = iv.martingale(x, h=iv.stabilisers(1 / chance))
    assert 0.93 <= found.covers(0.5).mean() <= 0.975
    assert found.width.mean() < iv.martingale(x).width.mean()


def test_equal_weights_change_nothing() -> None:
    """Fails when the weighted form is not the plain one at equal weights of any size."""
    x, _ = contributions(3, 100)
    plain, weighted = iv.martingale(x), iv.martingale(x, h=np.full(100, 7.0))
    np.testing.assert_allclose([weighted.low, weighted.high], [plain.low, plain.high], rtol=1e-9)
    np.testing.assert_allclose(iv.levelled(x, np.arange(1.0, 101)).mean(-1), np.average(x, -1, np.arange(1.0, 101)))


@pytest.mark.parametrize("h", [[-1.0, 2.0], [0.0, 0.0]])
def test_weights_that_are_none_are_refused(h: list[float]) -> None:
    """Fails when weights below 0, or of sum 0, go through."""
    with pytest.raises(DataError, match="stabilising weights"):
        iv.martingale([1.0, 2.0], h=h)
    with pytest.raises(DataError, match="above 0"):
        iv.stabilisers([0.0, 1.0])


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
