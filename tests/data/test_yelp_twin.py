"""The Yelp twin looks like the facts it was fitted to, and equal arguments give equal data."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import multivariate_normal, norm

from neuclust.data.yelp_twin import (
    STATISTICS,
    complete,
    draw_candidates,
    draw_tastes,
    draw_terms,
    load_statistics,
    nearest_correlation,
    statistics_of,
    tf_idf,
    without_plain,
    yelp_twin,
)
from neuclust.errors import ConfigError, DataError
from tools.fit_yelp_twin import extend, read_facts, record_of, targets_of, tetrachoric

SHARED = Path(os.environ.get("NEUCLUST_SHARED_DATA") or Path(__file__).parents[2] / "../shared/data")
FACTS = SHARED / "yelp_facts.json"
needs_facts = pytest.mark.skipif(not FACTS.is_file(), reason="the facts about the real Yelp are not here")


@pytest.fixture(scope="module")
def facts() -> dict[str, Any]:
    return read_facts(FACTS)


@pytest.fixture(scope="module")
def carries() -> Any:
    return draw_terms(load_statistics(), 39_945, seed=1)


@needs_facts
def test_terms_occur_as_often_as_in_the_facts(facts: dict[str, Any], carries: Any) -> None:
    targets = targets_of(facts)
    found = carries[:, 1 : len(targets.terms) + 1].sum(0)
    assert np.abs(found - targets.occurs).sum() / targets.occurs.sum() < 0.06
    assert 0.95 < np.median(found / targets.occurs) < 1.05


@needs_facts
def test_pairs_of_terms_meet_as_often_as_in_the_facts(facts: dict[str, Any], carries: Any) -> None:
    names = ["restaurants", *load_statistics().terms]
    place = {name: index for index, name in enumerate(names)}
    meets = carries.astype(np.float32).T @ carries.astype(np.float32)
    pairs = [pair for pair in facts["cooccurrence_min40"] if "restaurants" not in pair]
    found = np.array([meets[place[a], place[b]] for a, b, _ in pairs])
    wanted = np.array([count for _, _, count in pairs])
    assert np.abs(found - wanted).sum() / wanted.sum() < 0.2
    assert np.corrcoef(np.log(found + 1), np.log(wanted))[0, 1] > 0.9
    assert meets[place["brunch"], place["breakfast"]] == meets[place["brunch"], place["brunch"]]


@needs_facts
def test_sizes_copies_and_bare_restaurants_are_as_in_the_facts(facts: dict[str, Any], carries: Any) -> None:
    sizes = np.bincount(carries.sum(1))
    counted = {int(size): n for size, n in facts["terms_per_restaurant_histogram"].items()}
    assert [sizes[size] for size in range(1, 16)] == [counted[size] for size in range(1, 16)]
    distinct = len(np.unique(np.packbits(carries, axis=1), axis=0))
    assert abs(distinct / facts["distinct_tfidf_rows"] - 1) < 0.05
    share = facts["rows_whose_only_category_is_restaurants"] / facts["restaurants"]
    twin = yelp_twin(20_000, n_rounds=1)
    assert abs((twin.arms.max(1) > 0.9999).mean() - share) < 2e-4


@needs_facts
def test_users_ask_for_as_many_terms_as_in_the_facts(facts: dict[str, Any], carries: Any) -> None:
    active = (draw_tastes(load_statistics(), carries, 3000, seed=1) > 0).sum(1)
    wanted = facts["distinct_terms_per_user_with_5_reviews_percentiles"]
    found = np.percentile(active, [5, 25, 50, 75, 95])
    assert abs(found[2] / wanted["50"] - 1) < 0.07
    np.testing.assert_allclose(found, list(wanted.values()), rtol=0.15)  # the lowest is the farthest off


@needs_facts
def test_facts_are_extended_to_the_papers_number_of_terms(facts: dict[str, Any]) -> None:
    targets = targets_of(facts)
    longer = extend(targets)
    assert len(longer.terms) == 170
    assert longer.occurs[-1] == pytest.approx(targets.occurs[-1] * 39_945 / 52_268)
    assert (np.diff(longer.occurs) <= 0).all()
    assert np.array_equal(longer.meets, longer.meets.T)
    sizes = {int(size) - 1: n for size, n in facts["terms_per_restaurant_histogram"].items()}
    assert targets.meets.sum() == pytest.approx(sum(n * size * (size - 1) for size, n in sizes.items()))


def test_full_size_and_shape() -> None:
    twin = yelp_twin(n_rounds=20)
    assert twin.arms.shape == (52_268, 171)
    assert twin.rounds.shape == (20, 171)
    assert list(twin.features) == sorted(twin.features)
    assert twin.arms.max() == 1.0
    assert twin.rounds.max() <= 5.0
    everywhere = twin.features.index("restaurants")
    assert (twin.arms[:, everywhere] > 0).all()
    assert (twin.rounds[:, everywhere] >= 1).all()
    lengths = np.linalg.norm(twin.arms, axis=1)
    assert (lengths[twin.arms.astype(bool).sum(1) > 1] > 0.999).all()


def test_bare_restaurants_are_the_best_slate_nearly_always() -> None:
    twin = yelp_twin(4000, n_rounds=60)
    bare = twin.arms.max(1) > 0.9999
    overlap = np.maximum((twin.arms > 0).astype(np.float32) @ (twin.rounds > 0).T, 1)
    affinity = twin.arms @ twin.rounds.T / overlap
    best = np.sort(affinity, axis=0)[-5]
    assert (affinity[bare].min(0) >= best - 1e-6).mean() > 0.95


@settings(max_examples=12, deadline=None)
@given(n=st.integers(10, 400), terms=st.integers(1, 171), rounds=st.integers(1, 12), seed=st.integers(0, 99))
def test_any_size_has_five_bare_restaurants(n: int, terms: int, rounds: int, seed: int) -> None:
    twin = yelp_twin(n, terms, rounds, seed)
    assert twin.arms.shape == (n, terms)
    assert twin.rounds.shape == (rounds, terms)
    assert (twin.arms[:, twin.features.index("restaurants")] > 0.9999).sum() >= 5


def test_equal_arguments_give_equal_data() -> None:
    one, two, other = (yelp_twin(300, n_rounds=10, seed=seed) for seed in (3, 3, 4))
    assert np.array_equal(one.arms, two.arms)
    assert np.array_equal(one.rounds, two.rounds)
    assert not np.array_equal(one.arms, other.arms)
    assert not np.array_equal(one.rounds, other.rounds)


def test_sizes_that_cannot_be_are_refused() -> None:
    for sizes in ((5, 171, 10), (100, 172, 10), (100, 0, 10), (100, 171, 0)):
        with pytest.raises(ConfigError, match="yelp twin: expected at least 10 restaurants"):
            yelp_twin(*sizes)


def test_tf_idf_by_hand() -> None:
    carries = np.array([[True, False], [True, True]])
    weights = tf_idf(carries, np.array([False, False]))
    rare = np.log(3 / 2) + 1
    np.testing.assert_allclose(weights, [[1, 0], [1 / np.hypot(1, rare), rare / np.hypot(1, rare)]])
    assert tf_idf(carries, np.array([True, False]))[0, 0] == pytest.approx(1 / np.hypot(1, 8.5))


def test_implied_terms_are_completed() -> None:
    start = np.array([[True, False, False], [False, True, False], [False, False, True]])
    assert complete(start, ((0, 1), (1, 2))).tolist() == [[True] * 3, [False, True, True], [False, False, True]]


@settings(max_examples=20, deadline=None)
@given(rho=st.floats(-0.8, 0.95), one=st.floats(0.02, 0.6), other=st.floats(0.02, 0.6))
def test_tetrachoric_correlation_inverts_the_bivariate_normal(rho: float, one: float, other: float) -> None:
    thresholds = -norm.isf([one, other])
    both = multivariate_normal([0, 0], [[1, rho], [rho, 1]]).cdf(thresholds)
    if both > 1e-6:
        found = tetrachoric(np.array([both]), np.array([one]), np.array([other]))
        assert found[0] == pytest.approx(rho, abs=2e-3)


def test_nearest_correlation_is_one() -> None:
    impossible = np.array([[1, 0.9, -0.9], [0.9, 1, 0.9], [-0.9, 0.9, 1]])
    near = nearest_correlation(impossible, steps=50)
    np.testing.assert_allclose(np.diag(near), 1.0)
    assert np.linalg.eigvalsh(near)[0] > 0
    assert np.abs(near - impossible).max() < 0.5
    possible = np.array([[1, 0.5], [0.5, 1]])
    np.testing.assert_allclose(nearest_correlation(possible, steps=5), possible, atol=1e-9)


def test_candidates_follow_thresholds_and_correlations() -> None:
    statistics = load_statistics()
    shares = draw_candidates(statistics, 40_000, seed=0).mean(0)
    expected = norm.sf(statistics.thresholds)
    free = [t for t in range(len(expected)) if t not in {companion for _, companion in statistics.implied}]
    np.testing.assert_allclose(shares[free], expected[free], atol=0.01)


def test_statistics_file_is_small_aggregate_and_survives_a_round_trip() -> None:
    text = STATISTICS.read_text(encoding="utf-8")
    assert len(text) < 300_000
    record = json.loads(text)
    again = record_of(statistics_of(record))
    moved = np.abs(np.subtract(again["correlations_thousandths"], record["correlations_thousandths"]))
    assert moved.max() <= 2  # positive definite up to rounding
    assert again["terms"] == record["terms"]
    assert again["sizes"] == record["sizes"]


def test_foreign_facts_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="expected a JSON file of facts"):
        read_facts(tmp_path / "none.json")
    (tmp_path / "other.json").write_text("{}")
    with pytest.raises(DataError, match="expected facts with cooccurrence_min40"):
        read_facts(tmp_path / "other.json")


def test_without_plain_leaves_out_those_that_list_nothing_else_and_no_others() -> None:
    whole = yelp_twin(n_restaurants=3000, n_rounds=5)
    part = without_plain(whole)
    everywhere = whole.features.index("restaurants")
    alone = (whole.arms != 0).sum(1) == 1
    plain = alone & (whole.arms[:, everywhere] == 1)
    assert 0 < plain.sum() < alone.sum()  # some list one more category that is too rare to be kept
    assert part.arm_ids.tolist() == whole.arm_ids[~plain].tolist()
    assert np.array_equal(part.arms, whole.arms[~plain])
    assert np.array_equal(part.rounds, whole.rounds)
