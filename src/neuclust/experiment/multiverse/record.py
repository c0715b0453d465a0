"""What is kept of a played grid: its readings, and of every cell, role and seed the sums of the run."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from neuclust.errors import DataError
from neuclust.experiment.multiverse.grid import ROLES, Grid
from neuclust.experiment.multiverse.rows import RunKey, who_of
from neuclust.files import write_text

DIGITS = 4
_HEAD = ("name", "preset", "rounds", "slate_size", "seeds", "problem", "content", "floor", "engines", "readings")
Record = Mapping[str, Any]


def record_of(grid: Grid, rows: Mapping[RunKey, Mapping[str, Any]]) -> dict[str, Any]:
    """The runs of the grid's cells, out of lines that may hold others; a run that is not there failed or is not played.

    A role of a cell is {seeds, expected, clipped, failed}: lists of equal length; `failed` counts failed trainings.
    """
    by_who: dict[str, dict[int, Mapping[str, Any]]] = {}
    for key, row in rows.items():
        if key.rounds == grid.rounds and key.seed in grid.seeds:
            by_who.setdefault(key.who, {})[key.seed] = row
    used: list[Mapping[str, Any]] = []
    cells = []
    for cell in grid.cells:
        roles = {}
        for role in ROLES:
            found = by_who.get(who_of(grid.contestant(cell, role)), {})
            kept = [found[seed] for seed in grid.seeds if seed in found]
            used += kept
            roles[role] = {
                "seeds": [row["seed"] for row in kept],
                "expected": [round(row["expected_regret"], DIGITS) for row in kept],
                "clipped": [round(row["clipped_regret"], DIGITS) for row in kept],
                "failed": [row["failed_trainings"] for row in kept],
            }
        cells.append({"options": list(cell.options), "engine": cell.engine, "runs": roles})
    contents = {row["content"] for row in used}
    if len(contents) != 1:
        raise DataError(f"expected runs of this grid on one problem, got {len(contents)} problems; name their files")
    readings = [
        {"name": r.name, "question": r.question, "preferred": r.preferred, "why": r.why,
         "options": {key: option.words for key, option in r.options.items()}}
        for r in grid.readings
    ]  # fmt: skip
    head: dict[str, Any] = {"name": grid.name, "preset": grid.preset, "rounds": grid.rounds}
    head |= {"slate_size": grid.slate_size, "seeds": list(grid.seeds), "problem": used[0]["problem"]}
    head |= {"content": contents.pop(), "floor": round(used[0]["clipped_floor"], DIGITS)}
    return head | {"engines": sorted({row["engine"] for row in used}), "readings": readings, "cells": cells}


def record_text(record: Record) -> str:
    """The record as JSON, a reading and a role of a cell on a line, so that a changed run is a changed line."""
    lines = ["{", *(f'"{key}": {_json(record[key])},' for key in _HEAD[:-1])]
    lines.append('"readings": [\n' + ",\n".join(map(_json, record["readings"])) + "\n],")
    cells = [
        f'{{"options": {_json(cell["options"])}, "engine": "{cell["engine"]}", "runs": {{\n'
        + ",\n".join(f'"{role}": {_json(runs)}' for role, runs in cell["runs"].items())
        + "}}"
        for cell in record["cells"]
    ]
    lines.append('"cells": [\n' + ",\n".join(cells) + "\n]}")
    return "\n".join(lines) + "\n"


def read_record(file: Path) -> dict[str, Any]:
    """A record as it was kept; another file is refused."""
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise DataError(f"{file}: expected a record of readings, could not read it ({error.strerror})") from None
    except (UnicodeDecodeError, json.JSONDecodeError) as error:
        raise DataError(f"{file}: expected JSON, got a mistake in it: {error}") from None
    missing = [key for key in (*_HEAD, "cells") if not isinstance(found, dict) or key not in found]
    if missing:
        raise DataError(f"{file}: expected a record of readings, got a file without {', '.join(missing)}")
    return dict(found)


def write_record(file: Path, record: Record) -> None:
    write_text(file, record_text(record))


def _json(value: Sequence[Any] | Mapping[str, Any] | str | float) -> str:
    return json.dumps(value, ensure_ascii=False)
