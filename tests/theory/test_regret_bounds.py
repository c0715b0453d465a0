"""Eq. 8 and Lemmas 1 to 3 written out by hand, and the ends of λ_1."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from neuclust.models.schedules import Progress, ScheduleConfig, theory_gamma
from neuclust.theory import bounds
from neuclust.theory.bounds import ClusterTerms, Constants

SCHEDULE = ScheduleConfig("theory", noise=0.4, confidence=0.05, norm_bound=1.7, c_1=0.8, c_gamma_2=1.3)
PROGRESS = Progress(60, 9.5, 0.5, 30, 2, 1e-3, 25)
CONSTANTS = Constants(1.2, 0.7, 0.9, 1.1, 1.4, 0.25, 6, 2)


def test_the_terms_are_those_of_the_schedule_and_sum_to_its_gamma() -> None:
    terms = bounds.eq_8(SCHEDULE, PROGRESS)
    assert terms.value == pytest.approx(theory_gamma(SCHEDULE, PROGRESS), rel=1e-12)
    decay = 30 ** (-1 / 6) * math.sqrt(math.log(30))
    assert terms.gamma_2 == pytest.approx(1.3 * 60 ** (5 / 3) * 16 * 0.5 ** (-1 / 6) * decay)
    assert terms.noise == pytest.approx(0.4 * math.sqrt(9.5 + terms.gamma_2 - 2 * math.log(0.05)))
    assert terms.norm == pytest.approx(math.sqrt(0.5) * 1.7)
    assert terms.factor == pytest.approx(0.5 + 0.8 * 60 * 2)
    assert terms.descent == pytest.approx((1 - 1e-3 * 30 * 0.5) ** 12.5 * math.sqrt(120))
    assert terms.value == pytest.approx(terms.statistical + terms.optimisation)


def test_before_any_reward_gamma_is_the_self_normalised_radius() -> None:
    first = replace(PROGRESS, observations=0, logdet=0.0)
    assert bounds.eq_8(SCHEDULE, first).value == pytest.approx(theory_gamma(SCHEDULE, first))


def test_sizes_on_movielens_are_those_that_were_worked_out() -> None:
    terms = bounds.eq_8(ScheduleConfig("theory"), Progress(5000, 100.0, 1.0, 20, 1, 1e-3, 40))
    assert terms.gamma_1 == pytest.approx(147, abs=1)  # SPEC §1.5
    assert terms.gamma_2 == pytest.approx(1.5e6, rel=0.05)
    assert terms.gamma_3 == pytest.approx(1.6e6, rel=0.05)
    assert terms.value == pytest.approx(8e9, rel=0.05)


def test_a_step_too_long_for_descent_is_shown_not_refused() -> None:
    assert bounds.eq_8(SCHEDULE, replace(PROGRESS, step=1.0)).descent > math.sqrt(120)


def test_e_t_by_hand() -> None:
    found = bounds.offset(2.0, PROGRESS, CONSTANTS)
    first = 0.9 * 2.0 * 60 ** (1 / 6) * 2**3.5 + 1.1 * 60 ** (2 / 3)
    assert found == pytest.approx(first * 30 ** (-1 / 6) * 0.5 ** (-2 / 3) * math.sqrt(math.log(30)))


def test_lemma_1_holds_its_own_choice_and_the_printed_one_only_for_two_rounds() -> None:
    assert bounds.lemma_1(100, 4.0, 0.5) == pytest.approx(4 * 5 * 5)
    for rounds in (2, 3, 1000):
        power = 9 / rounds  # 9T^{−βα} with βα = 1
        assert (power >= 4) == (rounds <= bounds.largest_rounds())
    assert 9 / bounds.largest_rounds() == 4


def test_the_price_of_f_is_lemma_2_times_bk_and_grows_like_the_root() -> None:
    found = bounds.slate_term(3, 50, 2.0, CONSTANTS)
    assert found == pytest.approx(4 * 1.2 * 9 / math.sqrt(2.0) * 4.5 * math.sqrt(50) * 36)
    assert found == pytest.approx(1.2 * 3 * bounds.slate_bound(3, 50, 2.0, CONSTANTS))
    assert bounds.slate_term(3, 5000, 2.0, CONSTANTS) == pytest.approx(10 * found)  # so ΣP grows like T^1.5
    assert bounds.printed_slate_term(3, 50, 2.0, CONSTANTS) == pytest.approx(
        4 * 1.2 * 9 / math.sqrt(2.0) * 9 / math.sqrt(50) * 36
    )


def test_exploration_and_optimism_by_hand() -> None:
    assert bounds.exploration_term(1.5, 0.3, 4, CONSTANTS) == pytest.approx(2 * 1.2 * 1.5 * 2 * math.sqrt(0.3))
    assert bounds.optimism_term(0.6, 4, CONSTANTS) == pytest.approx(1.2 * 4 * 0.6)


def test_the_cluster_term_by_hand_and_infinite_where_centroids_are_at_right_angles() -> None:
    terms = ClusterTerms(0.3, 0.8, 1.6, 0.5)
    reach = 40 * 1.6 * 0.3 * 3 / 0.5
    assert bounds.cluster_term(terms, 4, 40, 9, CONSTANTS) == pytest.approx(0.7 * 1.2 * 4 * reach * (1.4 / 0.8 + 1))
    for worse in (replace(terms, best=0.0), replace(terms, least=0.0), replace(terms, reverse=math.inf)):
        assert bounds.cluster_term(worse, 4, 40, 9, CONSTANTS) == math.inf


def test_the_floor_of_delta_drift_and_lemma_11_by_hand() -> None:
    assert bounds.least_separation(1.6, 0.5, 9) == pytest.approx(0.5 / 4.8)
    assert bounds.least_separation(math.inf, 0.5, 9) == 0.0
    assert bounds.drift_bound(60, 30, 0.5) == pytest.approx(4.0)
    assert bounds.width_sum_bound(3.0, 10, 20, 0.5) == pytest.approx(6 * math.log(401) + 2)


def test_between_the_ends_of_lambda_e_t_is_below_f_and_f_below_its_bound() -> None:
    value = 0.8
    least, most = bounds.offset(2.0, PROGRESS, CONSTANTS), bounds.slate_bound(3, 50, 0.5, CONSTANTS)
    low, high = bounds.ridge_ends(value, least, most, 0.5)
    assert bounds.offset(2.0, replace(PROGRESS, ridge=low), CONSTANTS) == pytest.approx(value)
    assert bounds.slate_bound(3, 50, high, CONSTANTS) == pytest.approx(value)
    assert all(math.isnan(end) for end in bounds.ridge_ends(0.0, least, most, 0.5))
