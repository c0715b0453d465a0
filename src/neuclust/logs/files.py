"""Files of events: lines or rows one after the other with their numbers, and lines turned into Parquet."""

import json
import os
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NamedTuple

from neuclust.errors import ConfigError, DataError, LogWarning, brief
from neuclust.extras import extra, require
from neuclust.files import SCRATCH

if TYPE_CHECKING:
    import polars

LINES, PARQUET, SPOOL = ".jsonl", ".parquet", ".jsonl"
BLOCK = 1 << 16  # bytes read at once
BATCH = 10_000  # rows of a Parquet file in memory at once
START = b'{"event":"start",'  # how our writer begins the first line of a run


class Row(NamedTuple):
    """An event with its number in the file, counted from 1, or why there is none; empty: a kill cut it off."""

    number: int
    event: dict[str, Any] | None
    problem: str = ""


def check_suffix(path: Path) -> None:
    """Refuse a file whose name does not tell how it is to be written."""
    if path.suffix not in (LINES, PARQUET):
        raise ConfigError(f"expected a file named .jsonl or .parquet, got {path}; rename it", field="log")
    if path.suffix == PARQUET:
        require("polars", "writing Parquet", field="log")


def unit(path: Path) -> str:
    """What the numbers of `rows` count."""
    return "row" if path.suffix == PARQUET else "line"


def rows(path: Path) -> Iterator[Row]:
    """Every event of a log file in order; constant memory."""
    if not path.is_file():
        raise DataError(f"{path}: expected a log, found no such file; check the name")
    return _parquet_rows(path) if path.suffix == PARQUET else line_rows(path)


# --- lines ----------------------------------------------------------------------------------------------------------


def line_rows(path: Path) -> Iterator[Row]:
    """Every line as a JSON object."""
    try:
        with path.open("rb") as file:
            for number, line in enumerate(file, 1):
                if line.strip():
                    yield _parsed(number, line)
    except OSError as error:
        raise DataError(f"{path}: expected a log that can be read, could not ({error.strerror})") from None


def _parsed(number: int, line: bytes) -> Row:
    try:
        event = json.loads(line)
    except (ValueError, RecursionError):
        if line.endswith(b"\n"):
            return Row(number, None, f"expected a JSON object, got {brief(line[:60])}; repair or remove the line")
        return Row(number, None)
    if not isinstance(event, dict):
        return Row(number, None, f"expected a JSON object, got {brief(event, 60)}; repair or remove the line")
    return Row(number, event)


def repair(path: Path) -> None:
    """Cut off a last line that a killed process did not finish, with a warning."""
    with path.open("r+b") as file:
        size = file.seek(0, os.SEEK_END)
        kept = _end_of_lines(file, size)
        if kept < size:
            file.truncate(kept)
            said = f"{path}: the last line was not finished, as after a killed process"
            warnings.warn(f"{said}; its {size - kept} bytes are cut off", LogWarning, stacklevel=2)


def _end_of_lines(file: IO[bytes], size: int) -> int:
    """Where the last finished line ends, searched from the end of the file."""
    end = size
    while end > 0:
        start = max(0, end - BLOCK)
        file.seek(start)
        at = file.read(end - start).rfind(b"\n")
        if at >= 0:
            return start + at + 1
        end = start
    return 0


def log_runs(path: Path) -> set[str]:
    """The names of runs that a .jsonl file of our writer holds; another file is refused."""
    found, first = set(), True
    with path.open("rb") as file:
        for line in file:
            if line.startswith(START):
                found.add(str(json.loads(line).get("run")))
            elif first:
                said = f"expected a log of this format or a new file, got {path}, which begins with {line[:60]!r}"
                raise ConfigError(f"{said}; name another file", field="log")
            first = False
    return found


# --- Parquet --------------------------------------------------------------------------------------------------------


def _types() -> "dict[str, Any]":
    """Columns by the keys of all events."""
    import polars as pl

    ids, numbers = pl.List(pl.Int64), pl.List(pl.Float64)
    design: dict[str, Any] = {
        "kind": pl.String,
        "base": ids,
        "share": pl.Float64,
        "pool": ids,
        "anywhere": pl.Float64,
        "sizes": ids,
    }
    cap: dict[str, Any] = {"groups": ids, "most": pl.Int64}
    text, whole, number, flag = pl.String, pl.Int64, pl.Float64, pl.Boolean
    return {
        "event": text, "run": text, "format": whole, "policy": text, "slate_size": whole, "dim": whole,
        "learning": flag, "reward": text, "reward_values": numbers, "arm": whole, "profile": numbers, "id": text,
        "t": whole, "time": number, "user": text, "query": numbers, "eligible": ids, "features": numbers, "k": whole,
        "slate": ids, "propensities": numbers, "design": pl.Struct(design), "required": ids, "excluded": ids,
        "caps": pl.List(pl.Struct(cap)), "version": text, "rewards": numbers, "slate_reward": number,
        "shown": pl.List(flag), "decision": text, "arms": ids, "values": numbers, "partial": flag,
    }  # fmt: skip


def to_parquet(lines: Path, path: Path) -> None:
    """Turn a .jsonl file into a Parquet file of the same events, whole or not at all; constant memory."""
    import polars as pl

    scratch = path.with_name(f".{path.name}{SCRATCH}")
    try:
        if lines.stat().st_size:
            pl.scan_ndjson(lines, schema=_types()).sink_parquet(scratch)
        else:
            pl.DataFrame(schema=_types()).write_parquet(scratch)
        os.replace(scratch, path)
    except pl.exceptions.PolarsError as error:
        said = f"{path}: expected events that can be turned into columns, got others ({error!s:.100})"
        raise DataError(f"{said}; they are kept in {lines}") from None
    finally:
        scratch.unlink(missing_ok=True)


def _parquet_rows(path: Path) -> Iterator[Row]:
    with extra("reading Parquet"):
        import polars as pl

    try:
        number = 0
        for frame in _batches(pl.scan_parquet(path)):
            for event in frame.iter_rows(named=True):
                number += 1
                yield Row(number, event)
    except (pl.exceptions.PolarsError, OSError) as error:
        said = f"{path}: expected a Parquet file of events, could not read it ({error!s:.100})"
        raise DataError(f"{said}; write it again") from None


def _batches(frame: "polars.LazyFrame") -> "Iterator[polars.DataFrame]":
    yield from frame.collect_batches(chunk_size=BATCH, maintain_order=True, lazy=True)
