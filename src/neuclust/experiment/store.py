"""A folder of records that survives kills and damage: one Parquet file per run, its curve beside it, written whole.

    DIR/store.json              format and the version that made it
    DIR/runs/KEY.parquet        one row: every number of the run, settings and problem as JSON text
    DIR/curves/KEY.parquet      t, expected_regret, expected_reward at the points of the curve
    DIR/clusters/KEY.parquet    t, cluster in every round, for policies that play one
    DIR/bad/                    files that turned out to be damaged, under the same names

A run is done when its file under `runs`, written last and by one rename, is there and sound. KEY is the hash of its
configuration. A checksum inside the file (see `seal`) covers KEY and all files of the run; files of earlier versions
have none and are sound where they can be read and hold their key.
"""

from __future__ import annotations

import io
import itertools
import json
import os
from collections.abc import Callable, Iterable
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from neuclust import __version__
from neuclust.errors import DataError
from neuclust.experiment.records import RunRecord, read_runs
from neuclust.experiment.seal import is_intact, sealed
from neuclust.extras import require
from neuclust.files import write_bytes, write_text

if TYPE_CHECKING:
    import polars as pl

FORMAT = 1
MARK = "store.json"
RUNS = "runs.json"  # records of one command in one file, instead of a store
ROOMS = ("runs", "curves", "clusters")
BAD = "bad"
_BESIDE = ("curve", "reward_curve", "chosen_clusters")  # not columns of the table of runs
_AS_JSON = ("settings", "problem")


def open_store(folder: Path, make: bool = False) -> None:
    """Check that the folder is a store of this format; with `make`, turn a new or empty folder into one."""
    require("polars", "a folder of records")
    mark = folder / MARK
    if not mark.exists():
        if not make:
            raise DataError(f"{folder}: expected a folder of records ({MARK} inside), found none; name another")
        # hidden names do not count: a kill while the mark was written leaves its scratch file
        if folder.exists() and not (folder.is_dir() and all(one.name.startswith(".") for one in folder.iterdir())):
            raise DataError(f"{folder}: expected a new folder or a store of records, found other files; name another")
        folder.mkdir(parents=True, exist_ok=True)
        write_text(mark, json.dumps({"format": FORMAT, "neuclust": __version__}) + "\n")
        _make_rooms(folder)
        return
    try:
        found = json.loads(mark.read_text())["format"]
    except (ValueError, KeyError, TypeError, OSError):
        found = "something unreadable"
    if found != FORMAT:
        advice = "nothing was changed: read them with the neuclust that wrote them, or name another folder"
        raise DataError(f"{folder}: expected records of format {FORMAT}, got {found!r}; {advice}")
    if make:
        _make_rooms(folder)  # a kill may have come between the mark and these


def _make_rooms(folder: Path) -> None:
    for name in ROOMS:
        (folder / name).mkdir(exist_ok=True)


def sweep_out_scratch(folder: Path) -> None:
    """Remove what a killed writer left half written; only for the process that holds the lock of the folder."""
    for place, pattern in itertools.product(("", *ROOMS), (".*.scratch", f".{MARK}.*")):
        for file in (folder / place).glob(pattern):
            file.unlink(missing_ok=True)


def present(folder: Path) -> set[str]:
    """Keys of the runs that have a file, sound or not."""
    return {file.stem for file in (folder / "runs").glob("*.parquet")}


def done(folder: Path) -> set[str]:
    """Keys of the runs that are there and sound."""
    return {key for key in present(folder) if flaw(folder, key) is None}


def flaw(folder: Path, key: str) -> str | None:
    """What is wrong with the files of a run that has some, as half a sentence; None where nothing is."""
    try:
        if not _is_sealed(folder, key):
            _parse(folder, key)
    except ValueError as error:
        return str(error)
    return None


def set_aside(folder: Path, keys: Iterable[str]) -> dict[str, str]:
    """Move the files of bad runs among `keys` to DIR/bad, so that they are missing; a sentence for each by key."""
    said = {}
    for key in sorted(present(folder).intersection(keys)):
        wrong = flaw(folder, key)
        if wrong is not None:
            for room in ROOMS:  # `runs` first: after a kill in between the run does not count
                _move_aside(folder, room, key)
            said[key] = f"{_bad(folder, key, wrong)}; its files are now in {folder / BAD} and the run is played again"
    return said


def flaws(folder: Path, keys: Iterable[str]) -> list[str]:
    """A sentence for each bad run among `keys`; nothing is touched."""
    wrong = {key: flaw(folder, key) for key in sorted(present(folder).intersection(keys))}
    return [f"{_bad(folder, key, what)}; a sweep plays the run again" for key, what in wrong.items() if what]


def write_run(folder: Path, key: str, record: RunRecord) -> None:
    """Put one run into the store: what stands beside it first, the row that makes it count last."""
    import polars as pl

    curve: dict[str, list[Any]] = {"key": [key] * len(record.curve), "t": [t for t, _ in record.curve]}
    curve["expected_regret"] = [value for _, value in record.curve]
    curve["expected_reward"] = [value for _, value in record.reward_curve]
    write_bytes(_file(folder, "curves", key), _parquet(pl.DataFrame(curve)), durable=True)
    if record.chosen_clusters:
        rounds = range(1, len(record.chosen_clusters) + 1)
        chosen = pl.DataFrame({"key": [key] * len(rounds), "t": list(rounds), "cluster": list(record.chosen_clusters)})
        write_bytes(_file(folder, "clusters", key), _parquet(chosen), durable=True)
    else:
        _file(folder, "clusters", key).unlink(missing_ok=True)
    row = _parquet(pl.DataFrame([{"key": key, **_row(record)}]))
    write_bytes(_file(folder, "runs", key), sealed(row, _belongings(folder, key)), durable=True)


