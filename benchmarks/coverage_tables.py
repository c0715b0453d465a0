"""Judgement, tables and record of the coverage study: which cells are outside what is asked of them, beyond chance."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import binom

from benchmarks.tables import markdown
from neuclust.evaluation.intervals import holm

JUDGED = {"asymptotic": "band", "bootstrap": "band", "martingale, levelled": "band", "default": "default"}
FINITE = ("empirical-bernstein", "confidence-sequence", "sequence, Bernstein", "sequence, running")
Row = dict[str, Any]


def question(row: Row) -> str | None:
    """What a row is judged by: band, finite, default, or None where it is only shown."""
    if row["kind"] in FINITE:
        return "finite" if row["estimator"] != "snips" else None  # the same contributions as ips
    asked = JUDGED.get(row["kind"])
    return asked if asked != "band" or row["logs_enough"] else None


def p_of(row: Row) -> float:
    """The chance of a coverage this far out, at the nearest coverage that is allowed."""
    asked = question(row)
    if asked == "band":
        covered, logs = row["covered_enough"], row["logs_enough"]
        return float(min(binom.cdf(covered, logs, 0.93), binom.sf(covered - 1, logs, 0.97)))
    return float(binom.cdf(row["covered"], row["logs"], 0.95 if asked == "finite" else 0.93))


def misses(rows: Sequence[Row], asked: str, level: float = 0.05) -> list[Row]:
    """Rows of one question whose corrected p is below the level."""
    own = [row for row in rows if question(row) == asked]
    corrected: Sequence[float] = holm([p_of(row) for row in own]).tolist() if own else []
    return [{**row, "p": p} for row, p in zip(own, corrected, strict=True) if p < level]


def share(covered: int, logs: int) -> str:
    """`94.9 ± 0.5`, in per cent with a binomial standard error."""
    if not logs:
        return "–"
    part = covered / logs
    return f"{100 * part:.1f} ± {100 * (part * (1 - part) / logs) ** 0.5:.1f}"


BOUNDS = {"band": (0.93, 0.97), "finite": (0.95, 1.0), "default": (0.93, 1.0)}


def verdicts(rows: Sequence[Row]) -> Iterator[str]:
    """The three questions, and the first once more for all logs whose weights alone show 100 effective rows."""
    for asked in BOUNDS:
        yield from verdict(rows, asked, asked)
    yield from verdict([by_weights(row) for row in rows], "band", "band, by weights alone")


def verdict(rows: Sequence[Row], asked: str, title: str) -> Iterator[str]:
    """How many cells are judged, how many of them are inside as they are, and those that are outside beyond chance."""
    least, most = BOUNDS[asked]
    own = [row for row in rows if question(row) == asked]
    part = ("covered_enough", "logs_enough") if asked == "band" else ("covered", "logs")
    shares = [row[part[0]] / row[part[1]] for row in own]
    inside = sum(least <= each <= most for each in shares)
    failed = misses(rows, asked)
    ends = f"{100 * min(shares):.1f} to {100 * max(shares):.1f} %" if shares else "none"
    wanted = f"{100 * least:.0f} to {100 * most:.0f} %"
    yield f"{title}: {len(own)} cells, coverage {ends}; {inside} inside {wanted}, {len(failed)} outside beyond chance"
    for row in failed:
        found = share(row[part[0]], row[part[1]])
        yield f"  miss: {_named(row)}: {found} of {row[part[1]]} logs, ESS {row['ess']:,.0f}, p = {row['p']:.2g}"


def by_weights(row: Row) -> Row:
    """A row whose logs count by their weights, also where the designs expect fewer effective rows."""
    return {**row, **{f"{name}_enough": row[f"{name}_enough"] + row[f"{name}_lucky"] for name in ("logs", "covered")}}


def _named(row: Row) -> str:
    return f"{row['logger']} {row['structure']} {row['overlap']} {row['rows']} {row['estimator']} {row['kind']}"


def by_kind(rows: Sequence[Row]) -> str:
    """Coverage and mean width of kinds per logger, overlap and rows, over structures and estimators."""
    groups: dict[tuple[str, str, int, str], list[Row]] = {}
    for row in rows:
        groups.setdefault((row["logger"], row["overlap"], row["rows"], row["kind"]), []).append(row)
    lines = []
    for (logger, overlap, count, kind), own in groups.items():
        parts = [row["covered"] / row["logs"] for row in own]
        total = [sum(row[name] for row in own) for name in ("covered", "logs", "covered_enough", "logs_enough")]
        width = np.mean([row["width"] for row in own])
        line = [logger, overlap, kind, f"{count:,}", share(total[0], total[1]), f"{100 * min(parts):.1f}"]
        lines.append([*line, f"{width:.3f}", f"{100 * total[3] / total[1]:.0f}", share(total[2], total[3])])
    header = ["logger", "overlap", "kind", "rows", "coverage %", "lowest", "width", "ESS ≥ 100 %", "coverage there %"]
    return markdown(header, lines, words=3)


def by_cell(rows: Sequence[Row]) -> str:
    """Every row by itself."""
    header = ["logger", "structure", "overlap", "estimator", "kind", "rows", "ESS", "coverage %", "above %", "width",
              "ESS ≥ 100 %", "coverage there %"]  # fmt: skip
    lines = [
        [*(row[name] for name in ("logger", "structure", "overlap", "estimator", "kind")), f"{row['rows']:,}",
         f"{row['ess']:,.0f}", share(row["covered"], row["logs"]), f"{100 * row['above'] / row['logs']:.1f}",
         f"{row['width']:.3f}", f"{100 * row['logs_enough'] / row['logs']:.0f}",
         share(row["covered_enough"], row["logs_enough"])]
        for row in rows
    ]  # fmt: skip
    return markdown(header, lines, words=5)


def write(path: Path, rows: Sequence[Row], seed: int) -> None:
    """Names of the columns once, then a line for every cell."""
    names = list(rows[0])
    lines = ",\n".join(json.dumps([row[name] for name in names]) for row in rows)
    head = f'"schema": 1, "level": 0.95, "seed": {seed}, "columns": {json.dumps(names)}'
    path.write_text(f'{{{head}, "rows": [\n{lines}\n]}}\n', encoding="utf-8")


def read(path: Path) -> list[Row]:
    """What `write` wrote."""
    found = json.loads(path.read_text(encoding="utf-8"))
    return [dict(zip(found["columns"], row, strict=True)) for row in found["rows"]]
