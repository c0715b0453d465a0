"""Comparisons as tables for people, CSV for spreadsheets and JSON for programs."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from rich.console import Console

from neuclust.analysis.compare import METRIC, Comparison, Pair
from neuclust.analysis.estimates import decimals, with_error
from neuclust.report.tables import csv_text, terminal_table

SCHEMA = 1
TESTED = {
    "test": "two-sided Wilcoxon signed-rank over common seeds",
    "correction": "Holm over the differences of a problem",
    "interval": "BCa bootstrap of the mean paired difference, 9999 resamples, each by itself",
}
CSV_COLUMNS = (
    "env", "rounds", "slate_size", "options", "policy", "against", "seeds", "mean", "against_mean", "difference",
    "difference_se", "low", "high", "confidence", "ratio", "p", "p_holm", "verdict",
)  # fmt: skip


def print_comparisons(console: Console, comparisons: Sequence[Comparison]) -> None:
    """The contenders of every problem, least regret first, their paired differences, and the notes."""
    for comparison in comparisons:
        console.print(comparison.problem.description, markup=False, soft_wrap=True)
        named = zip(comparison.titles, comparison.problem.contenders, strict=True)
        rows = [[title, str(len(one.runs)), with_error(one.over_seeds(METRIC))] for title, one in named]
        console.print(terminal_table(["policy", "seeds", "expected regret"], rows, ["policy"]))
        if comparison.pairs:
            console.print("Paired differences in expected regret")
            interval = f"{comparison.confidence * 100:g} % interval"
            headings = ["policy", "against", "seeds", "difference", interval, "ratio", "p", "p (Holm)", "verdict"]
            console.print(terminal_table(headings, map(_cells, comparison.pairs), ("policy", "against", "verdict")))
        for note in comparison.notes:
            console.print(note, markup=False, soft_wrap=True)


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
    document = {"schema": SCHEMA, "metric": METRIC, **TESTED, "problems": list(map(comparison_json, comparisons))}
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
    row = asdict(pair)  # json writes tuples as lists
    gap = row.pop("difference") or {"mean": None, "error": None}
    corrected = row.pop("corrected_p")
    return row | {"difference": gap["mean"], "standard_error": gap["error"], "p_holm": corrected}
