"""Table 1, verdicts, figures and page of a reproduction, from invented records whose answers are known."""

from __future__ import annotations

import csv
import io
import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from neuclust.analysis.claims import order_verdict
from neuclust.analysis.groups import Estimate
from neuclust.analysis.published import PUBLISHED
from neuclust.experiment.problem import Problem
from neuclust.experiment.records import RunRecord
from neuclust.experiment.reproduction.phases import (
    AUTHORS,
    CLUSTERS,
    OURS,
    PAPER,
    READINGS,
    STUDIES,
    TUNED,
    all_tasks,
    full_scale,
    open_study,
    phases,
    quick_scale,
)
from neuclust.registry import POLICIES
from neuclust.report.reproduction import (
    DASH,
    Reproduction,
    Search,
    cells,
    csv_text,
    inferred_regret,
    label,
    latex_text,
    markdown_text,
    runs_by_phase,
    summary_rows,
    table_notes,
    table_rows,
    without_settings,
)
from neuclust.report.reproduction_figures import expected_clipped, floor_curve, paper_figures
from neuclust.report.reproduction_folder import write_reproduction
from neuclust.report.reproduction_readings import reading_title, readings_json
from neuclust.report.reproduction_verdicts import elbow_corner, printed_error, size_verdict, verdicts

MOVIELENS = STUDIES["movielens"]
STABLE_KEYS = {
    "policy", "preset", "protocol", "expected_regret_mean", "expected_regret_se", "clipped_mean", "clipped_floor",
    "reward_mean", "seconds_mean", "published_regret", "published_seconds", "seeds",
}  # fmt: skip
REGRETS = {
    "neuclust": 15.0, "cn-ucb": 30.0, "linucb-disjoint": 80.0, "cc-mab": 320.0, "linucb": 0.4, "static": 0.01,
    "uniform": 320.0, "oracle": 0.0,
}  # fmt: skip


@pytest.fixture
def runs(record):  # type: ignore[no-untyped-def]
    """Six seeds of every policy; regrets differ by seed in the same way for all, so that differences have no noise."""

    def make(regrets: dict[str, float], seeds: int = 6, rounds: int = 1000, **more: object) -> tuple[RunRecord, ...]:
        return tuple(
            record(policy, seed, regret + 0.1 * seed + 0.001 * seed * place, rounds, **more)
            for place, (policy, regret) in enumerate(regrets.items())
            for seed in range(seeds)
        )

    return make


@pytest.fixture
def found(runs, record) -> Reproduction:  # type: ignore[no-untyped-def]
    clusters = tuple(
        record(policy, seed, regret * count + 0.1 * seed + 0.001 * seed * count, 1000, clusters=count)
        for policy, regret in (("neuclust", 1.0), ("cluster-oracle", 0.05))
        for count in (5, 10, 22)
        for seed in range(6)
    )
    return Reproduction(
        study=MOVIELENS,
        source="movielens-25m.npz",
        rounds=1000,
        slate_size=5,
        scale=full_scale(MOVIELENS),
        runs={PAPER: runs(REGRETS), OURS: runs(REGRETS), CLUSTERS: clusters},
        elbow=((1, 100.0), (5, 30.0), (10, 25.0), (22, 20.0), (40, 15.0)),
        commands=("neuclust reproduce movielens",),
    )


def answers(found: Reproduction, start: str) -> list[tuple[str, str]]:
    return [(each.answer, each.evidence) for each in verdicts(found) if each.claim.startswith(start)]


def test_published_numbers_stand_beside_measured_ones_and_nothing_is_invented(found: Reproduction) -> None:
    rows = {(row.protocol, row.policy): cells(found, row) for row in table_rows(found)}
    ours = rows[PAPER, "neuclust"]
    assert ours["clipped regret, published"] == "152"
    assert ours["seconds, published"] == "486"
    assert ours["times faster"] == "243×"  # 486 s over the 2 s of the records
    assert ours["its floor"] == "160.0"
    assert rows[PAPER, "linucb-disjoint"]["seconds, published"] == "1,352"
    assert rows[PAPER, "cc-mab"]["seconds, published"] == DASH
    assert "332 s, 141 s and 187 s" in " ".join(table_notes(found))
    absent = rows[PAPER, "neural-mab"]
    assert (absent["clipped regret, published"], absent["clipped regret, measured"]) == ("227", DASH)
    assert [policy for protocol, policy in rows][-4:] == ["linucb", "static", "uniform", "oracle"]
    assert "Neural-MAB" in " ".join(table_notes(found))
    assert {name: row.regret for name, row in PUBLISHED["movielens"].items()} == {
        "neuclust": 152, "cn-ucb": 168, "linucb-disjoint": 207, "neural-mab": 227, "cc-mab": 403,
    }  # fmt: skip


