"""How do time and memory of NeUClust grow with arms, rounds, parameters and slate size?

    python -m benchmarks.scaling [--only arms rounds ...] [--quick] [--json FILE] [--figure FILE]

Exact full covariance, 22 clusters, J = 40 steps (preset paper, other widths where parameters are varied). Every point
is a process of its own: it fills the history with slates at random, trains once, and then takes the median of five
selections and of as many updates, in processor time of one thread. Memory is the peak of the process above what it
held when the libraries were loaded. Exponents are slopes of log cost on log size over the upper half of the points.
Masked rounds ask for three of the features, dense ones for all. Where it is not varied: 1,000 arms (5,000 for slate
sizes), 200 rounds, p = 420, K = 5.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path

from benchmarks.growth import Panel, exponent, growth_figure
from benchmarks.scaling_point import AXES, Figures, Point
from benchmarks.tables import described, machine, markdown, short, write_record
from neuclust.report.drawing import save_figure

MEASURES = {"select_ms": "select ms", "update_ms": "update ms", "memory_mib": "MiB"}


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure every point in a child, print a table an axis, write record and figure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=AXES, default=AXES)
    parser.add_argument("--quick", action="store_true", help="few points")
    parser.add_argument("--json", type=Path, default=None, help="where every point goes")
    parser.add_argument("--figure", type=Path, default=None, help="where the picture goes, .svg or .png")
    options = parser.parse_args(arguments)
    about = machine()
    print(described(about), flush=True)
    found = [in_child(point) for point in points(options.quick) if point.axis in options.only]
    print(report(found))
    about["load_at_the_end"] = machine()["load"]
    words = " ".join(["OMP_NUM_THREADS=1 python -m benchmarks.scaling", *(arguments or sys.argv[1:])])
    write_record(options.json, {"command": words, "machine": about, "exponents": fitted(found), "points": found})
    if options.figure is not None:
        options.figure.parent.mkdir(parents=True, exist_ok=True)
        save_figure(growth_figure(panels(found), columns=len(options.only)), options.figure)


def points(quick: bool) -> list[Point]:
    """All of them, axis by axis."""
    arms = (1_000, 10_000, 100_000) if quick else (1_000, 3_000, 10_000, 30_000, 100_000, 300_000, 1_000_000)
    rounds = (100, 400) if quick else (50, 100, 200, 500, 1_000, 2_000, 5_000)
    shapes = ((20, 20), (42, 20)) if quick else ((20, 20), (42, 20), (64, 64), (171, 100))
    slates = (1, 5, 20) if quick else (1, 2, 5, 10, 20, 50)
    kinds = ("masked", "dense")
    return [
        *(Point("arms", kind, arms=n) for kind in kinds for n in arms),
        *(Point("rounds", kind, rounds=t) for kind in kinds for t in rounds),
        *(Point("parameters", kind, dim=d, width=m) for kind in kinds for d, m in shapes),
        *(Point("slate size", kind, slate_size=k, arms=5_000) for kind in kinds for k in slates),
    ]


def in_child(point: Point) -> Figures:
    """The point and its figures, from a process of its own."""
    words = [sys.executable, "-m", "benchmarks.scaling_point", json.dumps(asdict(point))]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"{point}: ended with status {done.returncode}\n{done.stderr}")
    figures: Figures = json.loads(done.stdout.splitlines()[-1])
    spent = "  ".join(f"{name} {short(figures[key])}" for key, name in MEASURES.items())
    print(f"{point.axis} {point.size:,}, {point.kind}: {spent}  by {figures['way']}", file=sys.stderr, flush=True)
    return {**asdict(point), "parameters": point.parameters, "size": point.size, **figures}


def curves(found: Sequence[Figures], axis: str, measure: str) -> dict[str, list[tuple[float, float]]]:
    """(size, cost) of the points of an axis, by kind."""
    rows = [row for row in found if row["axis"] == axis]
    kinds = dict.fromkeys(row["kind"] for row in rows)
    return {kind: sorted((row["size"], row[measure]) for row in rows if row["kind"] == kind) for kind in kinds}


def fitted(found: Sequence[Figures]) -> list[Figures]:
    """The exponents of every axis, kind and measure."""
    return [
        {"axis": axis, "kind": kind, "measure": measure, "exponent": round(exponent(curve), 3)}
        for axis in dict.fromkeys(row["axis"] for row in found)
        for measure in MEASURES
        for kind, curve in curves(found, axis, measure).items()
    ]


def report(found: Sequence[Figures]) -> str:
    """A table an axis, its last line the exponents."""
    return "\n".join(_table(found, axis) for axis in dict.fromkeys(row["axis"] for row in found))


def _table(found: Sequence[Figures], axis: str) -> str:
    by_measure = {measure: curves(found, axis, measure) for measure in MEASURES}
    columns = {
        f"{kind}: {MEASURES[measure]}": dict(by_measure[measure][kind])
        for kind in by_measure["select_ms"]
        for measure in MEASURES
    }
    sizes = sorted({size for column in columns.values() for size in column})
    last = ["exponent", *(f"{exponent(sorted(column.items())):.2f}" for column in columns.values())]
    return markdown([axis, *columns], [*(_row(size, columns.values()) for size in sizes), last]) + "\n"


def _row(size: float, columns: Iterable[dict[float, float]]) -> list[str]:
    return [f"{size:,.0f}", *(short(column[size]) if size in column else "" for column in columns)]


def panels(found: Sequence[Figures]) -> list[Panel]:
    """Time above, memory below, an axis a column."""
    axes = list(dict.fromkeys(row["axis"] for row in found))
    return [
        *(Panel(f"Time against {axis}", axis, "milliseconds", _times(found, axis)) for axis in axes),
        *(Panel(f"Memory against {axis}", axis, "MiB", curves(found, axis, "memory_mib")) for axis in axes),
    ]


def _times(found: Sequence[Figures], axis: str) -> dict[str, list[tuple[float, float]]]:
    return {
        f"{name}, {kind}": curve
        for name in ("select", "update")
        for kind, curve in curves(found, axis, f"{name}_ms").items()
    }


if __name__ == "__main__":
    main()
