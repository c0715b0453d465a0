"""Rows that are refused, padded slates, weights that are all 0, diagnostics, and the catalogue."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest

from neuclust.errors import ConfigError, DataError
from neuclust.evaluation.estimators import modelled, weighting
from neuclust.evaluation.estimators.catalogue import ESTIMATORS
from neuclust.evaluation.estimators.diagnostics import diagnostics, overlap
from neuclust.evaluation.estimators.rows import BY_SLOT, CHANCES, Rows

NAMES = [name for name in Rows.__dataclass_fields__ if name != "slots"]
FUNCTIONS = [*(spec.estimate for spec in ESTIMATORS.values()), modelled.scascade_dr, weighting.pseudo_inverse_product]


def columns(n: int, k: int, seed: int = 0) -> dict[str, Any]:
    """Every column there is, at random."""
    rng = np.random.default_rng(seed)
    return {name: rng.uniform(0.2, 0.9, (n, k) if name in BY_SLOT else (n,)) for name in NAMES}


@pytest.mark.parametrize("estimate", FUNCTIONS)
def test_padding_changes_nothing(estimate: Any) -> None:
    """Fails when what stands in a slot that a slate does not have reaches an estimate, NaN included."""
    given = columns(8, 3)
    padded = {name: np.full((8, 5), np.nan) if name in BY_SLOT else given[name] for name in NAMES}
    for name in NAMES:
        if name in BY_SLOT:
            padded[name][:, :3] = given[name]
    plain, wide = estimate(Rows(**given)), estimate(Rows(**padded, slots=np.arange(5)[None, :] < np.full((8, 1), 3)))
    assert wide.estimate == pytest.approx(plain.estimate, abs=1e-14)
    np.testing.assert_allclose(wide.values, plain.values, atol=1e-14)
    np.testing.assert_allclose(wide.weights, plain.weights, atol=1e-14)


@pytest.mark.parametrize("estimate", [weighting.iips, weighting.rips, weighting.ips, modelled.cascade_dr, modelled.dr])
def test_slates_of_several_lengths_are_estimated_row_by_row(estimate: Any) -> None:
    """Fails when a short slate's contribution depends on the longest slate of the log."""
    given = columns(2, 3)
    both = estimate(Rows(**given, slots=np.array([[True, True, False], [True] * 3])))
    short = {name: value[:1, :2] if name in BY_SLOT else value[:1] for name, value in given.items()}
    assert both.values[0] == pytest.approx(estimate(Rows(**short)).estimate, abs=1e-14)
    last = {name: value[1:] for name, value in given.items()}
    assert both.values[1] == pytest.approx(estimate(Rows(**last)).estimate, abs=1e-14)


def test_self_normalised_slots_count_for_the_rows_that_have_them() -> None:
    """Fails when a slot that few rows have is counted for all of them."""
    ones = np.ones((4, 2))
    rewards = np.array([[1.0, 9.0], [0.0, 9.0], [1.0, 9.0], [0.0, 4.0]])
    slots = np.array([[True, False], [True, False], [True, False], [True, True]])
    rows = Rows(rewards=rewards, logging=ones, target=ones, slots=slots)
    assert weighting.srips(rows).estimate == pytest.approx(0.5 + 4 / 4)


@pytest.mark.parametrize("name", ["snips", "siips", "srips", "sndr"])
def test_without_any_weight_there_is_no_estimate(name: str) -> None:
    """Fails when a self-normalised form makes up a number, or warns, where no row tells of the target."""
    given = {**columns(4, 2), "target": np.zeros((4, 2)), "target_marginals": np.zeros((4, 2))}
    result = ESTIMATORS[name].estimate(Rows(**given))
    assert np.isnan(result.estimate)
    assert np.isnan(result.values).all()
    assert diagnostics(result.weights).ess == 0


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"logging": np.array([[0.5, 0.0]])}, r"logging as chances in \(0, 1\], got 0.0 in row 0, slot 2"),
        ({"logging": np.array([[0.5, 1.5]])}, "got 1.5 in row 0, slot 2"),
        ({"logging_marginals": np.array([[-0.5, 1.0]])}, "got -0.5 in row 0, slot 1"),
        ({"target": np.array([[0.5, np.nan]])}, r"target as chances in \[0, 1\], got nan"),
        ({"target": np.array([[0.5, -0.1]])}, "got -0.1"),
        ({"slate_rewards": np.array([np.inf])}, "slate_rewards as numbers, got inf in row 0;"),
        ({"rewards": np.array([[np.nan, 1.0]])}, "rewards as numbers, got nan in row 0, slot 1"),
        ({"rewards": np.ones((1, 3))}, r"as \(rows, slots\) = \(1, 3\), got \(1, 2\)"),
        ({"rewards": np.ones(1)}, r"rewards as \(rows, slots\)"),
        ({"slate_rewards": np.ones(2)}, r"as \(rows, slots\) = \(2, 2\), got \(1, 2\)"),
        ({"slate_rewards": np.ones((1, 1))}, r"slate_rewards as \(rows,\)"),
        ({"slots": np.ones((1, 3), np.bool_)}, r"slots as \(rows, slots\)"),
    ],
)
def test_rows_that_cannot_be_are_refused(changed: dict[str, Any], message: str) -> None:
    """Fails when a chance of 0 or above 1, NaN, infinity or a shape that does not fit reaches an estimator."""
    given = {"logging": np.full((1, 2), 0.5), **changed}
    with pytest.raises(DataError, match=message):
        Rows(**given)


