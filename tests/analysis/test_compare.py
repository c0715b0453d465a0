"""Paired comparisons: exact tests, honest corrections, and plain words where the seeds cannot tell."""

from __future__ import annotations

import csv
import io
import itertools
import json
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from invented_records import MakeRecord
from scipy.stats import rankdata

from neuclust.analysis.compare import Comparison, compare
from neuclust.analysis.paired import bootstrap_interval, holm, pairs_needed, signed_rank_p, smallest_p
from neuclust.errors import ConfigError, DataError
from neuclust.experiment.records import RunRecord
from neuclust.experiment.store import open_store, read_store, write_run
from neuclust.randomness import stream
from neuclust.report.comparison import CSV_COLUMNS, compare_document, csv_pairs


def enumerated_p(gaps: list[float]) -> float:
    """The signed-rank p from all 2ⁿ signs, straight from its definition."""
    moved = [gap for gap in gaps if gap != 0]
    if not moved:
        return 1.0
    ranks = rankdata(np.abs(moved))
    middle = ranks.sum() / 2
    seen = abs(ranks[np.array(moved) > 0].sum() - middle)
    sums = [ranks[list(signs)].sum() for signs in itertools.product([False, True], repeat=len(moved))]
    return float(np.mean([abs(total - middle) >= seen - 1e-9 for total in sums]))


@given(st.lists(st.integers(-4, 4).map(float), min_size=1, max_size=9))
def test_p_is_exact_with_ties_and_zeros(gaps: list[float]) -> None:
    assert signed_rank_p(gaps) == pytest.approx(enumerated_p(gaps))


@given(st.lists(st.floats(-5, 5), min_size=1, max_size=9, unique_by=abs))
def test_p_is_exact_without_ties(gaps: list[float]) -> None:
    assert signed_rank_p(gaps) == pytest.approx(enumerated_p(gaps))


def test_many_pairs_are_close_to_the_exact_p() -> None:
    gaps = np.round(stream(3, "ties").normal(0.4, 1.0, 40), 1)  # ties, too many to enumerate
    untied = gaps + 1e-6 * np.arange(1, 41)
    assert signed_rank_p(list(gaps)) == pytest.approx(signed_rank_p(list(untied)), rel=0.2)


def test_the_smallest_p_is_reached_and_never_passed() -> None:
    for pairs in range(1, 9):
        assert signed_rank_p([float(gap) for gap in range(1, pairs + 1)]) == pytest.approx(smallest_p(pairs))
    assert (smallest_p(5), pairs_needed(1, 0.05), pairs_needed(6, 0.05)) == (0.0625, 6, 8)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=8))
def test_holm_lies_between_no_correction_and_bonferroni_and_keeps_the_order(ps: list[float]) -> None:
    corrected = holm(ps)
    assert all(p <= q <= min(1.0, len(ps) * p) + 1e-12 for p, q in zip(ps, corrected, strict=True))
    assert corrected[ps.index(min(ps))] == min(1.0, len(ps) * min(ps))
    order = sorted(range(len(ps)), key=lambda index: ps[index])
    assert [corrected[place] for place in order] == sorted(corrected)


def test_holm_on_a_worked_example() -> None:
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])


def families(count: int, policies: int, seeds: int, shift: float) -> list[list[float]]:
    """Ps of all pairs in many invented studies: a common part a seed, noise of equal law, one policy shifted."""
    found = []
    for study in range(count):
        generator = stream(7, "families", study)
        regrets = generator.normal(20, 5, seeds)[None] + generator.gumbel(0, 2, (policies, seeds))
        regrets[0] -= shift
        couples = itertools.combinations(range(policies), 2)
        found.append([signed_rank_p(list(regrets[b] - regrets[a])) for a, b in couples])
    return found


def test_family_wise_error_stays_at_its_level_where_nothing_differs() -> None:
    studies = families(400, policies=4, seeds=12, shift=0.0)
    corrected = np.mean([min(holm(ps)) < 0.05 for ps in studies])
    naive = np.mean([min(ps) < 0.05 for ps in studies])
    assert 0.005 < corrected < 0.05 + 3 * np.sqrt(0.05 * 0.95 / 400)
    assert naive > 0.12  # what the correction is for


def test_a_real_difference_is_found() -> None:
    studies = families(60, policies=4, seeds=12, shift=6.0)
    assert np.mean([max(holm(ps)[:3]) < 0.05 for ps in studies]) > 0.8


def test_intervals_cover_the_truth_about_as_often_as_they_say() -> None:
    covered = 0
    for study in range(150):
        gaps = stream(11, "coverage", study).exponential(2.0, 25)
        interval = bootstrap_interval(list(gaps), 0.9, "coverage")
        assert interval is not None
        covered += interval[0] <= 2.0 <= interval[1]
    assert 0.8 < covered / 150 < 0.97


