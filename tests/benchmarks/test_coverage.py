"""The coverage study: its tables are chances, its weights have mean 1, and misses are found."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.coverage import main
from benchmarks.coverage_logs import contributions, fixed_logs, learning_logs, limits, second_moments
from benchmarks.coverage_problems import CONTEXTS, ESTIMATORS, OVERLAPS, STRUCTURES, Structure, problem, tables
from benchmarks.coverage_tables import misses, question, read, verdicts


@pytest.mark.parametrize("structure", STRUCTURES)
def test_weights_turn_the_logger_into_the_target(structure: Structure) -> None:
    """Fails when a table is no distribution, or a weight of slates, slots or prefixes is no ratio of chances."""
    which = problem(structure)
    for overlap in OVERLAPS:
        made = tables(which, overlap)
        np.testing.assert_allclose(made.logged.sum(1), 1)
        np.testing.assert_allclose(made.target.sum(1), 1)
        for weights in (made.slate[:, :, None], made.slots, made.prefixes):
            np.testing.assert_allclose((made.logged[:, :, None] * weights).sum(1), 1)


def test_estimators_are_unbiased_where_their_assumption_holds() -> None:
    """Fails when the limit an interval is held against is not what the estimator is after."""
    for structure, holds in {"additive": ("iips", "rips"), "cascade": ("rips",), "interacting": ()}.items():
        which = problem(structure)  # type: ignore[arg-type]
        found = limits(which, tables(which, "fair"), ESTIMATORS)
        for name in ("iips", "rips"):
            assert (abs(found[name] - found["ips"]) < 1e-12) is (name in holds)


def test_logs_have_the_moments_of_their_tables() -> None:
    """Fails when rows are drawn by other chances than those the weights are made of."""
    which = problem("additive")
    made, rng = tables(which, "good"), np.random.default_rng(0)
    logs = fixed_logs(which, made, 50, 2000, rng)
    exact, wanted = second_moments(made), limits(which, made, ESTIMATORS)
    for name in ESTIMATORS:
        own = contributions(logs, name, exact[name])
        assert own.values.mean() == pytest.approx(wanted[name], abs=0.02)
        assert own.weights.mean() == pytest.approx(1, abs=0.02)
    assert (logs.slate**2).mean() == pytest.approx(exact["ips"], rel=0.05)


def test_a_learning_logger_keeps_its_weights_exact() -> None:
    """Fails when propensities are those of what was learned from the row itself, or moments those of another ε."""
    which = problem("cascade")
    made, rng = tables(which, "good"), np.random.default_rng(1)
    logs = learning_logs(which, made, "good", (400, 200), rng)
    assert logs.moments is not None
    for weights in (logs.slate, *logs.slots, *logs.prefixes):
        assert weights.mean() == pytest.approx(1, abs=0.03)
    assert (logs.slate**2).mean() == pytest.approx(logs.moments.mean(), rel=0.05)
    truth = (made.target[:, :, None] * which.clicks).sum() / CONTEXTS
    assert (logs.slate * logs.clicks.sum(0)).mean() == pytest.approx(truth, abs=0.02)
    assert logs.moments[:, -1].std() > 0  # what was learned differs between logs


def row(kind: str, covered: int, logs: int = 1000) -> dict[str, Any]:
    return {
        "logger": "fixed", "structure": "additive", "overlap": "good", "rows": 300, "estimator": "ips", "kind": kind,
        "logs": logs, "covered": covered, "logs_enough": logs, "covered_enough": covered,
        "logs_lucky": 0, "covered_lucky": 0, "ess": 200.0,
    }  # fmt: skip


def test_coverage_outside_the_band_is_a_miss_on_either_side() -> None:
    """Fails when undercoverage, overcoverage or the correction over cells is overlooked."""
    rows = [row("asymptotic", covered) for covered in (890, 925, 950, 999)]
    assert [each["covered"] for each in misses(rows, "band")] == [890, 999]
    finite = [row("confidence-sequence", covered) for covered in (900, 940, 1000)]
    assert [each["covered"] for each in misses(finite, "finite")] == [900]
    assert question({**row("asymptotic", 950), "logs_enough": 0}) is None
    assert any("miss" in line for line in verdicts(rows))


def test_a_small_study_is_written_and_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: Any
) -> None:
    """Fails when the table of a file differs from the one printed with it."""
    monkeypatch.setattr("benchmarks.coverage.SIZES", {"fixed": {60: 8}, "learning": {60: 8}})
    out = tmp_path / "coverage.json"
    main(["--out", str(out)])
    printed = capsys.readouterr().out
    main(["table", str(out)])
    assert capsys.readouterr().out == printed
    rows = read(out)
    assert {each["kind"] for each in rows} >= {"asymptotic", "bootstrap", "martingale, levelled", "default"}
    main(["table", str(out), "--cells"])
    assert capsys.readouterr().out.count("\n") > len(rows)
