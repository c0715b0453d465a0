"""Curves end where records do, and shares of clusters are shares."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from invented_records import MakeRecord

from neuclust.analysis.curves import cluster_shares, expected_clipped, floor_curve


def test_clipped_curves_end_at_the_records_and_never_below_the_floor(record: MakeRecord) -> None:
    run = record("neuclust", 0, 12.0)
    clipped, floor = expected_clipped(run), floor_curve(run)
    assert clipped[-1] == pytest.approx((100, run.expected_clipped_regret))
    assert floor[-1] == pytest.approx((100, run.clipped_floor))
    assert all(above >= below for (_, above), (_, below) in zip(clipped, floor, strict=True))


def test_shares_rank_clusters_in_each_run_by_itself() -> None:
    rounds, shares = cluster_shares([(7,) * 9 + (2,) * 3, (2,) * 12])
    assert list(rounds) == [3.5, 9.5]
    np.testing.assert_allclose(shares, [[1.0, 9 / 12], [0.0, 3 / 12], [0.0, 0.0], [0.0, 0.0], [0.0, 0.0]])


@given(st.lists(st.lists(st.integers(0, 30), min_size=1, max_size=300), min_size=1, max_size=4))
def test_shares_are_shares(choices: list[list[int]]) -> None:
    rounds, shares = cluster_shares(choices)
    np.testing.assert_allclose(shares.sum(0), 1.0)
    assert (shares >= 0).all()
    assert (np.diff(rounds) > 0).all()