def read_store(
    folder: Path, *, keys: set[str] | None = None, on_bad: Callable[[str], None] | None = None
) -> dict[str, RunRecord]:
    """Records by key (of `keys`, where given), in order of environment, policy, preset and seed.

    A bad one is refused, or passed to `on_bad` in a sentence and left out.
    """
    open_store(folder)
    records: dict[str, RunRecord] = {}
    for key in sorted(present(folder) if keys is None else present(folder) & keys):
        try:
            _is_sealed(folder, key)
            records[key] = _parse(folder, key)
        except ValueError as error:
            wrong = _bad(folder, key, str(error))
            if on_bad is None:
                raise DataError(f"{wrong}; the command that made the folder plays the run again") from None
            on_bad(f"{wrong}; it is left out, and the command that made the folder plays the run again")
    order = sorted(records, key=lambda k: (records[k].env, records[k].policy, records[k].preset, records[k].seed, k))
    return {key: records[key] for key in order}


def read_records(path: Path, *, on_bad: Callable[[str], None] | None = None) -> dict[str, RunRecord]:
    """Records of a store by key; of a folder with runs.json, or of such a file, by their place in it."""
    if (path / MARK).exists():
        return read_store(path, on_bad=on_bad)
    if path.is_dir() and not (path / RUNS).exists():
        raise DataError(f"{path}: expected a folder of records ({MARK} or {RUNS} inside), found neither; name another")
    found = read_runs(path / RUNS if path.is_dir() else path)
    return {f"run {place}": record for place, record in enumerate(found, start=1)}


def _row(record: RunRecord) -> dict[str, Any]:
    row = {entry.name: getattr(record, entry.name) for entry in fields(record) if entry.name not in _BESIDE}
    for name in _AS_JSON:
        row[name] = json.dumps(dict(row[name]), sort_keys=True)
    # one column type in every file: readers take all files as one table
    row["clusters"] = -1 if row["clusters"] is None else row["clusters"]
    numbers = {entry.name for entry in fields(record) if entry.type == "float"}
    return {name: float(value) if name in numbers else value for name, value in row.items()}


def _file(folder: Path, room: str, key: str) -> Path:
    return folder / room / f"{key}.parquet"


def _belongings(folder: Path, key: str) -> list[bytes]:
    """What a run's checksum covers beside its own file: the name, the curve and, where there is one, the clusters."""
    beside = [_file(folder, room, key) for room in ROOMS[1:]]
    return [key.encode(), *(b"+" + file.read_bytes() if file.exists() else b"-" for file in beside)]


def _is_sealed(folder: Path, key: str) -> bool:
    """Whether a run has a checksum; raises ValueError with half a sentence where its files do not fit it."""
    try:
        intact = is_intact(_file(folder, "runs", key).read_bytes(), _belongings(folder, key))
    except OSError as error:
        raise ValueError(f"could not read its files ({error.strerror})") from None
    if intact is False:
        raise ValueError("got other bytes than were written for it: damage, or files of another run")
    return intact is not None


def _bad(folder: Path, key: str, wrong: str) -> str:
    return f"{_file(folder, 'runs', key)}: expected a record of one run, {wrong}"


def _move_aside(folder: Path, room: str, key: str) -> None:
    file, place = _file(folder, room, key), folder / BAD / room
    if not file.exists():
        return
    place.mkdir(parents=True, exist_ok=True)
    target, number = place / file.name, 2
    while target.exists():
        target, number = place / f"{key}.{number}.parquet", number + 1
    os.replace(file, target)


def _parse(folder: Path, key: str) -> RunRecord:
    """The record in a run's files; raises ValueError with half a sentence where they hold something else."""
    import polars as pl

    try:
        (row,) = _frame(_file(folder, "runs", key)).to_dicts()
        curve = _frame(_file(folder, "curves", key))
        chosen = _file(folder, "clusters", key)
        clusters = _frame(chosen) if chosen.exists() else None
        found = {row["key"], *curve["key"], *([] if clusters is None else clusters["key"])}
        if found != {key}:
            raise ValueError(f"it holds the run {next(iter(found - {key}))}")
        known = {entry.name for entry in fields(RunRecord)}
        values = {name: value for name, value in row.items() if name in known}
        for name in _AS_JSON:
            values[name] = json.loads(values[name])
        values["clusters"] = None if values["clusters"] == -1 else values["clusters"]
        values["curve"] = tuple(zip(curve["t"], curve["expected_regret"], strict=True))
        values["reward_curve"] = tuple(zip(curve["t"], curve["expected_reward"], strict=True))
        return RunRecord(**values, chosen_clusters=() if clusters is None else tuple(clusters["cluster"].to_list()))
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError, KeyError, TypeError, ValueError) as error:
        reason = str(error).partition("\n")[0][:200] or type(error).__name__
        raise ValueError(f"got a damaged or foreign file ({reason})") from None


def _frame(file: Path) -> pl.DataFrame:
    import polars as pl

    return pl.read_parquet(io.BytesIO(file.read_bytes()))  # by its bytes: a path with [ in it would be a pattern


def _parquet(frame: pl.DataFrame) -> bytes:
    content = io.BytesIO()
    frame.write_parquet(content, compression="zstd", statistics=False)
    return content.getvalue()
