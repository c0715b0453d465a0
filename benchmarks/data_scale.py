"""How long and how much memory do raw files of published size take to prepare?

    python benchmarks/data_scale.py [--ratings 25000000] [--reviews 7000000] [--folder DIR]

Generates raw files, prepares each in a process of its own, prints seconds and peak resident memory, and
deletes the files again. The aims: 25 million ratings within 30 s and 4 GB, 7 million reviews within 2 GB,
both on two cores.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Cost:
    """What one command took."""

    seconds: float
    peak_megabytes: float


def main(arguments: Sequence[str] | None = None) -> None:
    """Generate, prepare and print, MovieLens first."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ratings", type=int, default=25_000_000)
    parser.add_argument("--reviews", type=int, default=7_000_000)
    parser.add_argument("--folder", type=Path, default=None, help="where the files go; default: a temporary one")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        folder = Path(name)
        if options.ratings:
            measure(folder, "movielens", "--ratings", options.ratings, ("ratings.csv", "movies.csv"))
        if options.reviews:
            measure(folder, "yelp", "--reviews", options.reviews, ("review.json", "business.json"))


def measure(folder: Path, problem: str, option: str, rows: int, files: tuple[str, str]) -> None:
    """Generate `rows` rows, prepare them, print both costs, delete the files."""
    made = run("generate", problem, option, str(rows), "--out", str(folder))
    size = sum((folder / file).stat().st_size for file in files) / 1e9
    show(f"generate {problem}, {rows:,} rows, {size:.2f} GB", made)
    inputs = [word for file in files for word in (f"--{Path(file).stem}", str(folder / file))]
    show(f"prepare {problem}, {rows:,} rows", run("prepare", problem, *inputs, "--out", str(folder / "out.npz")))
    for file in files:
        (folder / file).unlink()


def run(*words: str) -> Cost:
    """One `neuclust data` command in a process of its own."""
    start = time.perf_counter()
    process = subprocess.Popen([sys.executable, "-m", "neuclust", "data", *words], stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    if status != 0:
        raise SystemExit(f"neuclust data {' '.join(words)}: ended with status {os.waitstatus_to_exitcode(status)}")
    return Cost(time.perf_counter() - start, usage.ru_maxrss / 1024)


def show(label: str, cost: Cost) -> None:
    print(f"{label:<55} {cost.seconds:8.1f} s {cost.peak_megabytes:8.0f} MB peak", flush=True)


if __name__ == "__main__":
    main()
