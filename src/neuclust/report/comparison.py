"""Comparisons as tables for people, CSV for spreadsheets and JSON for programs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from neuclust.analysis.compare import METRIC, Comparison, Pair
from neuclust.analysis.estimates import decimals, with_error
from neuclust.report.tables import csv_text, terminal_table

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

SCHEMA = 1
TEST = "two-sided Wilcoxon signed-rank over common seeds"
CORRECTION = "Holm over the differences of a problem"
INTERVAL = "BCa bootstrap of the mean paired difference, 9999 resamples, each by itself"
CSV_COLUMNS = (
    "env", "rounds", "slate_size", "options", "policy", "against", "seeds", "mean", "against_mean", "difference",
    "difference_se", "low", "high", "confidence", "ratio", "p", "p_holm", "verdict",
)  # fmt: skip


def print_comparison(console: Console, comparison: Comparison) -> None:
    """Two tables and the notes of one problem."""
    console.print(comparison.problem.description, markup=False, soft_wrap=True)
    console.print(_standings(comparison))
    if comparison.pairs:
        console.print("Paired differences in expected regret")
        interval = f"{comparison.confidence * 100:g} % interval"
        headings = ["policy", "against", "seeds", "difference", interval, "ratio", "p", "p (Holm)", "verdict"]
        console.print(terminal_table(headings, map(_cells, comparison.pairs), ("policy", "against", "verdict")))
    for note in comparison.notes:
        console.print(note, markup=False, soft_wrap=True)


def _standings(comparison: Comparison) -> Table:
    """Mean and standard error of every contender, least regret first."""
    named = zip(comparison.titles, comparison.problem.contenders, strict=True)
    rows = [[title, str(len(one.runs)), with_error(one.over_seeds(METRIC))] for title, one in named]
    return terminal_table(["policy", "seeds", "expected regret"], rows, ["policy"])


def _cells(pair: Pair) -> list[str]:
    if pair.difference is None or pair.p is None or pair.corrected_p is None:
        return [pair.title, pair.against, "0", *["-"] * 5, pair.verdict]
    places = decimals(pair.difference.mean)
    interval = "-" if pair.interval is None else f"{pair.interval[0]:+.{places}f} to {pair.interval[1]:+.{places}f}"
    ratio = "-" if pair.ratio is None else f"{pair.ratio:.2f}"
    tests = [f"{value:.4f}" if value >= 0.0001 else "<0.0001" for value in (pair.p, pair.corrected_p)]
    difference = with_error(pair.difference, sign=True)
    return [pair.title, pair.against, str(len(pair.seeds)), difference, interval, ratio, *tests, pair.verdict]


def csv_pairs(comparisons: Sequence[Comparison]) -> str:
    """One line per difference, with full precision; an empty cell where there is no number."""
    return csv_text([CSV_COLUMNS, *(_csv_row(each, pair) for each in comparisons for pair in each.pairs)])


def _csv_row(comparison: Comparison, pair: Pair) -> list[object]:
    gap = (None, None) if pair.difference is None else (pair.difference.mean, pair.difference.error)
    return [
        *_problem_json(comparison).values(), pair.title, pair.against, len(pair.seeds), pair.mean, pair.against_mean,
        *gap, *(pair.interval or (None, None)), comparison.confidence, pair.ratio, pair.p, pair.corrected_p,
        pair.verdict,
    ]  # fmt: skip


def compare_document(comparisons: Sequence[Comparison]) -> str:
    """The JSON text: how it was tested, then every problem with its contenders, differences and notes."""
    document = {
        "schema": SCHEMA,
        "metric": METRIC,
        "test": TEST,
        "correction": CORRECTION,
        "interval": INTERVAL,
        "problems": [comparison_json(comparison) for comparison in comparisons],
    }
    return json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def comparison_json(comparison: Comparison) -> dict[str, Any]:
    """One problem as plain JSON values."""
    policies = [
        {"title": title, "policy": one.policy, "preset": one.preset, "settings": one.settings, "seeds": len(one.runs),
         "mean": (regret := one.over_seeds(METRIC)).mean, "standard_error": regret.error}
        for title, one in zip(comparison.titles, comparison.problem.contenders, strict=True)
    ]  # fmt: skip
    return {
        **_problem_json(comparison),
        "confidence": comparison.confidence,
        "policies": policies,
        "differences": [_pair_json(pair) for pair in comparison.pairs],
        "notes": list(comparison.notes),
    }


def _problem_json(comparison: Comparison) -> dict[str, Any]:
    return {name: getattr(comparison.problem, name) for name in ("env", "rounds", "slate_size", "options")}


def _pair_json(pair: Pair) -> dict[str, Any]:
    row = asdict(pair)
    gap = row.pop("difference") or {"mean": None, "error": None}
    corrected = row.pop("corrected_p")
    row["seeds"] = list(pair.seeds)
    row["interval"] = None if pair.interval is None else list(pair.interval)
    return row | {"difference": gap["mean"], "standard_error": gap["error"], "p_holm": corrected}
