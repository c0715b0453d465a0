"""Paired differences, intervals that hold together, Holm's tests, and which interval is chosen."""

from __future__ import annotations

import numpy as np
import pytest
from test_intervals import contributions

from neuclust.analysis.paired import holm as plain_holm
from neuclust.errors import ConfigError, DataError
from neuclust.evaluation import intervals as iv
from neuclust.evaluation.intervals.interval import Floats


def candidates(rng: np.random.Generator, count: int, rows: int, shared: float) -> Floats:
    """Contributions (count, rows) of mean 0 with correlation `shared`."""
    own = rng.exponential(size=(count, rows)) - 1
    return np.asarray(np.sqrt(shared) * (rng.exponential(size=rows) - 1) + np.sqrt(1 - shared) * own)


@pytest.mark.parametrize("shared", [0.0, 0.9])
def test_intervals_of_many_candidates_hold_together(shared: float) -> None:
    """Fails when eight intervals at 95 % each are taken for eight that hold together."""
    rng = np.random.default_rng(1)
    logs = [candidates(rng, 8, 200, shared) for _ in range(150)]
    together = np.mean([iv.simultaneous(log).covers(0.0).all() for log in logs])
    assert 0.90 <= together <= 0.99
    if shared == 0:
        assert np.mean([iv.asymptotic(log).covers(0.0).all() for log in logs]) < 0.8


def test_the_joint_level_is_between_one_interval_and_bonferroni() -> None:
    """Fails when correlated candidates pay for more tests than they are, or independent ones for fewer."""
    rng = np.random.default_rng(2)
    apart, alike = (iv.joint_level(candidates(rng, 6, 2000, shared)) for shared in (0.0, 0.95))
    assert 0.95 < alike < apart <= iv.bonferroni_level(6)
    assert apart == pytest.approx(0.95 ** (1 / 6), abs=0.001)
    same = np.tile(rng.random(50), (5, 1))
    assert iv.joint_level(same) == pytest.approx(0.95, abs=0.003)
    assert iv.joint_level(np.ones((3, 50))) == pytest.approx(0.95)
    with pytest.raises(DataError, match="candidates, rows"):
        iv.joint_level(rng.random(50))


def test_paired_differences_use_the_pairs() -> None:
    """Fails when two estimates of the same rows are treated as if they were apart."""
    x, w = contributions(50, 400)
    y = x + 0.05 * w
    gap = iv.asymptotic(iv.difference(y, x))
    assert gap.covers(0.05).mean() > 0.8
    assert gap.width.mean() < 0.3 * iv.asymptotic(x).width.mean()
    with pytest.raises(DataError, match="same rows"):
        iv.difference(x, x[:, 1:])


def test_sequences_of_differences_hold_and_cancel_what_is_shared() -> None:
    """Fails when the two policies are exchanged, or a difference is bounded by chance more often than it may."""
    rng = np.random.default_rng(3)
    first = rng.random((600, 300)) < 0.5  # which of two arms was shown
    clicks = rng.random(first.shape) < np.where(first, 0.7, 0.2)
    one, two = (2.0 * shown for shown in (first, ~first))
    found = iv.difference_sequence((one * clicks, one), (two * clicks, two), (0, 1))
    assert found.covers(0.5).mean() >= 0.95
    assert (found.low > 0).mean() > 0.9
    turned = iv.difference_sequence((two * clicks, two), (one * clicks, one), (0, 1))
    np.testing.assert_allclose([turned.low, turned.high], [-found.high, -found.low], atol=1e-9)
    running = iv.difference_sequence((one * clicks, one), (two * clicks, two), (0, 1), running=True)
    assert running.covers(0.5).all(-1).mean() >= 0.95
    ones = np.ones((1, 300))
    same = iv.difference_sequence((clicks[:1] * 1.0, ones), (clicks[:1] * 1.0, ones), (0, 1))
    assert same.width[0] < 0.1


def test_holm_is_that_of_the_analysis() -> None:
    """Fails when the two corrections of the package disagree."""
    rng = np.random.default_rng(4)
    for size in (1, 2, 7):
        p = rng.random(size) ** 3
        np.testing.assert_allclose(iv.holm(p), plain_holm(p.tolist()), rtol=1e-12)


@pytest.mark.parametrize(
    ("learning", "ess", "kind"),
    [
        (False, 100.0, "asymptotic"),
        (False, 99.9, "confidence-sequence"),
        (True, 100.0, "martingale"),
        (True, 99.9, "confidence-sequence"),
        (True, 3.0, "confidence-sequence"),
    ],
)
def test_the_interval_is_chosen_by_logger_and_effective_rows(learning: bool, ess: float, kind: str) -> None:
    """Fails when a normal approximation is used where it does not hold, or its reason is not said."""
    found, reason = iv.choose_interval(learning, True, ess, 1000)
    assert found == kind
    assert kind in reason
    assert ("learned" in reason) is learning
    assert (iv.CANNOT_TELL in reason) is (ess < 10)


def test_rows_without_spread_get_an_interval_that_needs_none() -> None:
    """Fails when a log without a click is given the asymptotic interval from 0 to 0."""
    for learning in (False, True):
        kind, reason = iv.choose_interval(learning, True, 500.0, 1000, varies=False)
        assert kind == "confidence-sequence"
        assert "equal" in reason


def test_a_wanted_interval_is_used_with_its_doubts() -> None:
    """Fails when a wanted kind is replaced, or used beyond its assumption without a word."""
    kind, reason = iv.choose_interval(True, True, 50.0, 400, "asymptotic")
    assert kind == "asymptotic"
    assert "beware" in reason
    assert "learned" in reason
    assert "100 effective rows" in reason
    assert "beware" not in iv.choose_interval(False, True, 150.0, 400, "bootstrap")[1]
    assert iv.CANNOT_TELL in iv.choose_interval(False, True, 5.0, 400, "bootstrap")[1]
    with pytest.raises(ConfigError, match="use confidence-sequence"):
        iv.choose_interval(False, False, 150.0, 400, "empirical-bernstein")
    with pytest.raises(ConfigError, match="did you mean bootstrap"):
        iv.choose_interval(False, True, 150.0, 400, "bootstraps")