def test_regret_behind_a_published_number_is_what_lies_above_the_floor(found: Reproduction, record) -> None:  # type: ignore[no-untyped-def]
    """SPEC: floor 139.75 and u* = 0.832 turn 152 into about 14.7 and 403 into about 316."""
    real = record("neuclust", 0, 14.7, 1000, clipped_floor=139.75, best_expected=832.039)
    rows = {row.policy: row for row in table_rows(found)}
    found = replace(found, runs={PAPER: (real,)})
    assert inferred_regret(found, rows["neuclust"]) == pytest.approx(14.7, abs=0.05)
    assert inferred_regret(found, rows["cc-mab"]) == pytest.approx(316.4, abs=0.05)
    assert inferred_regret(replace(found, rounds=120), rows["neuclust"]) is None


def test_other_lengths_are_not_compared_with_the_published_numbers(found: Reproduction) -> None:
    short = replace(found, rounds=120)
    row = next(row for row in table_rows(short) if row.policy == "neuclust")
    words = cells(short, row)
    assert (words["times faster"], words["expected regret behind the published"]) == (DASH, DASH)
    assert any("cannot be compared with these 120" in note for note in table_notes(short))
    assert not answers(short, "NeUClust has a clipped regret")
    assert not answers(short, "Time of")


@pytest.mark.parametrize(
    ("difference", "pairs", "answer"),
    [
        (Estimate(-3.0, 1.0), 10, "reproduces"),
        (Estimate(3.0, 1.0), 10, "does not reproduce"),
        (Estimate(-1.9, 1.0), 10, "cannot be told"),
        (Estimate(0.0, 0.0), 10, "cannot be told"),
        (Estimate(-3.0, 0.1), 4, "cannot be told"),
        (Estimate(-3.0, None), 1, "cannot be told"),
    ],
)
def test_the_order_needs_two_standard_errors_and_five_pairs(difference: Estimate, pairs: int, answer: str) -> None:
    assert order_verdict(difference, pairs) == answer


def test_sizes_are_compared_with_both_errors() -> None:
    error = printed_error(152, 1000, 10)
    assert error == pytest.approx(3.59, abs=0.01)
    assert size_verdict(Estimate(160.0, 3.0), 10, 152, error) == "reproduces"
    assert size_verdict(Estimate(165.0, 3.0), 10, 152, error) == "does not reproduce"
    assert size_verdict(Estimate(152.0, 3.0), 3, 152, error) == "cannot be told"


def test_verdicts_follow_the_records(found: Reproduction, runs) -> None:  # type: ignore[no-untyped-def]
    ((answer, evidence),) = answers(found, "NeUClust has less regret than CN-UCB (the paper's protocol")
    assert answer == "reproduces"
    assert "paired difference -15.00 ± 0.00 over 6 common seeds" in evidence
    turned = replace(found, runs={**found.runs, PAPER: runs({**REGRETS, "neuclust": 40.0})})
    assert answers(turned, "NeUClust has less regret than CN-UCB (the paper's protocol")[0][0] == "does not reproduce"
    assert answers(turned, "NeUClust has less regret than CN-UCB (our protocol")[0][0] == "reproduces"
    few = replace(found, runs={PAPER: runs(REGRETS, seeds=2)})
    assert answers(few, "NeUClust has less regret than CN-UCB (the paper's protocol")[0][0] == "cannot be told"


