"""Cells, effects and verdict of a grid of readings, from records in which every difference is known."""

from __future__ import annotations

import math
from collections.abc import Mapping

import pytest
from invented_multiverse import SEEDS, invented_multiverse

from neuclust.analysis.multiverse.effects import interactions, main_effects
from neuclust.analysis.multiverse.outcomes import AHEAD, BEHIND, FAILED, covers_printed, estimate, outcomes_of
from neuclust.analysis.multiverse.verdict import verdict_of


def known(chosen: Mapping[str, str], role: str, seed: int) -> float | None:
    """Differences −10; +25 where the start is the other; +4 at a fifth; −6 more where both. F is worth −3."""
    base = 30.0 + seed  # the same for all roles: only a paired analysis loses it
    if role == "cn-ucb":
        return base
    noise = 0.1 * (-1) ** seed  # of mean 0
    other, fifth = chosen["start"] == "other", chosen["scale"] == "fifth"
    gap = -10.0 + 25.0 * other + 4.0 * fifth - 6.0 * (other and fifth) + noise
    return float(base + gap + (3.0 if role == "without-f" else 0.0))


def test_a_cell_is_its_paired_difference_whatever_the_seeds_have_in_common() -> None:
    first = outcomes_of(invented_multiverse(known))[0]
    assert first.gap.mean == pytest.approx(-10.0)
    assert first.gap.error == pytest.approx(0.1 * math.sqrt(8 / 7) / math.sqrt(8))  # not the spread of the seeds
    assert first.gap.high - first.gap.mean == pytest.approx(2.364624 * first.gap.error, rel=1e-5)  # t of 7 degrees
    assert first.effect_of_f.mean == pytest.approx(-3.0)
    assert (first.order, first.sound) == (AHEAD, True)


def test_effects_and_interactions_are_the_ones_put_in() -> None:
    record = invented_multiverse(known)
    cells = outcomes_of(record)
    effects = {effect.words: effect for effect in main_effects(record, cells)}
    assert effects["start=other"].change.mean == pytest.approx(25.0 - 6.0 / 2)
    assert effects["scale=fifth"].change.mean == pytest.approx(4.0 - 6.0 / 2)
    assert effects["order=sorted"].change.mean == pytest.approx(0.0, abs=1e-12)
    assert (effects["start=other"].cells, effects["start=other"].turned) == (4, 4)
    assert effects["scale=fifth"].turned == 0
    first, *others = interactions(record, cells)
    assert first.words == "start=other, scale=fifth"
    assert first.change.mean == pytest.approx(-6.0)
    assert all(abs(other.change.mean) < 1e-9 for other in others)


def test_the_verdict_names_what_the_order_turns_on() -> None:
    verdict = verdict_of(invented_multiverse(known))
    assert verdict.sound_orders[AHEAD] == verdict.sound_orders[BEHIND] == 4
    assert verdict.sentence == (
        "The order holds in 4 of 8 cells whose networks trained (level in 0, turned round in 4), and in 4 of all 8; "
        "it turns on start=other (in 4 of 4 pairs of cells)."
    )
    assert (verdict.f_helps, verdict.f_hurts) == (8, 0)


def test_cells_that_failed_count_as_failed_and_those_that_did_not_train_stay_out_of_effects() -> None:
    def regret(chosen: Mapping[str, str], role: str, seed: int) -> float | None:
        gone = chosen["start"] == "other" and chosen["scale"] == "fifth" and role != "cn-ucb"
        return None if gone else known(chosen, role, seed)

    record = invented_multiverse(regret, failed=lambda chosen: 800 * (chosen["order"] == "sorted"))
    cells = outcomes_of(record)
    assert [cell.order for cell in cells].count(FAILED) == 2
    assert sum(cell.sound for cell in cells) == 3
    effects = {effect.words: effect for effect in main_effects(record, cells)}
    assert (effects["start=other"].cells, effects["start=other"].sound) == (1, True)
    assert (effects["order=sorted"].cells, effects["order=sorted"].sound) == (3, False)
    assert verdict_of(record).orders[FAILED] == 2


def test_seeds_that_one_of_the_two_did_not_play_are_left_out() -> None:
    record = invented_multiverse(
        lambda chosen, role, seed: None if role == "neuclust" and seed > 4 else known(chosen, role, seed)
    )
    assert outcomes_of(record)[0].gap.count == 5 < len(SEEDS)


def test_more_tests_make_wider_intervals_and_one_seed_makes_none() -> None:
    values = [1.0, 2.0, 4.0]
    assert estimate(values, tests=10).high > estimate(values).high
    assert not estimate([3.0]).decided


def test_a_printed_mean_fits_where_ten_further_runs_would_give_it() -> None:
    values = [150.0, 160.0, 155.0, 165.0]
    assert covers_printed(values, 160.0)
    assert not covers_printed(values, 180.0)
