"""Runs of a reproduction as lines of JSON: what a machine without a store of records writes, and a store takes up."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from neuclust.errors import DataError
from neuclust.experiment.records import RunRecord, record_from_json
from neuclust.experiment.sinks import read_lines


def line_of(key: str, record: RunRecord) -> dict[str, Any]:
    """A run under the key of its task."""
    return {"key": key} | record.to_json()


def read_runs_of(files: Iterable[Path]) -> dict[str, RunRecord]:
    """Records by key, the first of each; files that are not there hold none."""
    found: dict[str, RunRecord] = {}
    for file in files:
        try:
            lines = read_lines(file)
        except ValueError as error:
            raise DataError(f"{file}: expected lines of JSON, got something else ({error})") from None
        for number, row in enumerate(lines, start=1):
            if not isinstance(row, dict) or not isinstance(row.get("key"), str):
                raise DataError(f"{file}:{number}: expected a run under its key, got another line; name another file")
            found.setdefault(row["key"], record_from_json(row, f"{file}:{number}"))
    return found
