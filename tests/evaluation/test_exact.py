"""Exact expectations of estimators over all slates of 3 of 6 arms: the truth where assumptions hold, bias elsewhere.

The problems are those of benchmarks/estimator_bias.py, which prints the table.
"""

from __future__ import annotations

from functools import lru_cache, partial

import numpy as np
import pytest
from numpy.typing import NDArray

from benchmarks.estimator_bias import (
    DESIGNS,
    ESTIMATED,
    NORMALISED,
    POPULATIONS,
    PULLS,
    REWARDS,
    SLATES,
    TARGETS,
    Everything,
    bias_of_logs,
    chance,
    everything,
    picked,
    population,
)
from neuclust.evaluation.estimators import modelled, weighting
from neuclust.evaluation.estimators.rows import Rows

Floats = NDArray[np.float64]
UNBIASED = ["ips", "iips", "rips", "pi", "cascade-dr", "dr"]
CLEARLY = 0.01


@lru_cache(None)
def case(design: str, target: str, reward: str) -> Everything:
    return everything(design, target, REWARDS[reward])


@pytest.mark.parametrize("design", DESIGNS)
@pytest.mark.parametrize("target", TARGETS)
def test_chances_of_all_slates_sum_to_one(design: str, target: str) -> None:
    """Fails when the slates enumerated are not all there are, under the design or under the target."""
    round = DESIGNS[design][0]
    assert case(design, target, "item").chances.sum() == pytest.approx(1, abs=1e-14)
    assert sum(chance(TARGETS[target], round, slate) for slate in SLATES) == pytest.approx(1, abs=1e-14)


@pytest.mark.parametrize("design", DESIGNS)
@pytest.mark.parametrize("name", UNBIASED)
def test_the_expectation_is_the_truth_where_the_assumption_holds(name: str, design: str) -> None:
    """Fails when a weight, a marginal or a baseline is not the exact one, by more than rounding."""
    estimator, holds = ESTIMATED[name]
    for reward in holds:
        for target in TARGETS:
            assert abs(case(design, target, reward).bias(estimator)) < 1e-12, (reward, target)


@pytest.mark.parametrize("design", DESIGNS)
@pytest.mark.parametrize("name", ["iips", "rips", "pi", "cascade-dr"])
def test_the_bias_is_clear_where_the_assumption_does_not_hold(name: str, design: str) -> None:
    """Fails when an estimator is right where it should not be: then it does not do what it says."""
    estimator, holds = ESTIMATED[name]
    for reward in set(REWARDS) - set(holds):
        assert max(abs(case(design, target, reward).bias(estimator)) for target in TARGETS) > CLEARLY


@pytest.mark.parametrize("name", ["ips", "dr", "pi"])
def test_any_click_is_a_slate_reward_like_others_but_not_additive(name: str) -> None:
    """Fails when slate estimators read slots' rewards, or the pseudo-inverse is right for a reward that is no sum."""
    any_click = [1 - (1 - PULLS[list(slate)]).prod() for slate in SLATES]
    for design, target in [("uniform", "random"), ("one coin", "deterministic")]:
        found, round = case(design, target, "item"), DESIGNS[design][0]
        truth = sum(chance(TARGETS[target], round, slate) * paid for slate, paid in zip(SLATES, any_click, strict=True))
        rows = {each: getattr(found.rows, each) for each in Rows.__dataclass_fields__}
        paid = Rows(**{**rows, "rewards": None, "slate_rewards": np.array(any_click)})
        bias = float(found.chances @ ESTIMATED[name][0](paid).values - truth)
        assert (abs(bias) < 1e-12) is (name != "pi")


# --- bias and its limit ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("design", DESIGNS)
def test_switch_is_biased_by_the_residuals_above_its_threshold(design: str) -> None:
    """Fails when switch drops other rows than those above τ, or is not dr where τ is above all."""
    for target in TARGETS:
        found = case(design, target, "cascade")
        weights = weighting.slate_weights(found.rows)
        for threshold in (0.0, 1.5, 5.0, float(weights.max())):
            above = weights > threshold
            residuals = found.rows.of("slate_rewards") - found.rows.of("model_logged")
            wanted = -float((found.chances * weights * residuals)[above].sum())
            bias = found.bias(partial(modelled.switch, threshold=threshold))
            assert bias == pytest.approx(wanted, abs=1e-12)
        assert abs(bias) < 1e-12


def test_the_threshold_of_switch_grows_with_the_log() -> None:
    """Fails when switch without a threshold is not the one with √n, under which a longer log drops fewer rows."""
    found = case("sequential", "random", "cascade")
    dropped = []
    for copies in (1, 100):
        rows = picked(found.rows, list(range(len(found.chances))) * copies)
        plain, root = modelled.switch(rows), modelled.switch(rows, threshold=len(rows) ** 0.5)
        np.testing.assert_array_equal(plain.values, root.values)
        dropped.append(float((plain.weights == 0).mean()))
    assert dropped[0] > dropped[1]


