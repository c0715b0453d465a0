"""Rows of results: what one run of one policy gave, and its JSON on disk."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from neuclust.errors import DataError
from neuclust.files import write_text

SCHEMA = 1

Curve = tuple[tuple[int, float], ...]
Choices = tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRecord:
    """One policy on one problem with one seed; every sum runs over the rounds played."""

    policy: str
    preset: str
    env: str
    seed: int
    rounds: int  # played
    expected_regret: float
    clipped_regret: float  # realised
    expected_clipped_regret: float
    clipped_floor: float
    successes: float
    best_expected: float
    seconds: float
    select_seconds: float
    update_seconds: float
    curve: Curve  # (t, expected regret so far)
    # Below: beyond the stable contract, with values a foreign writer may leave out.
    expected_reward: float = 0.0
    realised_regret: float = 0.0
    mean_gap: float = 0.0
    reward_curve: Curve = ()  # (t, expected reward so far)
    chosen_clusters: Choices = ()  # the cluster played in every round, for policies that play one
    rounds_asked: int = 0
    interrupted: bool = False
    failed_trainings: int = 0  # fits of a network that ended in NaN or found no step that helped
    slate_size: int = 0
    clusters: int | None = None
    settings: Mapping[str, str] = field(default_factory=dict)
    problem: Mapping[str, str | int | None] = field(default_factory=dict)
    version: str = ""
    rewards: str = ""  # whose were played: built-in, simulated or replayed; empty where nobody said
    arm_successes: float = 0.0  # the sum of the arm rewards that were seen

    def to_json(self) -> dict[str, Any]:
        """Plain numbers, strings, lists and objects, ready for `json.dumps`."""
        row = asdict(self)
        row["curve"] = [list(point) for point in self.curve]
        row["reward_curve"] = [list(point) for point in self.reward_curve]
        row["chosen_clusters"] = list(self.chosen_clusters)
        return row


REQUIRED = tuple(
    column.name for column in fields(RunRecord) if column.default is MISSING and column.default_factory is MISSING
)


def runs_document(records: Sequence[RunRecord]) -> str:
    """The JSON text of a results file: `{"schema": 1, "runs": [...]}`, one run a line."""
    rows = ",\n".join(json.dumps(record.to_json(), ensure_ascii=False, allow_nan=False) for record in records)
    return f'{{"schema": {SCHEMA}, "runs": [\n{rows}\n]}}\n'


def write_runs(path: Path, records: Sequence[RunRecord]) -> None:
    """Write all records whole or not at all: a scratch file beside `path`, then one rename."""
    write_text(path, runs_document(records))


def read_runs(path: Path) -> list[RunRecord]:
    """The records of a results file; a foreign or damaged file is refused with its reason."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise DataError(
            f"{path}: expected a results file, could not read it ({error.strerror}); name another"
        ) from None
    except ValueError as error:
        raise DataError(f"{path}: expected results as JSON, got something else ({error})") from None
    if not isinstance(document, dict) or not isinstance(document.get("runs"), list):
        raise DataError(
            f'{path}: expected {{"schema": {SCHEMA}, "runs": [...]}}, got something else; name a file of runs'
        )
    if document.get("schema") != SCHEMA:
        raise DataError(
            f"{path}: expected schema {SCHEMA}, got {document.get('schema')!r}; read it with the neuclust that wrote it"
        )
    return [record_from_json(row, f"{path}: run {index}") for index, row in enumerate(document["runs"], start=1)]


def record_from_json(row: object, where: str) -> RunRecord:
    """What `RunRecord.to_json` wrote, checked; `where` stands in the refusal."""
    if not isinstance(row, dict):
        raise DataError(f"{where}: expected an object, got {type(row).__name__}")
    known = {column.name: _READERS[str(column.type)] for column in fields(RunRecord)}
    missing = [name for name in REQUIRED if name not in row]
    if missing:
        raise DataError(f"{where}: expected the keys of a run, missing {', '.join(missing)}")
    return RunRecord(**{key: known[key](row[key], f"{where}, {key}") for key in known if key in row})


def _refuse(where: str, expected: str, value: object) -> DataError:
    return DataError(f"{where}: expected {expected}, got {value!r}")


def _text(value: object, where: str) -> str:
    if not isinstance(value, str):
        raise _refuse(where, "text", value)
    return value


def _whole(value: object, where: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise _refuse(where, "a whole number", value)
    return value


def _number(value: object, where: str) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool) or not math.isfinite(value):
        raise _refuse(where, "a finite number", value)
    return float(value)


def _flag(value: object, where: str) -> bool:
    if not isinstance(value, bool):
        raise _refuse(where, "true or false", value)
    return value


def _optional_whole(value: object, where: str) -> int | None:
    return None if value is None else _whole(value, where)


def _mapping(value: object, where: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise _refuse(where, "an object", value)
    return value


def _curve(value: object, where: str) -> Curve:
    if not isinstance(value, list) or any(not isinstance(point, list) or len(point) != 2 for point in value):
        raise _refuse(where, "a list of [round, number] pairs", value)
    return tuple((_whole(t, where), _number(y, where)) for t, y in value)


def _choices(value: object, where: str) -> Choices:
    if not isinstance(value, list):
        raise _refuse(where, "a list of cluster numbers", value)
    return tuple(_whole(number, where) for number in value)


# By the annotation of a column of RunRecord, so that a new column is checked without a second list.
_READERS: dict[str, Callable[[object, str], Any]] = {
    "str": _text,
    "int": _whole,
    "float": _number,
    "bool": _flag,
    "int | None": _optional_whole,
    "Curve": _curve,
    "Choices": _choices,
    "Mapping[str, str]": _mapping,
    "Mapping[str, str | int | None]": _mapping,
}