def test_intervals_are_the_same_again_and_need_two_pairs() -> None:
    gaps = [1.0, 2.0, 4.0, 8.0]
    assert bootstrap_interval(gaps, 0.95, "a") == bootstrap_interval(gaps, 0.95, "a")
    assert bootstrap_interval([1.0], 0.95, "a") is None
    assert bootstrap_interval([2.0, 2.0, 2.0], 0.95, "a") == (2.0, 2.0)


@pytest.fixture
def ten_seeds(record: MakeRecord) -> list[RunRecord]:
    """a: about 10; b: 5 more on every seed; c: a with noise; oracle: 0."""
    runs = []
    for seed in range(10):
        base = 10.0 + seed % 3
        noise = 0.1 * (-1) ** seed * (1 + seed)
        runs += [record("a", seed, base), record("b", seed, base + 5 + 0.1 * seed), record("c", seed, base + noise)]
        runs.append(record("oracle", seed, 0.0))
    return runs


def only(comparisons: list[Comparison]) -> Comparison:
    (found,) = comparisons
    return found


def test_differences_are_paired_and_judged(ten_seeds: list[RunRecord]) -> None:
    found = only(compare(ten_seeds))
    by_name = {(pair.title, pair.against): pair for pair in found.pairs}
    assert set(by_name) == {("b", "a"), ("b", "c"), ("a", "c")}
    worse = by_name["b", "a"]
    assert worse.difference is not None
    assert worse.difference.mean == pytest.approx(5.45)
    assert worse.ratio == pytest.approx((10.9 + 5.45) / 10.9)
    assert [worse.p, worse.corrected_p] == pytest.approx([2 / 1024, 6 / 1024])
    assert worse.verdict == "more regret"
    assert worse.interval is not None
    assert 5 < worse.interval[0] < 5.45 < worse.interval[1] < 6
    assert by_name["a", "c"].verdict == "noise"
    text = " ".join(found.notes)
    assert "Holm's correction over the 3 differences" in text
    assert "no difference shown (which does not show that they are equal): a and c" in text
    assert "they know the truth: oracle" in text
    assert list(found.titles) == ["oracle", "c", "a", "b"]


def test_a_baseline_takes_the_other_pairs_out_of_the_family(ten_seeds: list[RunRecord]) -> None:
    found = only(compare(ten_seeds, baseline="b"))
    assert {(pair.title, pair.against, pair.verdict) for pair in found.pairs} == {
        ("a", "b", "less regret"),
        ("c", "b", "less regret"),
    }
    with pytest.raises(ConfigError, match="expected one of a, b, c, oracle, got 'd'"):
        compare(ten_seeds, baseline="d")


def test_five_seeds_are_told_to_be_too_few(record: MakeRecord) -> None:
    runs = [
        record(name, seed, regret + seed) for seed in range(5) for name, regret in (("a", 1.0), ("b", 100.0 + seed))
    ]
    found = only(compare(runs))
    assert found.pairs[0].verdict == "too few seeds"
    assert any(note.startswith("Too few seeds to show any difference, however large: b and a") for note in found.notes)
    assert any(
        "No difference can be told from these 5 seeds: 5 pairs can never give p < 0.05 in a two-sided Wilcoxon test; "
        "6 seeds could." in note
        for note in found.notes
    )


def test_many_comparisons_can_make_seeds_too_few(record: MakeRecord) -> None:
    runs = [
        record(name, seed, 10.0 * place + seed**2 * place) for seed in range(7) for place, name in enumerate("abcd")
    ]
    notes = " ".join(only(compare(runs)).notes)
    assert "7 pairs give p = 0.016 at best, which 6 comparisons turn into 0.094; 8 seeds could." in notes


def test_only_common_seeds_count(record: MakeRecord) -> None:
    runs = [record("a", seed, 1.0) for seed in (0, 1, 2)] + [record("b", seed, 3.0 + seed) for seed in (1, 2, 3)]
    runs += [record("c", 9, 5.0)]
    pairs = {(pair.title, pair.against): pair for pair in only(compare(runs)).pairs}
    assert pairs["b", "a"].seeds == (1, 2)
    assert pairs["b", "a"].mean == 4.5
    lonely = [pair for names, pair in pairs.items() if "c" in names]
    assert [pair.verdict for pair in lonely] == ["no common seeds"] * 2
    assert [pair.p for pair in lonely] == [None] * 2


