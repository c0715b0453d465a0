"""Whether intervals of off-policy estimates hold: how often they cover what the estimator is after, and how wide.

    python -m benchmarks.coverage --out docs/records/coverage.json
    python -m benchmarks.coverage table docs/records/coverage.json

Fixed loggers: 2,000 logs of 300 and of 3,000 rows, 500 of 30,000 (100 for the bootstrap and finite-sample forms); 500
logs of 300 and 3,000 rows of a logger that learns. A cell is a logger, reward structure, overlap, number of rows,
estimator and kind. The interval is held against the exact mean of its estimator, which is the value of the target where
the estimator's assumption holds; a learning logger leaves others no fixed mean, so they are left out there.

Judged: asymptotic forms by the logs with an ESS of at least 100, in cells where most logs have it, against 93 to 97 %;
finite-sample forms and sequences by all logs against at least 95 %; the interval that is used by default by all
logs against at least 93 %. Binomial tests, Holm's correction over the cells of each of the three.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from scipy.stats import binom

from benchmarks.coverage_logs import Contributions, Logs, contributions, fixed_logs, learning_logs, limits
from benchmarks.coverage_problems import (
    ESTIMATORS,
    OVERLAPS,
    STRUCTURES,
    Floats,
    Overlap,
    Problem,
    Structure,
    Tables,
    problem,
    tables,
)  # fmt: skip
from benchmarks.tables import markdown, write_record
from neuclust.evaluation.intervals import (
    Interval,
    asymptotic,
    bootstrap,
    choose_interval,
    confidence_sequence,
    empirical_bernstein,
    holm,
    martingale,
    stabilisers,
)  # fmt: skip
from neuclust.randomness import stream

SIZES = {"fixed": {300: 2000, 3000: 2000, 30000: 500}, "learning": {300: 500, 3000: 500}}  # logs by rows
HOLDS = {"additive": ESTIMATORS, "cascade": ("ips", "snips", "rips"), "interacting": ("ips", "snips")}
AT_ONCE = 1_500_000  # rows in memory
SLOW_LOGS = 100  # of 30,000 rows, for the kinds that take long
ENOUGH = 100
JUDGED = {"asymptotic": "band", "bootstrap": "band", "martingale, levelled": "band", "default": "default"}
FINITE = ("empirical-bernstein", "confidence-sequence", "sequence, Bernstein", "sequence, running")
Logger = Literal["fixed", "learning"]
Ends = tuple[Floats, Floats]


@dataclass(frozen=True, slots=True)
class Cell:
    """Logs of one kind."""

    logger: Logger
    structure: Structure
    overlap: Overlap
    rows: int
    logs: int


def cells(scale: float) -> Iterator[Cell]:
    """All of them, with a share `scale` of the logs."""
    loggers: tuple[Logger, ...] = ("fixed", "learning")
    for logger in loggers:
        for rows, logs in SIZES[logger].items():
            for structure in STRUCTURES:
                for overlap in OVERLAPS:
                    yield Cell(logger, structure, overlap, rows, max(4, round(logs * scale)))


def chunks(cell: Cell, which: Problem, made: Tables) -> Iterator[Logs]:
    """The logs of a cell, so many at a time as fit in memory; the numbers of a chunk are its own."""
    most = max(1, AT_ONCE // cell.rows)
    name = f"coverage {cell.logger} {cell.structure} {cell.overlap} {cell.rows}"
    for part, start in enumerate(range(0, cell.logs, most)):
        count, rng = min(most, cell.logs - start), stream(0, name, part)
        if cell.logger == "fixed":
            yield fixed_logs(which, made, count, cell.rows, rng)
        else:
            yield learning_logs(which, made, cell.overlap, (count, cell.rows), rng)


# --- intervals of the logs of a chunk -------------------------------------------------------------------------------


def _last(found: Interval) -> Ends:
    return found.low[..., -1], found.high[..., -1]


def _ends(found: Interval) -> Ends:
    return found.low, found.high


def quick_kinds(made: Contributions, k: int) -> dict[str, Ends]:
    """Those that take little time."""
    span = (0.0, float(k))
    if made.moments is None:
        return {"asymptotic": _ends(asymptotic(made.values, span=span)), "plain t": plain_t(made.values)}
    h = stabilisers(made.moments)
    return {
        "martingale": _ends(martingale(made.values, span=span)),
        "martingale, levelled": _ends(martingale(made.values, h=h, span=span)),
    }


def plain_t(values: Floats) -> Ends:
    """The uncorrected interval x̄ ± 1.96·s/√n, to see what corrections are worth."""
    mean, half = values.mean(-1), 1.959964 * values.std(-1, ddof=1) / np.sqrt(values.shape[-1])
    return mean - half, mean + half


def slow_kinds(made: Contributions, k: int, largest: float, seed: int) -> dict[str, Ends]:
    """Bootstrap and finite-sample forms; empirical Bernstein for a fixed logger, whose largest weight is known."""
    span, pair = (0.0, float(k)), (made.scores, made.weights)
    found = {
        "confidence-sequence": _ends(confidence_sequence(*pair, span)),
        "sequence, Bernstein": _ends(confidence_sequence(*pair, span, form="bernstein")),
        "sequence, running": _last(confidence_sequence(*pair, span, running=True)),
    }
    if made.moments is None:
        found["bootstrap"] = _ends(bootstrap(made.values, seed=seed, span=span))
        bounds = (0.0, k * largest * (1 + 1e-9))
        found["empirical-bernstein"] = _ends(empirical_bernstein(made.scores, bounds, span=span))
    return found


def default(found: dict[str, Ends], ess: Floats, learning: bool, rows: int) -> Ends:
    """The interval that is used where none is asked for, log by log."""
    kinds = [choose_interval(learning, False, float(size), rows)[0] for size in ess]
    names = ["martingale, levelled" if kind == "martingale" else kind for kind in kinds]
    low, high = (np.array([found[name][end][at] for at, name in enumerate(names)]) for end in (0, 1))
    return low, high


# --- the figures of a cell ------------------------------------------------------------------------------------------


def study(cell: Cell) -> list[dict[str, Any]]:
    """One row for each estimator and kind."""
    which = problem(cell.structure)
    made = tables(which, cell.overlap)
    names = ESTIMATORS if cell.logger == "fixed" else HOLDS[cell.structure]
    wanted, kept = limits(which, made, names), dict[tuple[str, str], list[Floats]]()
    for part, logs in enumerate(chunks(cell, which, made)):
        slow = part * logs.slate.shape[0] < (SLOW_LOGS if cell.rows > 3000 else cell.logs)
        for name in names:
            own = contributions(logs, name)
            for kind, (low, high) in _kinds(cell, own, made.largest[name], which.slates.shape[1], part, slow).items():
                kept.setdefault((name, kind), []).append(np.stack([low, high, own.ess]))
    return [
        {**_plain(cell), "estimator": name, "kind": kind, **figures(np.concatenate(parts, axis=1), wanted[name]),
         "bias": round(wanted[name] - wanted["ips"], 4)}
        for (name, kind), parts in kept.items()
    ]  # fmt: skip


def _kinds(cell: Cell, own: Contributions, largest: float, k: int, part: int, slow: bool) -> dict[str, Ends]:
    found = quick_kinds(own, k)
    if slow:
        found |= slow_kinds(own, k, largest, part)
        found["default"] = default(found, own.ess, cell.logger == "learning", cell.rows)
    return found


def _plain(cell: Cell) -> dict[str, Any]:
    return {"logger": cell.logger, "structure": cell.structure, "overlap": cell.overlap, "rows": cell.rows}


def figures(found: Floats, value: float) -> dict[str, Any]:
    """Coverage, misses on either side, widths, and the same for the logs with enough effective rows; (3, L) -> ."""
    low, high, ess = found
    covered, enough = (low <= value) & (value <= high), ess >= ENOUGH
    return {
        "logs": len(low), "covered": int(covered.sum()), "below": int((value < low).sum()),
        "above": int((value > high).sum()), "width": _short(np.mean(high - low)), "value": _short(value),
        "ess": _short(np.median(ess)), "logs_enough": int(enough.sum()), "covered_enough": int(covered[enough].sum()),
    }  # fmt: skip


def _short(value: float | np.floating[Any]) -> float:
    return float(f"{float(value):.4g}")


# --- judgement and tables -------------------------------------------------------------------------------------------


Row = dict[str, Any]


def question(row: Row) -> str | None:
    """What a row is judged by: band, finite, default, or None where it is only shown."""
    if row["kind"] in FINITE:
        return "finite" if row["estimator"] != "snips" else None  # the same contributions as ips
    asked = JUDGED.get(row["kind"])
    return asked if asked != "band" or 2 * row["logs_enough"] >= row["logs"] else None


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


def verdicts(rows: Sequence[Row]) -> Iterator[str]:
    """How many cells are judged, how many of them are inside as they are, and those that are outside beyond chance."""
    bounds = {"band": (0.93, 0.97), "finite": (0.95, 1.0), "default": (0.93, 1.0)}
    for asked, (least, most) in bounds.items():
        own = [row for row in rows if question(row) == asked]
        part = ("covered_enough", "logs_enough") if asked == "band" else ("covered", "logs")
        shares = [row[part[0]] / row[part[1]] for row in own]
        inside = sum(least <= each <= most for each in shares)
        failed = misses(rows, asked)
        ends = f"{100 * min(shares):.1f} to {100 * max(shares):.1f} %" if shares else "none"
        wanted = f"{100 * least:.0f} to {100 * most:.0f} %"
        found = f"{inside} inside {wanted}, {len(failed)} outside beyond chance"
        yield f"{asked}: {len(own)} cells, coverage {ends}; {found}"
        yield from (f"  miss: {_named(row)}: {share(row[part[0]], row[part[1]])}, p = {row['p']:.2g}" for row in failed)


def _named(row: Row) -> str:
    return f"{row['logger']} {row['structure']} {row['overlap']} {row['rows']} {row['estimator']} {row['kind']}"


def by_kind(rows: Sequence[Row]) -> str:
    """Coverage of kinds per logger, overlap and rows, over structures and estimators, with the width beside that of the
    narrowest judged kind."""
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


def run(scale: float, say: Callable[[str], object]) -> list[Row]:
    """All cells, one after the other."""
    rows, began = list[Row](), time.perf_counter()
    for cell in cells(scale):
        rows += study(cell)
        say(f"{time.perf_counter() - began:6.0f} s  {cell.logger} {cell.structure} {cell.overlap} {cell.rows}\n")
    return rows


def main(words: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", nargs="?", choices=("run", "table"), default="run")
    parser.add_argument("file", nargs="?", type=Path, help="of figures, for the table")
    parser.add_argument("--out", type=Path, help="where figures are written")
    parser.add_argument("--scale", type=float, default=1.0, help="share of the logs, for a quick look")
    parser.add_argument("--cells", action="store_true", help="a line for every cell in the table")
    arguments = parser.parse_args(words)
    if arguments.command == "table":
        if arguments.file is None:
            parser.error("expected the file that --out wrote, got none")
        rows = json.loads(arguments.file.read_text(encoding="utf-8"))["rows"]
    else:
        rows = run(arguments.scale, sys.stderr.write)
        write_record(arguments.out, {"schema": 1, "level": 0.95, "rows": rows})
    print("\n".join([by_cell(rows) if arguments.cells else by_kind(rows), "", *verdicts(rows)]))


if __name__ == "__main__":
    main()
