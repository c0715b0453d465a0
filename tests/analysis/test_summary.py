"""The table as numbers: who lost least, by how much over paired seeds."""

from __future__ import annotations

import math

import numpy as np
import pytest
from invented_records import MakeRecord

from neuclust.analysis.compare import compare
from neuclust.analysis.estimates import Estimate
from neuclust.analysis.summary import summaries


def test_rows_are_sorted_by_regret_and_paired_with_the_best_learner(record: MakeRecord) -> None:
    regrets = {"uniform": [30.0, 40.0, 50.0], "linucb": [1.0, 2.0, 3.0], "oracle": [0.0, 0.0, 0.0]}
    runs = [record(policy, seed, regret) for policy, values in regrets.items() for seed, regret in enumerate(values)]
    (summary,) = summaries(runs)
    assert [row.contender.policy for row in summary.rows] == ["oracle", "linucb", "uniform"]
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


def test_the_table_has_the_verdicts_of_the_comparison(record: MakeRecord) -> None:
    runs = []
    for seed in range(9):
        wave = (-1) ** seed * (1 + seed / 10)
        shifts = {"a": 0.0, "b": 0.3 * wave, "c": 5.0, "d": 0.0, "e": 0.1 + wave / 20}
        runs += [record(name, seed, 10.0 + seed % 4 + shift) for name, shift in shifts.items()]
    runs += [record("f", 90, 99.0), record("oracle", 0, 0.0)]
    (summary,), (comparison,) = summaries(runs), compare(runs)
    best = next(row.contender.policy for row in summary.rows if row.verdict == "best")
    rows = {row.contender.policy: row.verdict for row in summary.rows if row.verdict not in ("best", "reference")}
    assert rows == {pair.title: pair.verdict for pair in comparison.pairs if pair.against == best}
    assert {"noise", "more regret", "no common seeds"} <= set(rows.values())


def test_interrupted_runs_do_not_pull_the_means_down(record: MakeRecord) -> None:
    cut = record("a", 1, 0.1, rounds=3, rounds_asked=100, interrupted=True)
    (summary,) = summaries([record("a", 0, 8.0), cut])
    assert summary.rows[0].over_seeds("expected_regret") == Estimate(8.0, None)
    assert any("a (seed 1) stopped after round 3 of 100" in note and "left out" in note for note in summary.notes)
    (alone,) = summaries([cut])
    assert alone.rows[0].over_seeds("expected_regret") == Estimate(0.1, None)
    assert alone.problem.rounds == 3
    assert any("stopped after round 3 of 100" in note for note in alone.notes)


def test_nothing_gives_no_table() -> None:
    assert summaries([]) == []
