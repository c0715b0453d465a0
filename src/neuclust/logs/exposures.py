"""Exposures of single arms written as a log: slates of one, one run for each pool of eligible arms."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import IO

import numpy as np
import polars as pl

from neuclust.data.logged.exposures import Exposures
from neuclust.data.options import Codes
from neuclust.errors import ConfigError, writing
from neuclust.files import SCRATCH
from neuclust.logs.events import RunStart, arm_event, start_event
from neuclust.logs.files import PARQUET, check_suffix, to_parquet

BLOCK = 10_000  # rows in memory at once with their queries
Progress = Callable[[int], None]


def check_log_place(path: Path) -> None:
    """Refuse a name that is none of a log, and a file that is there: logs are never overwritten."""
    if path.suffix not in (PARQUET, ".jsonl"):
        raise ConfigError(f"expected a file named .parquet or .jsonl, got {path}; rename it", field="out")
    if path.exists():
        raise ConfigError(f"expected a new file, got {path}, and logs are not overwritten; name another", field="out")


def write_exposures(exposures: Exposures, path: Path, progress: Progress | None = None) -> None:
    """Write the log whole or not at all; ids are numbers of lines in the raw file.

    The design is uniform where every arm of a pool was equally likely, else unknown with the propensity logged. The
    logger did not learn. Every run has its own catalogue, of the arms of its pool.
    """
    check_suffix(path)
    lines = path.with_name(f".{path.name}.jsonl{SCRATCH}")
    try:
        with writing(path):
            with lines.open("wb") as file:
                done = 0
                for index in range(len(exposures.pools)):
                    rows = np.flatnonzero(exposures.pool == index)
                    if len(rows):
                        _write_run(exposures, index, rows, file)
                        done += len(rows)
                    if progress is not None:
                        progress(done)
            if path.suffix == PARQUET:
                to_parquet(lines, path)
            else:
                os.replace(lines, path)
    finally:
        lines.unlink(missing_ok=True)


def _write_run(exposures: Exposures, index: int, rows: Codes, file: IO[bytes]) -> None:
    run, pool = exposures.run(index), exposures.pools[index]
    start = RunStart(
        run, exposures.logger, slate_size=1, dim=len(exposures.features), learning=False, reward_values=(0.0, 1.0)
    )
    file.write(_line(start_event(start)))
    for arm, profile in zip(exposures.arm_ids[pool].tolist(), exposures.profiles[pool], strict=True):
        file.write(_line(arm_event(run, arm, profile.tolist())))
    for first in range(0, len(rows), BLOCK):
        _decisions(exposures, rows[first : first + BLOCK], first + 1, len(pool), run).write_ndjson(file)


def _line(event: dict[str, object]) -> bytes:
    return json.dumps(event, separators=(",", ":"), allow_nan=False).encode() + b"\n"


def _decisions(exposures: Exposures, rows: Codes, t: int, pool: int, run: str) -> pl.DataFrame:
    """Decision events of the rows, which are rounds t, t + 1, … of their run; all arms of the run are eligible."""
    kind = "uniform" if exposures.uniform else "unknown"
    users = None if exposures.user is None else exposures.user[rows]
    columns: dict[str, object] = {
        "id": pl.Series(exposures.line[rows]).cast(pl.String),
        "t": np.arange(t, t + len(rows)),
        "time": exposures.time[rows],
        "user": pl.Series(users).cast(pl.String) if users is not None else None,
        "query": exposures.queries[exposures.query[rows]],
        "k": np.ones(len(rows), np.int64),
        "slate": exposures.arm_ids[exposures.arm[rows]][:, None],
        "propensities": exposures.propensity[rows][:, None],
        "rewards": exposures.reward[rows][:, None],
        "slate_reward": exposures.reward[rows],
    }
    frame = pl.DataFrame({name: values for name, values in columns.items() if values is not None})
    design = pl.struct(pl.lit(kind).alias("kind"), pl.lit([pool]).alias("sizes")).alias("design")
    return frame.select(
        pl.lit("decision").alias("event"), pl.lit(run).alias("run"), pl.all(), design,
        pl.lit(exposures.logger).alias("version"),
    )  # fmt: skip
