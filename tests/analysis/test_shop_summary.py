"""Numbers of policies in a shop."""

from __future__ import annotations

import numpy as np
import pytest

from neuclust.analysis.shop import moving_average, summarised
from neuclust.experiment.shop import ShopRun


def run_of(expected: list[float]) -> ShopRun:
    count = len(expected)
    return ShopRun("linucb", np.ones(count), np.array(expected), np.full(count, 0.2), np.full(count, 1.2))


def test_tenths_and_the_share_of_the_possible_gain() -> None:
    summary = summarised(run_of([0.2, 0.4, *[0.5] * 16, 0.6, 0.8]))
    assert (summary.policy, summary.requests, summary.clicks) == ("linucb", 20, 20)
    assert [summary.first, summary.last, summary.gain] == pytest.approx([0.3, 0.7, 0.5])


def test_few_requests_have_tenths_of_one() -> None:
    summary = summarised(run_of([0.2, 1.2]))
    assert [summary.first, summary.last, summary.gain] == pytest.approx([0.2, 1.2, 1.0])


def test_moving_averages_are_means_of_the_last_values() -> None:
    values = np.array([3.0, 1.0, 2.0, 6.0, 4.0])
    assert moving_average(values, 3).tolist() == [3.0, 2.0, 2.0, 3.0, 4.0]
    assert moving_average(values, 1).tolist() == pytest.approx(values.tolist())
