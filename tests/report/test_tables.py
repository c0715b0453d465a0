"""The table says who lost least, by how much over paired seeds, and when that is only noise."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neuclust.analysis.compare import compare
from neuclust.analysis.groups import Estimate, estimate, problems
from neuclust.experiment.records import RunRecord
from neuclust.report.tables import (
    csv_table,
    floor_note,
    is_within_noise,
    number,
    summaries,
    text_table,
    with_error,
)

MakeRecord = Callable[..., RunRecord]


@given(st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=20))
def test_estimates_are_mean_and_standard_error(values: list[float]) -> None:
    found = estimate(values)
    assert found.mean == pytest.approx(np.mean(values), abs=1e-6)
    assert found.error == pytest.approx(np.std(values, ddof=1) / math.sqrt(len(values)), abs=1e-6)


def test_one_seed_has_no_error() -> None:
    assert estimate([3.0]) == Estimate(3.0, None)


def test_rows_are_sorted_by_regret_and_paired_with_the_best_learner(record: MakeRecord) -> None:
    regrets = {"uniform": [30.0, 40.0, 50.0], "linucb": [1.0, 2.0, 3.0], "oracle": [0.0, 0.0, 0.0]}
    runs = [record(policy, seed, regret) for policy, values in regrets.items() for seed, regret in enumerate(values)]
    (summary,) = summaries(runs)
    assert [row.policy for row in summary.rows] == ["oracle", "linucb", "uniform"]
    assert [row.verdict for row in summary.rows] == ["reference", "best", "too few seeds"]
    gaps = np.array([29.0, 38.0, 47.0])  # seed by seed, not of the means
    difference = summary.rows[2].difference
    assert difference is not None
    assert difference.mean == pytest.approx(gaps.mean())
    assert difference.error == pytest.approx(gaps.std(ddof=1) / math.sqrt(3))


def test_pairing_uses_the_seeds_both_have(record: MakeRecord) -> None:
    runs = [record("a", 0, 1.0), record("a", 1, 2.0), record("b", 1, 5.0), record("b", 7, 900.0)]
    (summary,) = summaries(runs)
    assert summary.rows[1].difference == Estimate(3.0, None)


@pytest.mark.parametrize(
    ("mean", "error", "noise"),
    [(1.9, 1.0, True), (-1.9, 1.0, True), (2.1, 1.0, False), (0.0, 0.0, True), (1.0, 0.0, False)],
)
def test_noise_is_under_two_standard_errors(mean: float, error: float, noise: bool) -> None:
    assert is_within_noise(Estimate(mean, error)) is noise


def test_noise_is_said_in_words(record: MakeRecord) -> None:
    regrets = {
        "a": [10.0, 12.0, 11.0, 9.0, 13.0, 10.5, 11.5, 12.5],
        "b": [12.0, 10.0, 11.5, 11.0, 12.0, 11.0, 10.0, 13.5],
        "c": [50.0, 51.0, 52.0, 50.0, 51.0, 53.0, 51.5, 52.5],
    }
    runs = [record(policy, seed, regret) for policy, values in regrets.items() for seed, regret in enumerate(values)]
    text = text_table(runs)
    assert "(noise)" in next(line for line in text.splitlines() if line.strip().startswith("b "))
    assert "(" not in next(line for line in text.splitlines() if line.strip().startswith("c "))
    assert "Noise, no difference to a shown: b (two-sided Wilcoxon" in text
    assert "Holm's correction over the 3 differences" in text


def test_few_seeds_tell_nothing_and_the_table_says_how_many_could(record: MakeRecord) -> None:
    runs = [record(name, seed, regret + seed) for seed in range(5) for name, regret in (("a", 1.0), ("b", 100.0))]
    assert "No difference can be told from these 5 seeds" in text_table(runs)
    assert "6 seeds could" in text_table(runs)
    assert "(too few seeds)" in text_table(runs)


def test_the_table_has_the_verdicts_of_the_comparison(record: MakeRecord) -> None:
    runs = []
    for seed in range(9):
        wave = (-1) ** seed * (1 + seed / 10)
        shifts = {"a": 0.0, "b": 0.3 * wave, "c": 5.0, "d": 0.0, "e": 0.1 + wave / 20}
        runs += [record(name, seed, 10.0 + seed % 4 + shift) for name, shift in shifts.items()]
    runs += [record("f", 90, 99.0), record("oracle", 0, 0.0)]
    (summary,), (comparison,) = summaries(runs), compare(runs)
    best = next(row.policy for row in summary.rows if row.verdict == "best")
    rows = {row.policy: row.verdict for row in summary.rows if row.verdict not in ("best", "reference")}
    assert rows == {pair.title: pair.verdict for pair in comparison.pairs if pair.against == best}
    assert {"noise", "more regret", "no common seeds"} <= set(rows.values())


def test_an_oracle_below_the_floor_is_explained(record: MakeRecord) -> None:
    note = floor_note(139.75, 1000)
    assert "139.8, is an expectation" in note
    assert "scatters about it, by up to about ±11 here (one standard deviation), and can fall below it" in note
    assert "a floor of 0" in floor_note(0.0, 1000)
    assert floor_note(16.0, 100) in text_table([record("oracle", 0, 0.0, clipped_regret=11.0)])


def test_the_floor_stands_beside_clipped_regret_and_under_the_table(record: MakeRecord) -> None:
    text = text_table([record("linucb", 0, 10.0)])
    row = next(line for line in text.splitlines() if "linucb" in line)
    assert "24.00   16.00" in row
    assert "The floor of clipped regret, 16.00, is an expectation" in text
    assert "1.25 + 0.50" in row


def test_one_seed_is_warned_about_only_where_policies_are_compared(record: MakeRecord) -> None:
    assert "One seed has no standard error" in text_table([record("a", 0, 1.0), record("b", 0, 2.0)])
    assert "One seed has no standard error" not in text_table([record("a", 0, 1.0), record("oracle", 0, 0.0)])


def test_interrupted_runs_do_not_pull_the_means_down(record: MakeRecord) -> None:
    cut = record("a", 1, 0.1, rounds=3, rounds_asked=100, interrupted=True)
    (summary,) = summaries([record("a", 0, 8.0), cut])
    assert summary.rows[0].regret == Estimate(8.0, None)
    assert any("a (seed 1) stopped after round 3 of 100" in note and "left out" in note for note in summary.notes)
    (alone,) = summaries([cut])
    assert alone.rows[0].regret == Estimate(0.1, None)
    assert alone.rounds == 3
    assert any("stopped after round 3 of 100" in note for note in alone.notes)


def test_problems_and_settings_are_kept_apart(record: MakeRecord) -> None:
    runs = [
        record("a", 0, 1.0),
        record("a", 0, 2.0, env="clusters"),
        record("a", 0, 3.0, problem={"arms_per_round": 50}),
        record("a", 0, 4.0, settings={"gamma": "0.1"}),
    ]
    assert [len(problem.contenders) for problem in problems(runs)] == [2, 1, 1]
    assert "default (gamma=0.1)" in text_table(runs)
    assert "arms per round 50" in text_table(runs)


def test_csv_holds_full_precision_and_blanks(record: MakeRecord) -> None:
    runs = [record("a", 0, 1 / 3), record("b", 0, 2.0), record("b", 1, 3.0)]
    first, second = csv.DictReader(io.StringIO(csv_table(runs)))
    assert float(first["expected_regret"]) == 1 / 3
    assert first["expected_regret_se"] == first["difference_to_best"] == ""
    assert float(second["difference_to_best"]) == 2.0 - 1 / 3
    assert float(second["expected_regret_se"]) == pytest.approx(0.5)
    assert second["verdict"] == "too few seeds"


def test_nothing_gives_no_table() -> None:
    assert summaries([]) == []


@pytest.mark.parametrize(("value", "text"), [(319.84, "319.8"), (13.424, "13.42"), (0.2134, "0.213"), (-3.0, "-3.00")])
def test_numbers_have_the_decimals_a_reader_can_use(value: float, text: str) -> None:
    assert number(value) == text


def test_errors_share_the_decimals_of_their_mean() -> None:
    assert with_error(Estimate(320.0, 1.26)) == "320.0 ± 1.3"
    assert with_error(Estimate(1.5, None), sign=True) == "+1.50"


@pytest.mark.parametrize("width", [60, 80, 100, 150, 200])
def test_a_narrow_window_loses_columns_not_letters(record: MakeRecord, width: int) -> None:
    runs = [record(policy, seed, 10.0 + seed) for policy in ("neuclust-online", "cn-ucb") for seed in range(3)]
    text = text_table(runs, width)
    lines = [line for line in text.splitlines() if "neuclust-online " in line and "±" in line]
    assert len(lines) == 1
    assert "11.00 ± 0.58" in lines[0]
    assert "24.80 ± 0.46" in lines[0]
    assert "…" not in text
    assert ("too narrow for: select + update" in text) is (width < 150)
