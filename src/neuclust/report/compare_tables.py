"""Comparisons as tables for people, CSV for spreadsheets and JSON for programs."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Literal

from neuclust.analysis.compare import METRIC, Comparison, Pair, Standing
from neuclust.report.tables import decimals, with_error

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

SCHEMA = 1
TEST = "two-sided Wilcoxon signed-rank over common seeds"
CORRECTION = "Holm over the differences of a problem"
INTERVAL = "BCa bootstrap of the mean paired difference, 9999 resamples, each by itself"


def print_comparison(console: Console, comparison: Comparison) -> None:
    """Two tables and the notes of one problem."""
    console.print(comparison.title, markup=False, soft_wrap=True)
    console.print(standings_table(comparison))
    if comparison.pairs:
        console.print("Paired differences in expected regret")
        console.print(pairs_table(comparison))
    for note in comparison.notes:
        console.print(note, markup=False, soft_wrap=True)


def standings_table(comparison: Comparison) -> Table:
    """Mean and standard error of every contender, least regret first."""
    rows = [[one.title, str(one.seeds), with_error(one.regret)] for one in comparison.standings]
    return _table(["policy", "seeds", "expected regret"], rows, words=1)


def pairs_table(comparison: Comparison) -> Table:
    """Every difference with its interval, ratio and p."""
    interval = f"{comparison.confidence * 100:g} % interval"
    headings = ["policy", "against", "seeds", "difference", interval, "ratio", "p", "p (Holm)", "verdict"]
    return _table(headings, [_cells(pair) for pair in comparison.pairs], words=2)


def _cells(pair: Pair) -> list[str]:
    if pair.difference is None or pair.p is None or pair.corrected_p is None:
        return [pair.title, pair.against, "0", *["-"] * 5, pair.verdict]
    places = decimals(pair.difference.mean)
    interval = "-" if pair.interval is None else f"{pair.interval[0]:+.{places}f} to {pair.interval[1]:+.{places}f}"
    ratio = "-" if pair.ratio is None else f"{pair.ratio:.2f}"
    tests = [f"{value:.4f}" if value >= 0.0001 else "<0.0001" for value in (pair.p, pair.corrected_p)]
    difference = with_error(pair.difference, sign=True)
    return [pair.title, pair.against, str(len(pair.seeds)), difference, interval, ratio, *tests, pair.verdict]


def _table(headings: Sequence[str], rows: Sequence[Sequence[str]], words: int) -> Table:
    """A Rich table whose first `words` columns and verdict are text."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD)
    for place, heading in enumerate(headings):
        justify: Literal["left", "right"] = "left" if place < words or heading == "verdict" else "right"
        table.add_column(heading, justify=justify)
    for row in rows:
        table.add_row(*map(Text, row))
    return table


CSV_COLUMNS = (
    "env", "rounds", "slate_size", "options", "policy", "against", "seeds", "mean", "against_mean", "difference",
    "difference_se", "low", "high", "confidence", "ratio", "p", "p_holm", "verdict",
)  # fmt: skip


def csv_pairs(comparisons: Sequence[Comparison]) -> str:
    """One line a difference, with full precision; an empty cell where there is no number."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(CSV_COLUMNS)
    for comparison in comparisons:
        writer.writerows(_csv_row(comparison, pair) for pair in comparison.pairs)
    return out.getvalue()


def _csv_row(comparison: Comparison, pair: Pair) -> list[object]:
    gap = (None, None) if pair.difference is None else (pair.difference.mean, pair.difference.error)
    return [
        comparison.env, comparison.rounds, comparison.slate_size, comparison.options, pair.title, pair.against,
        len(pair.seeds), pair.mean, pair.against_mean, *gap, *(pair.interval or (None, None)), comparison.confidence,
        pair.ratio, pair.p, pair.corrected_p, pair.verdict,
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
    return {
        "env": comparison.env,
        "rounds": comparison.rounds,
        "slate_size": comparison.slate_size,
        "options": comparison.options,
        "confidence": comparison.confidence,
        "policies": [_standing_json(one) for one in comparison.standings],
        "differences": [_pair_json(pair) for pair in comparison.pairs],
        "notes": list(comparison.notes),
    }


def _standing_json(one: Standing) -> dict[str, Any]:
    row = asdict(one)
    regret = row.pop("regret")
    return row | {"mean": regret["mean"], "standard_error": regret["error"]}


def _pair_json(pair: Pair) -> dict[str, Any]:
    row = asdict(pair)
    gap = row.pop("difference") or {"mean": None, "error": None}
    corrected = row.pop("corrected_p")
    row["seeds"] = list(pair.seeds)
    row["interval"] = None if pair.interval is None else list(pair.interval)
    return row | {"difference": gap["mean"], "standard_error": gap["error"], "p_holm": corrected}
