"""docs/figures/figure-N-….svg are drawn from docs/records; the runs kept there are those of the study's table."""

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from invented_records import invented

from neuclust.experiment.reproduction.lines import line_of
from neuclust.experiment.reproduction.phases import AUTHORS, PAPER, STUDIES
from neuclust.report.drawing import svg_text
from tools.reproduction_figures import FIGURES, kept_records, pictures, record_of, reproduction_of

NAMES = [
    *("figure-2-clipped-regret", "figure-2-expected-regret", "figure-3-clipped-regret", "figure-3-expected-regret"),
    *("figure-4-reward", "figure-5-reward", "figure-6-elbow", "figure-7-elbow", "figure-8-clusters"),
    "figure-9-clusters",
]


@pytest.fixture(scope="module")
def records() -> dict[str, Any]:
    return kept_records()


def test_every_figure_is_drawn_from_the_records(records: dict[str, Any]) -> None:
    drawn = pictures(records)
    assert [picture.name for picture in drawn] == NAMES
    for picture in drawn:
        assert svg_text(picture.figure) == (FIGURES / f"{picture.name}.svg").read_text(encoding="utf-8"), picture.name


def test_another_run_makes_another_figure(records: dict[str, Any]) -> None:
    other = {"yelp_runs": copy.deepcopy(records["yelp_runs"]), "movielens": records["movielens"]}
    for run in other["yelp_runs"]["runs"]["clusters"]:
        run["expected_regret"] += 50.0
    found = next(picture for picture in pictures(other) if picture.name == "figure-9-clusters")
    assert svg_text(found.figure) != (FIGURES / "figure-9-clusters.svg").read_text(encoding="utf-8")


def test_the_runs_of_the_figures_are_those_of_the_table(records: dict[str, Any]) -> None:
    found = reproduction_of(records["movielens_runs"])
    for policy in ("neuclust", "cn-ucb"):
        one = found.contender(PAPER, policy)
        assert one is not None
        rows = records["movielens"]["rows"]
        row = next(row for row in rows if (row["policy"], row["preset"], row["protocol"]) == (policy, "paper", PAPER))
        assert len(one.runs) == row["seeds"] == 10
        assert one.over_seeds("expected_regret").mean == pytest.approx(row["expected_regret_mean"], abs=1e-3)
        assert one.over_seeds("clipped_regret").mean == pytest.approx(row["clipped_mean"], abs=1e-3)


def test_five_seeds_of_everybody_at_full_size_on_the_twin(records: dict[str, Any]) -> None:
    found = reproduction_of(records["yelp_runs"])
    assert (found.source, found.rounds) == (None, 1000)
    for phase, policy in ((PAPER, "neuclust"), (PAPER, "cn-ucb"), (PAPER, "linucb-disjoint"), (AUTHORS, "neural-mab")):
        one = found.contender(phase, policy)
        assert one is not None
        assert [run.seed for run in one.runs] == [0, 1, 2, 3, 4]


def test_runs_are_sorted_into_the_parts_of_the_protocol() -> None:
    yelp = STUDIES["yelp"]
    runs = [
        invented("neuclust", 0, 9.0, preset="paper-yelp"),
        invented("neuclust", 0, 8.0, preset="paper-yelp", clusters=40),
        invented("neuclust", 0, 7.0),  # our default is no part of a figure
        invented("neural-mab", 0, 6.0, preset="authors-yelp"),
        invented("linucb", 0, 5.0, settings={"alpha": "3"}),
    ]
    record = json.loads(json.dumps(record_of(yelp, runs, [(1, 2.0)])))
    kept = {phase: [(run["policy"], run["clusters"]) for run in found] for phase, found in record["runs"].items()}
    assert kept == {
        "paper": [("neuclust", None)],
        "clusters": [("neuclust", 40), ("neuclust", 20)],
        "authors": [("neural-mab", None)],
    }
    again = reproduction_of(record).contender(PAPER, "neuclust")
    assert again is not None
    assert again.runs[0].curve[-1] == (100, 9.0)
    assert len(again.runs[0].curve) == 25


def test_lines_of_another_machine_are_read_back(tmp_path: Path) -> None:
    from neuclust.errors import DataError
    from neuclust.experiment.reproduction.lines import read_runs_of

    run, file = invented("linucb", 3, 1.5), tmp_path / "runs.jsonl"
    file.write_text(json.dumps(line_of("k", run)) + "\n" + json.dumps(line_of("k", run))[:40])
    assert read_runs_of([file, tmp_path / "none.jsonl"]) == {"k": run}
    file.write_text('{"policy": "linucb"}\n')
    with pytest.raises(DataError, match="expected a run under its key"):
        read_runs_of([file])
