"""How long a log with a target's chances as columns takes, and how much memory: ips, snips and iips in bounded passes.

    python -m benchmarks.evaluate_scale --rows 10000000 --json docs/records/evaluate_scale.json

Slates of 3 out of 20 arms drawn evenly, clicks of known chances, a target that prefers the better arms. Written as
Parquet, then judged by `neuclust evaluate FILE --target mine` in a process of its own, whose peak memory is taken.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from time import perf_counter

import numpy as np
import polars as pl
from numpy.typing import NDArray

Floats = NDArray[np.float64]
ROWS, CHUNK, ARMS, SLATE = 200_000, 500_000, 20, 3


def write(path: Path, rows: int) -> float:
    """The log, in chunks; what the target earns per slate."""
    means = np.linspace(0.02, 0.3, ARMS)
    chances = np.exp(4 * means)
    chances /= chances.sum()
    parts = []
    for number, start in enumerate(range(0, rows, CHUNK)):
        part = path.with_name(f"part{number:03d}.parquet")
        _chunk(np.random.default_rng(number), min(CHUNK, rows - start), means, chances).write_parquet(part)
        parts.append(part)
    pl.scan_parquet(parts).sink_parquet(path)
    for part in parts:
        part.unlink()
    return float(SLATE * (means @ chances))


def _chunk(rng: np.random.Generator, rows: int, means: Floats, chances: Floats) -> pl.DataFrame:
    """Slots drawn with replacement, so that marginals are products; the target draws every slot by `chances`."""
    slates = rng.integers(0, ARMS, (rows, SLATE))
    clicks = (rng.random((rows, SLATE)) < means[slates]).astype(np.float64)
    even = np.full((rows, SLATE), 1 / ARMS)
    lists = {"propensities": even, "marginals": even, "rewards": clicks, "mine": chances[slates]}
    lists["mine_marginals"] = lists["mine"]
    kind = pl.Array(pl.Float64, SLATE)
    columns = {name: pl.Series(name, values, dtype=kind).cast(pl.List(pl.Float64)) for name, values in lists.items()}
    return pl.DataFrame({"event": pl.Series(["decision"]).new_from_index(0, rows), **columns})


def main(words: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args(words)
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "log.parquet"
        truth = write(log, arguments.rows)
        began = perf_counter()
        order = [sys.executable, "-m", "neuclust", "evaluate", str(log), "--target", "mine", "--json", "-", "--quiet"]
        done = subprocess.run(order, capture_output=True, text=True, check=True)
        seconds = perf_counter() - began
        size = log.stat().st_size / 1e6
    found = {each["estimator"]: each for each in json.loads(done.stdout)["policies"]}
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1e6
    record = {
        "rows": arguments.rows, "slots": SLATE, "megabytes": round(size), "seconds": round(seconds, 1),
        "peak_gigabytes": round(peak, 2), "truth": round(truth, 5),
        "estimates": {name: round(each["estimate"], 5) for name, each in found.items()},
        "intervals": {name: [round(end, 5) for end in each["interval"]] for name, each in found.items()},
    }  # fmt: skip
    print(json.dumps(record, indent=2))
    if arguments.json is not None:
        arguments.json.write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
