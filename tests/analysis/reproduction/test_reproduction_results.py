"""Table 1 as numbers, and the runs of every phase."""

from __future__ import annotations

from dataclasses import replace

import pytest
from invented_records import MakeRecord
from invented_reproduction import MOVIELENS, runs

from neuclust.analysis.reproduction.results import (
    Reproduction,
    inferred_regret,
    runs_by_phase,
    summary_rows,
    table_rows,
    without_settings,
)
from neuclust.experiment.problem import Problem
from neuclust.experiment.reproduction.phases import (
    AUTHORS,
    CLUSTERS,
    OURS,
    PAPER,
    all_tasks,
    full_scale,
    open_study,
    phases,
)
from neuclust.registry import POLICIES

STABLE_KEYS = {
    "policy", "preset", "protocol", "expected_regret_mean", "expected_regret_se", "clipped_mean", "clipped_floor",
    "reward_mean", "seconds_mean", "published_regret", "published_seconds", "seeds",
}  # fmt: skip


def test_regret_behind_a_published_number_is_what_lies_above_the_floor(
    reproduced: Reproduction, record: MakeRecord
) -> None:
    """SPEC: floor 139.75 and u* = 0.832 turn 152 into about 14.7 and 403 into about 316."""
    real = record("neuclust", 0, 14.7, 1000, clipped_floor=139.75, best_expected=832.039)
    rows = {row.policy: row for row in table_rows(reproduced)}
    reproduced = replace(reproduced, runs={PAPER: (real,)})
    assert inferred_regret(reproduced, rows["neuclust"]) == pytest.approx(14.7, abs=0.05)
    assert inferred_regret(reproduced, rows["cc-mab"]) == pytest.approx(316.4, abs=0.05)
    assert inferred_regret(replace(reproduced, rounds=120), rows["neuclust"]) is None


def test_a_shared_run_is_called_what_each_phase_asked_for(record: MakeRecord) -> None:
    reproduced = phases(open_study(MOVIELENS, Problem(env="movielens-twin"), full_scale(MOVIELENS)))
    played = {task.key: record("somebody", task.seed, 1.0) for task in all_tasks(reproduced)}
    runs, missing = runs_by_phase(reproduced, played)
    assert missing == 0
    assert {run.clusters for run in runs[CLUSTERS]} == {1, 5, 10, 15, 20, 22, 25, 30, 40}
    assert {run.clusters for run in runs[PAPER]} == {None}
    assert {run.policy for run in runs[OURS]} == set(POLICIES)
    first = next(iter(played))
    assert runs_by_phase(reproduced, {first: played[first]})[1] == len(played) - 1


def test_settings_of_a_quick_look_leave_the_names(record: MakeRecord) -> None:
    settings = {"clustering.n_init": "1", "arms.schedule.gamma": "0.5"}
    runs = {PAPER: (record("neuclust", 0, 1.0, settings=settings), record("uniform", 0, 1.0))}
    named = without_settings(runs, {"clustering.n_init": "1", "arms.schedule.gamma": "1"})
    assert [run.settings for run in named[PAPER]] == [{"arms.schedule.gamma": "0.5"}, {}]


def test_summary_rows_keep_their_names_and_hold_every_phase(reproduced: Reproduction) -> None:
    reproduced = replace(reproduced, runs={**reproduced.runs, AUTHORS: runs({"cn-ucb": 12.0}, preset="authors-ml")})
    rows = summary_rows(reproduced)
    assert all(row.keys() >= STABLE_KEYS for row in rows)
    assert len({tuple(row) for row in rows}) == 1
    assert {row["protocol"] for row in rows} == {PAPER, OURS, CLUSTERS, AUTHORS}
    theirs = next(row for row in rows if row["protocol"] == AUTHORS)
    assert (theirs["policy"], theirs["preset"], theirs["seeds"], theirs["published_regret"]) == (
        "cn-ucb", "authors-ml", 6, 168,
    )  # fmt: skip
    assert len([row for row in rows if row["protocol"] == CLUSTERS]) == 6
