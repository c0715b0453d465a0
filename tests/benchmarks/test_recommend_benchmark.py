"""The benchmark of recommendations: its figures fit together, and measuring leaves everything as it was."""

from __future__ import annotations

import pytest

from benchmarks import recommend
from neuclust import Recommender
from neuclust.recommender.learner import Learner


def test_figures_of_a_policy_fit_together() -> None:
    before = Recommender.recommend, Learner.select
    figures = recommend.measured("popular", learn=2, blocks=1, first={})
    assert set(figures.shares) == set(recommend.PARTS)
    assert sum(figures.shares.values()) == pytest.approx(1.0)
    assert all(0 < share < 1 for share in figures.shares.values())
    assert min(figures.recommend, figures.many, figures.ratio, figures.feedback) > 0
    assert (Recommender.recommend, Learner.select) == before
    assert "| popular |" in recommend.table([figures])


def test_first_calls_are_told_by_name() -> None:
    assert set(recommend.first_calls("uniform", warm=True)) == {
        "warm_up", "first", "first feedback", "second", "second feedback", "third", "third feedback",
    }  # fmt: skip
