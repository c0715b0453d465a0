"""Finite-sample bounds, confidence sequences and intervals of learning loggers, against loops and by coverage."""

from __future__ import annotations

import math

import numpy as np
import pytest
from test_intervals import contributions

from neuclust.errors import DataError
from neuclust.evaluation import intervals as iv


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