def readings(runs, *regrets: tuple[float, float, float]) -> tuple[RunRecord, ...]:  # type: ignore[no-untyped-def]
    """Runs of NeUClust, CN-UCB and NeUClust without F under every reading of MovieLens, and of K-LinUCB by α."""
    found: tuple[RunRecord, ...] = ()
    for reading, (ours, theirs, bare) in zip(MOVIELENS.readings, regrets, strict=True):
        settings = dict(reading.settings)
        found += runs({"neuclust": ours, "cn-ucb": theirs}, preset=reading.preset, settings=settings)
        found += runs({"neuclust": bare}, preset=reading.preset, settings={**settings, "slate.weight": "0"})
    alphas = {"0.01": 60.0, "0.1": 21.0, "1": 84.0}
    return found + tuple(
        run for alpha, regret in alphas.items() for run in runs({"linucb-disjoint": regret}, settings={"alpha": alpha})
    )


def test_the_order_is_judged_reading_by_reading(found: Reproduction, runs, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    played = replace(found, runs={**found.runs, READINGS: readings(runs, (13, 15, 12), (28, 45, 41), (44, 29, 29))})
    orders = {each.claim: each.answer for each in verdicts(played) if each.claim.startswith("NeUClust has less regret")}
    words = {reading_title(reading): reading.words for reading in MOVIELENS.readings}
    for title, answer in (
        ("paper", "reproduces"),
        ("paper-raw", "reproduces"),
        ("paper, init=symmetric", "does not reproduce"),
    ):
        assert orders[f"NeUClust has less regret than CN-UCB (reading {title}: {words[title]})"] == answer
    assert not any("the paper's protocol" in claim for claim in orders)
    ((answer, evidence),) = answers(played, "The order turns on the start of the net")
    assert answer == "finding"
    assert "behind in 0 of 2 readings where the net starts at f = 0 and in 1 of 1 where it does not" in evidence
    ((_, evidence),) = answers(played, "What F does")
    assert "paper-raw -13.00" in evidence
    assert re.search(r"paper-raw -13\.00 [^;]*: F helps", evidence)
    assert re.search(r"init=symmetric \+15\.00 [^;]*: F hurts", evidence)
    ((_, evidence),) = answers(played, "K-LinUCB over the printed range of α")
    assert "Least with α = 0.1. Nearest to the published 207 is α = " in evidence
    (raw,) = [row for row in readings_json(played) if row["reading"] == "paper-raw"]
    assert (raw["ahead"], raw["seeds"], raw["difference"]["mean"]) == (6, 6, pytest.approx(-17.0, abs=0.01))
    page = _page(played, tmp_path)
    assert "6 of 6 seeds" in page
    assert MOVIELENS.readings[1].words in page
    turned = replace(found, runs={**found.runs, READINGS: readings(runs, (19, 15, 12), (28, 45, 41), (44, 29, 29))})
    assert not answers(turned, "The order turns on the start of the net")
    assert answers(turned, "The start of the net is not all that decides")


def test_every_verdict_on_size_names_its_reading_and_none_is_given_twice(found: Reproduction, runs) -> None:  # type: ignore[no-untyped-def]
    played = {**found.runs, READINGS: readings(runs, (13, 15, 12), (28, 45, 41), (44, 29, 29))}
    played[AUTHORS] = runs({"cc-mab": 317.0, "neural-mab": 150.0}, preset="authors-ml")
    played[PAPER] = runs({**REGRETS, "neural-mab": 90.0})
    judged = replace(found, runs=played)
    claims = [each.claim for each in verdicts(judged) if "has a clipped regret of" in each.claim]
    assert len(set(claims)) == len(claims)
    assert sum(claim.startswith("NeUClust has a clipped regret of 152 (reading paper: ") for claim in claims) == 1
    for words in (
        "the paper's protocol: contexts scaled into [0, 1]",
        "the authors' settings: the authors' raw contexts",
    ):
        assert any(claim.startswith(f"CC-MAB has a clipped regret of 403 ({words}") for claim in claims), words
    assert [claim for claim in claims if claim.startswith("Neural-MAB")] == [
        "Neural-MAB has a clipped regret of 227 (the authors' settings: the authors' one linear layer, greedy)"
    ]
    assert answers(judged, "Neural-MAB in our own design")[0][0] == "finding"


def test_fewer_than_five_common_seeds_give_no_verdict(found: Reproduction, runs) -> None:  # type: ignore[no-untyped-def]
    all_of_them = {**found.runs, READINGS: readings(runs, (13, 15, 12), (28, 45, 41), (44, 29, 29))}
    few = replace(found, runs={name: tuple(run for run in each if run.seed < 4) for name, each in all_of_them.items()})
    assert {each.answer for each in verdicts(few)} == {"cannot be told", "finding"}
    for claim in ("One fixed slate", "CC-MAB, ", "What F does", "K-LinUCB over", "The order turns", "The start of"):
        assert not answers(few, claim), claim


def test_the_floor_the_fixed_slate_and_the_linear_model_are_named(found: Reproduction, runs) -> None:  # type: ignore[no-untyped-def]
    assert "pays 160.0 of clipped regret in 1000 rounds" in answers(found, "The floor")[0][1]
    assert "105% of the 152 published" in answers(found, "The floor")[0][1]
    assert "contexts are hardly needed" in answers(found, "One fixed slate")[0][1]
    needed = replace(found, runs={PAPER: runs({**REGRETS, "static": 100.0})})
    assert "so contexts are needed" in answers(needed, "One fixed slate")[0][1]
    assert "more regret than the linear model" in answers(found, "A shared linear model")[0][1]
    better = replace(found, runs={PAPER: runs({**REGRETS, "linucb": 50.0})})
    assert "less regret than the linear model" in answers(better, "A shared linear model")[0][1]
    assert "no better and no worse than random" in answers(found, "CC-MAB, contexts scaled")[0][1]
    learning = replace(found, runs={PAPER: runs({**REGRETS, "cc-mab": 100.0})})
    assert "better than random" in answers(learning, "CC-MAB, contexts scaled")[0][1]


def test_the_number_of_clusters_is_judged_by_pairs(found: Reproduction) -> None:
    ((answer, evidence),) = answers(found, "22 clusters are the best number")
    assert answer == "does not reproduce"
    assert "Least with 5" in evidence
    assert elbow_corner(found.elbow) == 5
    one_seed = tuple(run for run in found.runs[CLUSTERS] if run.seed == 0)
    few = replace(found, runs={**found.runs, CLUSTERS: one_seed})
    assert answers(few, "22 clusters are the best number")[0][0] == "cannot be told"


def test_no_records_no_verdicts_but_a_table(found: Reproduction) -> None:
    empty = replace(found, runs={}, elbow=())
    assert verdicts(empty) == []
    assert paper_figures(empty) == []
    assert len(table_rows(empty)) == 10


def test_a_shared_run_is_called_what_each_phase_asked_for(record) -> None:  # type: ignore[no-untyped-def]
    found = phases(open_study(MOVIELENS, Problem(env="movielens-twin"), full_scale(MOVIELENS)))
    played = {task.key: record("somebody", task.seed, 1.0) for task in all_tasks(found)}
    runs, missing = runs_by_phase(found, played)
    assert missing == 0
    assert {run.clusters for run in runs[CLUSTERS]} == {1, 5, 10, 15, 20, 22, 25, 30, 40}
    assert {run.clusters for run in runs[PAPER]} == {None}
    assert {run.policy for run in runs[OURS]} == set(POLICIES)
    first = next(iter(played))
    assert runs_by_phase(found, {first: played[first]})[1] == len(played) - 1


def test_settings_of_a_quick_look_leave_the_names(record) -> None:  # type: ignore[no-untyped-def]
    settings = {"clustering.n_init": "1", "arms.schedule.gamma": "0.5"}
    runs = {PAPER: (record("neuclust", 0, 1.0, settings=settings), record("uniform", 0, 1.0))}
    named = without_settings(runs, {"clustering.n_init": "1", "arms.schedule.gamma": "1"})
    assert [run.settings for run in named[PAPER]] == [{"arms.schedule.gamma": "0.5"}, {}]


def test_clipped_curves_end_at_the_records_and_never_below_the_floor(record) -> None:  # type: ignore[no-untyped-def]
    run = record("neuclust", 0, 12.0)
    clipped, floor = expected_clipped(run), floor_curve(run)
    assert clipped[-1] == (100, pytest.approx(run.expected_clipped_regret))
    assert floor[-1] == (100, pytest.approx(run.clipped_floor))
    assert all(above >= below for (_, above), (_, below) in zip(clipped, floor, strict=True))


def test_every_text_table_has_every_row(found: Reproduction) -> None:
    rows = list(csv.DictReader(io.StringIO(csv_text(found))))
    assert [row["policy"] for row in rows] == [row.policy for row in table_rows(found)]
    assert float(rows[0]["expected_regret_mean"]) == pytest.approx(15.25)
    assert (rows[2]["published_seconds"], rows[2]["published_regret"]) == ("", "168")
    lines = markdown_text(found, ["a note"]).splitlines()
    assert len({line.count("|") for line in lines[:12]}) == 1
    tex = latex_text(found, ["a note"])
    assert tex.count(r"\\") == 11
    assert "% a note" in tex


def test_summary_rows_keep_their_names_and_hold_every_phase(found: Reproduction, runs) -> None:  # type: ignore[no-untyped-def]
    found = replace(found, runs={**found.runs, AUTHORS: runs({"cn-ucb": 12.0}, preset="authors-ml")})
    rows = summary_rows(found)
    assert all(row.keys() >= STABLE_KEYS for row in rows)
    assert len({tuple(row) for row in rows}) == 1
    assert {row["protocol"] for row in rows} == {PAPER, OURS, CLUSTERS, AUTHORS}
    theirs = next(row for row in rows if row["protocol"] == AUTHORS)
    assert (theirs["policy"], theirs["preset"], theirs["seeds"], theirs["published_regret"]) == (
        "cn-ucb", "authors-ml", 6, 168,
    )  # fmt: skip
    assert len([row for row in rows if row["protocol"] == CLUSTERS]) == 6


def test_folder_and_page(found: Reproduction, tmp_path: Path) -> None:
    hostile = replace(found, source="<script>alert(1)</script>.npz", missing=3)
    written = write_reproduction(hostile, tmp_path)
    assert written[-1] == tmp_path / "index.html"
    names = {file.name for file in (tmp_path / "figures").iterdir()}
    for stem in ("figures-2-and-3-clipped-regret", "figures-2-and-3-expected-regret", "figures-2-and-3-reward",
                 "figure-6-elbow", "figure-8-clusters"):  # fmt: skip
        assert {f"{stem}.svg", f"{stem}.png"} <= names
    page = (tmp_path / "index.html").read_text()
    assert "<script" not in page
    assert "&lt;script&gt;" in page
    assert not re.search(r'(src|href)="(?!#)', page.replace("xlink:href", "xlink"))
    for text in ("What reproduces and what does not", "Table 1", "Figure 6", "Figure 8", "Our protocol",
                 "Not finished: 3 runs are missing", "neuclust reproduce movielens"):  # fmt: skip
        assert text in page
    identifiers = re.findall(r'\bid="([^"]+)"', page)
    assert len(identifiers) == len(set(identifiers))
    summary = json.loads((tmp_path / "summary.json").read_text())
    assert summary["rows"] == summary_rows(hostile)
    assert summary["verdicts"] == [each.to_json() for each in verdicts(hostile)]


def test_the_twin_and_the_quick_look_are_named_first(found: Reproduction, runs, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    quick = replace(
        found,
        source=None,
        rounds=100,
        scale=quick_scale(STUDIES["yelp"]),
        study=STUDIES["yelp"],
        runs={PAPER: runs(REGRETS, seeds=2, rounds=100)},
    )
    write_reproduction(quick, tmp_path)
    page = (tmp_path / "index.html").read_text()
    opening = page[page.index("<h1>") : page.index('id="verdicts"')]
    assert label(quick) == "quick: T = 100, 2 seeds"
    for text in ("quick: T = 100, 2 seeds", "synthetic twin", "NeUClust online is left out", "clustering.n_init = 1"):
        assert text in opening
    assert "Figures 4 and 5" in page
    assert "Figures 2 and 3:" not in page


def test_tuned_settings_are_told_with_their_budget(found: Reproduction, runs, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    search = Search(TUNED, "linucb", "default", 7, (1000, 1001), 1000, {"alpha": "0.3"})
    assert "nothing was tuned" in _page(found, tmp_path / "plain")
    tuned = replace(
        found, runs={**found.runs, TUNED: runs({"linucb": 0.2}, settings={"alpha": "0.3"})}, searches=(search,)
    )
    page = _page(tuned, tmp_path / "tuned")
    assert "found with 7 trials each, on development seeds 1000, 1001" in page
    assert "alpha=0.3" in page
    assert "nothing was tuned" not in page


def _page(found: Reproduction, folder: Path) -> str:
    write_reproduction(found, folder)
    return (folder / "index.html").read_text()