def test_equal_policies_are_called_identical_and_one_seed_has_no_interval(record: MakeRecord) -> None:
    same = [record(name, seed, 4.0 + seed) for seed in range(8) for name in "ab"]
    pair = only(compare(same)).pairs[0]
    assert (pair.verdict, pair.p, pair.interval) == ("identical", 1.0, (0.0, 0.0))
    single = only(compare([record("a", 0, 1.0), record("b", 0, 2.0)]))
    assert (single.pairs[0].interval, single.pairs[0].verdict) == (None, "too few seeds")
    assert "this 1 seed: 1 pair can never" in " ".join(single.notes)


def test_settings_of_the_same_short_name_stay_apart(record: MakeRecord) -> None:
    runs = [
        record("a", seed, 1.0 + place, settings={f"{owner}.step": "1e-3"})
        for seed in range(3)
        for place, owner in enumerate(("arms", "slate"))
    ]
    assert list(only(compare(runs)).titles) == [
        "a default (arms.step=1e-3)",
        "a default (slate.step=1e-3)",
    ]


def test_repeated_seeds_are_pointed_out(record: MakeRecord) -> None:
    notes = only(compare([record("a", 0, 1.0), record("a", 0, 2.0), record("b", 0, 3.0)])).notes
    assert any("a has run more than once with seed 0" in note for note in notes)


def test_problems_are_compared_apart(record: MakeRecord, ten_seeds: list[RunRecord]) -> None:
    other = [record(name, seed, 1.0 + seed, env="other") for seed in range(3) for name in ("a", "z")]
    found = compare(ten_seeds + other, baseline="b")
    assert [(one.problem.env, len(one.pairs)) for one in found] == [("bump", 2), ("other", 0)]
    assert "b has not run on this problem" in found[1].notes[0]


@pytest.mark.parametrize("confidence", [0.0, 0.3, 1.0, float("nan")])
def test_impossible_confidence_and_nothing_to_compare_are_refused(record: MakeRecord, confidence: float) -> None:
    with pytest.raises(ConfigError, match=r"^confidence: "):
        compare([record("a", 0, 1.0)], confidence=confidence)
    with pytest.raises(DataError, match="got none"):
        compare([])


def test_csv_and_json_hold_every_number(record: MakeRecord, ten_seeds: list[RunRecord]) -> None:
    found = compare([*ten_seeds, record("lonely", 99, 3.0)])
    rows = list(csv.DictReader(io.StringIO(csv_pairs(found))))
    assert tuple(rows[0]) == CSV_COLUMNS
    document = json.loads(compare_document(found))
    assert (document["schema"], document["metric"]) == (1, "expected_regret")
    assert "Holm" in document["correction"]
    (problem,) = document["problems"]
    assert len(rows) == len(problem["differences"]) == 6
    for row, difference in zip(rows, problem["differences"], strict=True):
        assert (row["policy"], row["against"], row["verdict"]) == tuple(
            difference[key] for key in ("title", "against", "verdict")
        )
        assert row["p_holm"] == ("" if difference["p_holm"] is None else repr(difference["p_holm"]))


def test_duckdb_polars_and_pandas_read_the_same_numbers(tmp_path: Path, ten_seeds: list[RunRecord]) -> None:
    open_store(tmp_path, make=True)
    for place, run in enumerate(ten_seeds):
        write_run(tmp_path, f"run{place:02}", run)
    kept = read_store(tmp_path)
    means = {
        name: np.mean([run.expected_regret for run in kept.values() if run.policy == name]) for name in ("a", "b", "c")
    }
    runs, curves = str(tmp_path / "runs" / "*.parquet"), str(tmp_path / "curves" / "*.parquet")
    database: Any = duckdb
    query = f"select policy, avg(expected_regret) from '{runs}' group by policy"
    from_duckdb = dict(database.sql(query).fetchall())
    grouped = pl.read_parquet(runs).group_by("policy").agg(pl.col("expected_regret").mean())
    from_polars = dict(grouped.iter_rows())
    from_pandas = pd.read_parquet(tmp_path / "runs").groupby("policy")["expected_regret"].mean().to_dict()
    for found in (from_duckdb, from_polars, from_pandas):
        assert {name: found[name] for name in means} == pytest.approx(means)
    total = sum(value for run in kept.values() for _, value in run.curve)
    points = sum(len(run.curve) for run in kept.values())
    sums = database.sql(f"select sum(expected_regret), count(*) from '{curves}'").fetchall()
    assert list(sums[0]) == pytest.approx([total, points])
    frame = pl.read_parquet(curves)
    assert [frame["expected_regret"].sum(), len(frame)] == pytest.approx([total, points])
    table = pd.read_parquet(tmp_path / "curves")
    assert [table["expected_regret"].sum(), len(table)] == pytest.approx([total, points])