def test_empty_rows_are_refused() -> None:
    """Fails when a mean over no rows is taken."""
    with pytest.raises(DataError, match="got nothing"):
        Rows()
    with pytest.raises(DataError, match="slate_rewards"):
        Rows(slate_rewards=np.zeros(0))


@pytest.mark.parametrize("name", ESTIMATORS)
def test_needs_are_exactly_what_is_read(name: str) -> None:
    """Fails when an estimator reads a column it does not name, or names one that it could do without."""
    spec, given = ESTIMATORS[name], columns(5, 2)
    only = {each: given[each] for each in spec.needs}
    spec.estimate(Rows(**only))
    for each in spec.needs:
        rest = {other: value for other, value in only.items() if other != each} or {"rewards": given["rewards"]}
        assert spec.missing(Rows(**rest)) == (each,)
        with pytest.raises(DataError, match=f"expected {each} "):
            spec.estimate(Rows(**rest))


def test_the_catalogue_names_every_estimator_with_its_assumption() -> None:
    """Fails when a name is missing or misspelt, an assumption is no sentence, or a docstring has no assumption."""
    names = ["ips", "snips", "iips", "siips", "rips", "srips", "pi", "cascade-dr", "dm", "dr", "sndr", "switch"]
    assert list(ESTIMATORS) == names
    for spec in ESTIMATORS.values():
        assert spec.assumption.endswith(".")
        text = inspect.getdoc(spec.estimate) or ""
        assert "Assumes" in text
        assert "ails" in text
    assert {name for name, spec in ESTIMATORS.items() if spec.value == "slots"} == {
        "iips",
        "siips",
        "rips",
        "srips",
        "cascade-dr",
    }


def test_a_threshold_below_zero_is_refused() -> None:
    """Fails when switch drops every row in silence."""
    with pytest.raises(ConfigError, match="at least 0"):
        modelled.switch(Rows(**columns(3, 2)), threshold=-1.0)


# --- diagnostics ----------------------------------------------------------------------------------------------------


def test_diagnostics_by_hand() -> None:
    """Fails when ESS is not (Σw)²/Σw², or the largest weights and zeros are miscounted."""
    found = diagnostics(np.array([0.0, 1.0, 3.0, 0.0, 2.0, 0.5, 0.25]))
    assert found.ess == pytest.approx(6.75**2 / (1 + 9 + 4 + 0.25 + 0.0625))
    assert found.largest == (3.0, 2.0, 1.0, 0.5, 0.25)
    assert found.zeros == pytest.approx(2 / 7)
    assert found.mean == pytest.approx(6.75 / 7)
    assert diagnostics(np.ones(9)).ess == pytest.approx(9)


def test_overlap_is_that_of_each_slots_rows() -> None:
    """Fails when a slot's overlap counts rows that do not have it, or another kind of ratio."""
    given = columns(6, 3)
    slots = np.arange(3)[None, :] < np.array([3, 3, 2, 2, 1, 1])[:, None]
    rows = Rows(**given, slots=slots)
    ratios = given["target"] / given["logging"]
    for place in range(3):
        there = slots[:, place]
        wanted = [ratios[there, place], ratios.cumprod(1)[there, place]]
        wanted.append((given["target_marginals"] / given["logging_marginals"])[there, place])
        found = [overlap(rows)[place], overlap(rows, "prefix")[place], overlap(rows, "marginal")[place]]
        assert [each.ess for each in found] == pytest.approx([diagnostics(each).ess for each in wanted])
        assert found[0].rows == [6, 4, 2][place]
    assert set(CHANCES) < set(BY_SLOT)
