"""The table says who lost least, by how much, and when that is only noise."""

from __future__ import annotations

import csv
import io

import pytest
from invented_records import MakeRecord

from neuclust.analysis.groups import problems
from neuclust.analysis.summary import floor_note, summaries
from neuclust.report import results
from neuclust.report.folder import sections
from neuclust.report.html import Provenance, page
from neuclust.report.results import csv_table, text_table


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


def test_a_column_is_one_declaration_for_every_table(record: MakeRecord, monkeypatch: pytest.MonkeyPatch) -> None:
    further = results.metric("arm_successes", "rewarded\narms")
    monkeypatch.setattr(results, "COLUMNS", (*results.COLUMNS, further))
    runs = [record("a", seed, 1.0, arm_successes=40.0 + seed) for seed in range(2)]
    (summary,) = summaries(runs)
    assert "40.50 ± 0.50" in text_table(runs)
    assert csv_table([summary]).splitlines()[0].endswith(",arm_successes,arm_successes_se")
    assert csv_table([summary]).splitlines()[1].endswith(",40.5,0.5")
    assert r"rewarded arms \\" in results.latex_table(summary)
    text = page("Results", sections(runs), (), Provenance("", "", ""))
    assert '<th scope="col">rewarded arms</th>' in text
    assert "<td>40.50 ± 0.50</td>" in text


def test_one_seed_is_warned_about_only_where_policies_are_compared(record: MakeRecord) -> None:
    assert "One seed has no standard error" in text_table([record("a", 0, 1.0), record("b", 0, 2.0)])
    assert "One seed has no standard error" not in text_table([record("a", 0, 1.0), record("oracle", 0, 0.0)])


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
    first, second = csv.DictReader(io.StringIO(csv_table(summaries(runs))))
    assert float(first["expected_regret"]) == 1 / 3
    assert first["expected_regret_se"] == first["difference_to_best"] == ""
    assert float(second["difference_to_best"]) == 2.0 - 1 / 3
    assert float(second["expected_regret_se"]) == pytest.approx(0.5)
    assert second["verdict"] == "too few seeds"


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