@pytest.mark.parametrize("target", TARGETS)
def test_the_direct_method_is_wrong_by_its_model_whatever_was_logged(target: str) -> None:
    """Fails when the direct method reads the log's rewards, or its bias is not E_π[r̂ − R]."""
    biases = [case(design, target, "cascade").bias(modelled.direct) for design in DESIGNS if "rules" not in design]
    assert np.ptp(biases) < 1e-12
    assert abs(biases[0]) > CLEARLY
    round, found = DESIGNS["uniform"][0], case("uniform", target, "cascade")
    model = dict(zip(SLATES, found.rows.of("model_logged"), strict=True))
    paid = dict(zip(SLATES, found.rows.of("slate_rewards"), strict=True))
    wanted = sum(chance(TARGETS[target], round, slate) * (model[slate] - paid[slate]) for slate in SLATES)
    assert biases[0] == pytest.approx(wanted, abs=1e-12)


@pytest.mark.parametrize("name", NORMALISED)
@pytest.mark.parametrize("design", POPULATIONS)
def test_self_normalised_forms_end_at_the_truth(name: str, design: str) -> None:
    """Fails when a self-normalised form, on a log that holds every slate as often as its chance says, is not exact."""
    estimator, holds = NORMALISED[name]
    for reward in REWARDS:
        found = [case(design, target, reward) for target in TARGETS]
        logs = [population(each, POPULATIONS[design]) for each in found]
        biases = [abs(estimator(log).estimate - each.truth) for log, each in zip(logs, found, strict=True)]
        assert max(biases) < 1e-12 if reward in holds else max(biases) > CLEARLY


def test_one_row_self_normalised_is_what_was_logged_and_two_are_between() -> None:
    """Fails when the bias for few rows is not the exact one: on one row snips gives the logging policy's value."""
    found = case("one coin", "random", "item")
    logged = float(found.chances @ found.rows.of("slate_rewards"))
    one, two = (bias_of_logs(found, weighting.snips, rows) for rows in (1, 2))
    assert one == pytest.approx(logged - found.truth, abs=1e-12)
    assert CLEARLY < abs(two) < abs(one)


def drawn_log(rows: int) -> Rows:
    found = case("sequential", "random", "cascade")
    return picked(found.rows, np.random.default_rng(3).choice(len(found.chances), rows, p=found.chances).tolist())


@pytest.mark.parametrize("name", [*NORMALISED, *UNBIASED, "dm"])
def test_contributions_have_the_estimate_as_their_mean(name: str) -> None:
    """Fails when contributions, linearised ones too, do not average to the estimate."""
    result = {**ESTIMATED, **NORMALISED}[name][0](drawn_log(50))
    assert result.values.shape == result.weights.shape == (50,)
    assert result.values.mean() == pytest.approx(result.estimate, abs=1e-12)


def ratio(weights: Floats, rewards: Floats) -> float:
    """Σ_j Σ_i w_ij r_ij / Σ_i w_ij."""
    return float(((weights * rewards).sum(0) / weights.sum(0)).sum())


def test_self_normalised_estimates_are_ratios_of_sums() -> None:
    """Fails when a self-normalised form divides by another slot's weights, or by none."""
    rows = drawn_log(50)
    whole, prefix, slot = weighting.slate_weights(rows), weighting.prefix_weights(rows), weighting.slot_weights(rows)
    paid, rewards, residuals = rows.of("slate_rewards"), rows.of("rewards"), rows.of("rewards") - rows.of("q_hat")
    before = np.concatenate([np.ones((50, 1)), prefix[:, :-1]], axis=1)
    wanted = {
        "snips": ratio(whole, paid),
        "siips": ratio(slot, rewards),
        "srips": ratio(prefix, rewards),
        "scascade-dr": ratio(prefix, residuals) + ratio(before, rows.of("v_hat")),
        "sndr": rows.of("model_target").mean() + ratio(whole, paid - rows.of("model_logged")),
    }
    for name, (estimator, _) in NORMALISED.items():
        assert estimator(rows).estimate == pytest.approx(wanted[name], abs=1e-12)


@pytest.mark.parametrize("name", NORMALISED)
def test_linearised_contributions_have_the_spread_of_the_estimate(name: str) -> None:
    """Fails when the spread of linearised contributions is not that of estimates over repeated logs, within 15 %."""
    found = case("uniform", "random", "cascade")  # good overlap
    rng, rows, logs = np.random.default_rng(5), 1000, 400
    chosen = rng.choice(len(found.chances), (logs, rows), p=found.chances)
    results = [NORMALISED[name][0](picked(found.rows, log)) for log in chosen]
    spread = np.std([result.estimate for result in results])
    errors = np.mean([np.std(result.values) for result in results]) / rows**0.5
    assert errors == pytest.approx(spread, rel=0.15)
