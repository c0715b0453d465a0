"""What a report is made of: the records of a folder, and the runs that ended in an error."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from neuclust.errors import DataError
from neuclust.experiment.records import RunRecord
from neuclust.experiment.store import read_records

FAILURES = "failures"


@dataclass(frozen=True, slots=True)
class Failure:
    """A run that ended in an error; `traceback` may be empty."""

    name: str
    error: str
    traceback: str = ""


@dataclass(frozen=True, slots=True)
class Source:
    """Records and failures of one folder."""

    records: tuple[RunRecord, ...]
    failures: tuple[Failure, ...]


def read_source(path: Path, *, on_bad: Callable[[str], None] | None = None) -> Source:
    """A store of records, a folder with runs.json, or such a file; damaged records go to `on_bad`, or are refused."""
    records = read_records(path, on_bad=on_bad)
    folder = path if path.is_dir() else path.parent
    source = Source(tuple(records.values()), read_failures(folder / FAILURES, settled=set(records)))
    if not source.failures and not any(record.rounds for record in source.records):
        raise DataError(f"{path}: expected at least one run of at least one round, got none; run something first")
    return source


def read_failures(folder: Path, settled: set[str], asked: set[str] | None = None) -> tuple[Failure, ...]:
    """Notes of failed runs (of those `asked` for), without those that a later attempt has played after all."""
    files = [file for file in sorted(folder.glob("*.json")) if asked is None or file.stem in asked]
    return tuple(_failure(file) for file in files if file.stem not in settled)


def _failure(file: Path) -> Failure:
    """A damaged note of a failure is still a failure, and is shown as such."""
    try:
        note = json.loads(file.read_text(encoding="utf-8"))
        return Failure(str(note.get("run", file.stem)), str(note["error"]), str(note.get("traceback") or ""))
    except (OSError, ValueError, KeyError, AttributeError, TypeError):
        return Failure(file.stem, "its note could not be read")
