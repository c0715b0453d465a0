"""A folder of records that survives anything: one Parquet file a run, its curve beside it, written whole.

    DIR/store.json              format and the version that made it
    DIR/runs/KEY.parquet        one row: every number of the run, settings and problem as JSON text
    DIR/curves/KEY.parquet      t, expected_regret, expected_reward at the points of the curve
    DIR/clusters/KEY.parquet    t, cluster in every round, for policies that play one

A run is done when its file under `runs` is there; it is written last and by one rename, so a kill at any moment
leaves it whole or absent, and its name, the hash of its configuration, keeps it from being there twice.
DuckDB, Polars and pandas read `DIR/runs/*.parquet` as one table.
"""

from __future__ import annotations

import io
import json
import os
import tempfile
from collections.abc import Iterable
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from neuclust import __version__
from neuclust.errors import DataError
from neuclust.experiment.records import RunRecord, read_runs, write_text

if TYPE_CHECKING:
    import polars as pl

FORMAT = 1
MARK = "store.json"
RUNS = "runs.json"  # what `neuclust run --out` writes instead of a store
ROOMS = ("runs", "curves", "clusters")
_BESIDE = ("curve", "reward_curve", "chosen_clusters")  # not columns of the table of runs
_AS_JSON = ("settings", "problem")


def open_store(folder: Path, make: bool = False) -> None:
    """Check that the folder is a store of this format; with `make`, turn a new or empty folder into one."""
    mark = folder / MARK
    if not mark.exists():
        if not make:
            raise DataError(
                f"{folder}: expected a folder of records ({MARK} inside), found none; `neuclust sweep` makes it"
            )
        if folder.exists() and (not folder.is_dir() or _holds_files(folder)):
            raise DataError(
                f"{folder}: expected a new or empty folder or a store of records, found other files; name another"
            )
        folder.mkdir(parents=True, exist_ok=True)
        write_text(mark, json.dumps({"format": FORMAT, "neuclust": __version__}) + "\n")
        _make_rooms(folder)
        return
    try:
        found = json.loads(mark.read_text())["format"]
    except (ValueError, KeyError, TypeError, OSError):
        found = "something unreadable"
    if found != FORMAT:
        raise DataError(
            f"{folder}: expected records of format {FORMAT}, got {found!r}; nothing was changed: read them with the "
            "neuclust that wrote them, or name another folder"
        )
    if make:
        _make_rooms(folder)  # a kill may have come between the mark and these


def _holds_files(folder: Path) -> bool:
    """Hidden names do not count: a kill while the mark was written leaves its scratch file."""
    return any(not entry.name.startswith(".") for entry in folder.iterdir())


def _make_rooms(folder: Path) -> None:
    for name in ROOMS:
        (folder / name).mkdir(exist_ok=True)


def sweep_out_scratch(folder: Path) -> None:
    """Remove what a killed writer left half written; only for whoever holds the folder alone."""
    for place in (folder, *(folder / name for name in ROOMS)):
        for pattern in (".*.scratch", f".{MARK}.*"):
            for file in place.glob(pattern):
                file.unlink(missing_ok=True)


def done(folder: Path) -> set[str]:
    """Keys of the runs that are there."""
    return {file.stem for file in (folder / "runs").glob("*.parquet")}


def write_run(folder: Path, key: str, record: RunRecord) -> None:
    """Put one run into the store: what stands beside it first, the row that makes it count last."""
    import polars as pl

    curve = pl.DataFrame(
        {
            "key": [key] * len(record.curve),
            "t": [t for t, _ in record.curve],
            "expected_regret": [value for _, value in record.curve],
            "expected_reward": [value for _, value in record.reward_curve],
        }
    )
    _replace(curve, folder / "curves" / f"{key}.parquet")
    if record.chosen_clusters:
        rounds = range(1, len(record.chosen_clusters) + 1)
        chosen = pl.DataFrame({"key": [key] * len(rounds), "t": list(rounds), "cluster": list(record.chosen_clusters)})
        _replace(chosen, folder / "clusters" / f"{key}.parquet")
    _replace(pl.DataFrame([{"key": key, **_row(record)}]), folder / "runs" / f"{key}.parquet")


def read_store(folder: Path) -> dict[str, RunRecord]:
    """All records by key, in order of environment, policy, preset and seed."""
    open_store(folder)
    records = {file.stem: _read(folder, file) for file in sorted((folder / "runs").glob("*.parquet"))}
    order = sorted(records, key=lambda k: (records[k].env, records[k].policy, records[k].preset, records[k].seed, k))
    return {key: records[key] for key in order}


def read_records(path: Path) -> dict[str, RunRecord]:
    """Records of a store by key; of a folder with runs.json, or of such a file, by their place in it."""
    if (path / MARK).exists():
        return read_store(path)
    if path.is_dir() and not (path / RUNS).exists():
        raise DataError(
            f"{path}: expected a folder of records ({MARK} or {RUNS} inside), found neither; "
            "`neuclust run --out` and `neuclust sweep` make such folders"
        )
    found = read_runs(path / RUNS if path.is_dir() else path)
    return {f"run {place}": record for place, record in enumerate(found, start=1)}


def _row(record: RunRecord) -> dict[str, Any]:
    row = {entry.name: getattr(record, entry.name) for entry in fields(record) if entry.name not in _BESIDE}
    for name in _AS_JSON:
        row[name] = json.dumps(dict(row[name]), sort_keys=True)
    # one column type in every file, whoever made the record: readers take all files as one table
    row["clusters"] = -1 if row["clusters"] is None else row["clusters"]
    numbers = {entry.name for entry in fields(record) if entry.type == "float"}
    return {name: float(value) if name in numbers else value for name, value in row.items()}


def _read(folder: Path, file: Path) -> RunRecord:
    import polars as pl

    try:
        row = pl.read_parquet(file).to_dicts()[0]
        curve = pl.read_parquet(folder / "curves" / file.name)
        chosen = folder / "clusters" / file.name
        clusters = pl.read_parquet(chosen)["cluster"].to_list() if chosen.exists() else []
        known = {entry.name for entry in fields(RunRecord)}
        values = {name: value for name, value in row.items() if name in known}
        for name in _AS_JSON:
            values[name] = json.loads(values[name])
        values["clusters"] = None if values["clusters"] == -1 else values["clusters"]
        values["curve"] = _pairs(curve["t"], curve["expected_regret"])
        values["reward_curve"] = _pairs(curve["t"], curve["expected_reward"])
        return RunRecord(**values, chosen_clusters=tuple(clusters))
    except (pl.exceptions.PolarsError, OSError, KeyError, TypeError, ValueError, IndexError) as error:
        raise DataError(f"{file}: expected a record of one run, got a damaged or foreign file ({error})") from None


def _pairs(rounds: Iterable[int], values: Iterable[float]) -> tuple[tuple[int, float], ...]:
    return tuple(zip(rounds, values, strict=True))


def _replace(frame: pl.DataFrame, path: Path) -> None:
    """Write the file whole or not at all, through Python's own file so that a full disk is an OSError."""
    content = io.BytesIO()
    frame.write_parquet(content, compression="zstd", statistics=False)
    handle, scratch = tempfile.mkstemp(dir=path.parent, prefix=".", suffix=".scratch")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content.getbuffer())
            file.flush()
            os.fsync(handle)  # or a power cut could leave the name without its content
        os.chmod(scratch, 0o644)
        os.replace(scratch, path)
    except BaseException:
        Path(scratch).unlink(missing_ok=True)
        raise
