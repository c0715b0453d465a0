"""Whether intervals of off-policy estimates hold: how often they cover what the estimator is after, and how wide.

    python -m benchmarks.coverage --out docs/records/coverage.json
    python -m benchmarks.coverage table docs/records/coverage.json

Fixed loggers: 2,000 logs of 300 and of 3,000 rows, 500 of 30,000 (100 for the bootstrap and finite-sample forms); 500
logs of 300 and 3,000 rows of a logger that learns. A cell is a logger, reward structure, overlap, number of rows,
estimator and kind. The interval is held against the exact mean of its estimator, which is the value of the target where
the estimator's assumption holds; a learning logger leaves others no fixed mean, so they are left out there.

Judged: asymptotic forms by the logs with at least 100 effective rows, by their weights and as expected from the designs
(the smaller of both), against 93 to 97 %, and once more by their weights alone, which lucky logs pass. Finite-sample
forms and sequences: by all logs, against at least 95 %. The interval that is used by default: by all logs, against at
least 93 %. Binomial tests, Holm's correction over the cells of each. The forms were chosen on problems of seed 0; the
record is of others.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from benchmarks.coverage_logs import (
    Contributions,
    Logs,
    contributions,
    fixed_logs,
    learning_logs,
    limits,
    second_moments,
)
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
from benchmarks.coverage_tables import Row, by_cell, by_kind, read, verdicts, write
from neuclust.evaluation.intervals import (
    Interval,
    asymptotic,
    bootstrap,
    choose_interval,
    confidence_sequence,
    empirical_bernstein,
    martingale,
    self_normalised,
    stabilisers,
)  # fmt: skip
from neuclust.randomness import stream

SIZES = {"fixed": {300: 2000, 3000: 2000, 30000: 500}, "learning": {300: 500, 3000: 500}}  # logs by rows
HOLDS = {"additive": ESTIMATORS, "cascade": ("ips", "snips", "rips"), "interacting": ("ips", "snips")}
AT_ONCE = 1_500_000  # rows in memory
SLOW_LOGS = 100  # of 30,000 rows, for the kinds that take long
ENOUGH = 100
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
    seed: int


def cells(scale: float, seed: int) -> Iterator[Cell]:
    """All of them, with a share `scale` of the logs."""
    loggers: tuple[Logger, ...] = ("fixed", "learning")
    for logger in loggers:
        for rows, logs in SIZES[logger].items():
            for structure in STRUCTURES:
                for overlap in OVERLAPS:
                    yield Cell(logger, structure, overlap, rows, max(4, round(logs * scale)), seed)


def chunks(cell: Cell, which: Problem, made: Tables) -> Iterator[Logs]:
    """The logs of a cell, so many at a time as fit in memory; the numbers of a chunk are its own."""
    most = max(1, AT_ONCE // cell.rows)
    name = f"coverage {cell.logger} {cell.structure} {cell.overlap} {cell.rows}"
    for part, start in enumerate(range(0, cell.logs, most)):
        count, rng = min(most, cell.logs - start), stream(cell.seed, name, part)
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
        plain = _ends(asymptotic(made.values, span=span))
        found = {"plain t": plain_t(made.values), "asymptotic": plain}
        if made.ratio:
            found["linearised"] = plain
            found["asymptotic"] = _ends(self_normalised(made.scores, made.weights, span=span))
        return found
    h, weights = stabilisers(made.moments), made.weights if made.ratio else None
    return {
        "martingale": _ends(martingale(made.scores, span=span, weights=weights)),
        "martingale, levelled": _ends(martingale(made.scores, h=h, span=span, weights=weights)),
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


def study(cell: Cell) -> list[Row]:
    """One row for each estimator and kind."""
    which = problem(cell.structure, cell.seed)
    made = tables(which, cell.overlap)
    names = ESTIMATORS if cell.logger == "fixed" else HOLDS[cell.structure]
    wanted, kept = limits(which, made, names), dict[tuple[str, str], list[Floats]]()
    exact = second_moments(made)
    for part, logs in enumerate(chunks(cell, which, made)):
        slow = part * logs.slate.shape[0] < (SLOW_LOGS if cell.rows > 3000 else cell.logs)
        for name in names:
            own = contributions(logs, name, exact[name])
            for kind, (low, high) in _kinds(cell, own, made.largest[name], which.slates.shape[1], part, slow).items():
                kept.setdefault((name, kind), []).append(np.stack([low, high, own.ess, own.expected]))
    return [
        {**_plain(cell), "estimator": name, "kind": kind, **figures(np.concatenate(parts, axis=1), wanted[name]),
         "bias": round(wanted[name] - wanted["ips"], 4)}
        for (name, kind), parts in kept.items()
    ]  # fmt: skip


def _kinds(cell: Cell, own: Contributions, largest: float, k: int, part: int, slow: bool) -> dict[str, Ends]:
    found = quick_kinds(own, k)
    if slow:
        found |= slow_kinds(own, k, largest, part)
        found["default"] = default(found, np.minimum(own.ess, own.expected), cell.logger == "learning", cell.rows)
    return found


def _plain(cell: Cell) -> dict[str, Any]:
    return {"logger": cell.logger, "structure": cell.structure, "overlap": cell.overlap, "rows": cell.rows}


def figures(found: Floats, value: float) -> dict[str, Any]:
    """Coverage, misses on either side, widths, and coverage of logs with enough effective rows, truly and by luck."""
    low, high, ess, expected = found
    covered, enough = (low <= value) & (value <= high), np.minimum(ess, expected) >= ENOUGH
    lucky = (ess >= ENOUGH) & ~enough
    return {
        "logs": len(low), "covered": int(covered.sum()), "below": int((value < low).sum()),
        "above": int((value > high).sum()), "width": _short(np.mean(high - low)), "value": _short(value),
        "ess": _short(np.median(ess)), "logs_enough": int(enough.sum()), "covered_enough": int(covered[enough].sum()),
        "expected_ess": _short(np.median(expected)), "logs_lucky": int(lucky.sum()),
        "covered_lucky": int(covered[lucky].sum()),
    }  # fmt: skip


def _short(value: float | np.floating[Any]) -> float:
    return float(f"{float(value):.4g}")


def run(scale: float, seed: int, say: Callable[[str], object]) -> list[Row]:
    """All cells, one after the other."""
    rows, began = list[Row](), time.perf_counter()
    for cell in cells(scale, seed):
        rows += study(cell)
        say(f"{time.perf_counter() - began:6.0f} s  {cell.logger} {cell.structure} {cell.overlap} {cell.rows}\n")
    return rows


def main(words: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", nargs="?", choices=("run", "table"), default="run")
    parser.add_argument("file", nargs="?", type=Path, help="of figures, for the table")
    parser.add_argument("--out", type=Path, help="where figures are written")
    parser.add_argument("--scale", type=float, default=1.0, help="share of the logs, for a quick look")
    parser.add_argument("--seed", type=int, default=1, help="of the problems and their logs")
    parser.add_argument("--cells", action="store_true", help="a line for every cell in the table")
    arguments = parser.parse_args(words)
    if arguments.command == "table":
        if arguments.file is None:
            parser.error("expected the file that --out wrote, got none")
        rows = read(arguments.file)
    else:
        rows = run(arguments.scale, arguments.seed, sys.stderr.write)
        if arguments.out is not None:
            write(arguments.out, rows, arguments.seed)
    print("\n".join([by_cell(rows) if arguments.cells else by_kind(rows), "", *verdicts(rows)]))


if __name__ == "__main__":
    main()
