"""The interval of a ratio of means: where its ends are, what it covers, and logs with no weight."""

from __future__ import annotations

import numpy as np
import pytest
from test_intervals import contributions

from neuclust.errors import DataError
from neuclust.evaluation import intervals as iv


def test_ends_are_where_the_test_of_the_residuals_turns() -> None:
    """Fails when moments of x − v·w are put together wrongly, or a search stops early."""
    x, w = contributions(5, 200)
    found = iv.self_normalised(x, w, 0.9)
    for end in (found.low, found.high):
        np.testing.assert_allclose(iv.p_value(x - end[:, None] * w), 0.1, rtol=1e-6)
    estimate = x.sum(-1) / w.sum(-1)
    assert ((found.low < estimate) & (estimate < found.high)).all()


def test_equal_weights_leave_the_interval_of_a_mean() -> None:
    """Fails when a ratio with a constant below it differs from a mean."""
    x, _ = contributions(3, 150)
    mean, ratio = iv.asymptotic(x), iv.self_normalised(3 * x, np.full_like(x, 3.0))
    np.testing.assert_allclose([ratio.low, ratio.high], [mean.low, mean.high], rtol=1e-7)


def test_few_large_weights_are_covered_where_linearised_ones_are_not() -> None:
    """Fails when the variance is taken at the estimate instead of at each value."""
    rng = np.random.default_rng(8)
    w = np.where(rng.random((1500, 200)) < 0.03, 20.0, 0.4 / 0.97)
    x = w * (rng.random(w.shape) < 0.3)
    estimate, scale = x.sum(-1, keepdims=True) / w.sum(-1, keepdims=True), w.mean(-1, keepdims=True)
    linearised = iv.asymptotic(estimate + (x - estimate * w) / scale)
    found = iv.self_normalised(x, w, span=(0, 1))
    assert linearised.covers(0.3).mean() < 0.92
    assert found.covers(0.3).mean() > linearised.covers(0.3).mean() + 0.02


def test_a_single_weight_leaves_everything_possible() -> None:
    """Fails when one row that matters gives an interval with an end."""
    w = np.zeros((2, 30))
    w[0, 4] = 10.0
    found = iv.self_normalised(w, w)
    assert (found.low == -np.inf).all()
    assert (found.high == np.inf).all()
    assert (iv.self_normalised(w, w, span=(0, 1)).width == 1).all()
    alone = iv.self_normalised([0.5], [1.0])
    assert not np.isfinite([alone.low, alone.high]).any()


def test_equal_rewards_have_no_spread() -> None:
    """Fails when rounding of cancelling powers makes a width of it, or the reason hides it."""
    _, w = contributions(2, 100)
    found = iv.self_normalised(0.7 * w, w)
    np.testing.assert_allclose([found.low, found.high], 0.7, atol=1e-6)


def test_shapes_that_differ_are_refused() -> None:
    """Fails when values are broadcast over the weights of another log."""
    with pytest.raises(DataError, match="one weight for each value"):
        iv.self_normalised(np.ones(3), np.ones(4))


def test_learning_loggers_have_the_same_form() -> None:
    """Fails when h multiplies values and not weights, or the martingale form of a ratio differs without it."""
    x, w = contributions(4, 200)
    plain, ratio = iv.self_normalised(x, w), iv.martingale(x, weights=w)
    np.testing.assert_allclose([ratio.low, ratio.high], [plain.low, plain.high])
    assert ratio.kind == "martingale"
    h = np.linspace(0.5, 2, 200)
    weighted = iv.martingale(x, weights=w, h=h)
    np.testing.assert_allclose(iv.p_value(h * (x - weighted.high[:, None] * w)), 0.05, rtol=1e-6)


def test_expected_sample_sizes_come_from_designs() -> None:
    """Fails when E[w²] is averaged in another way, or a log of lucky weights is not told from others."""
    assert iv.expected_sample_size(np.full(300, 3.0)) == pytest.approx(100)
    assert iv.expected_sample_size([1.0, 3.0]) == pytest.approx(1.0)
    chance = 0.01  # of a weight of 60
    rest = (1 - chance * 60) / (1 - chance)
    moment = chance * 60**2 + (1 - chance) * rest**2
    lucky = np.full(300, rest)  # without any of them
    assert iv.effective_sample_size(lucky) == pytest.approx(300)
    assert iv.expected_sample_size(np.full(300, moment)) < 10
    with pytest.raises(DataError, match="above 0"):
        iv.expected_sample_size([0.0])
