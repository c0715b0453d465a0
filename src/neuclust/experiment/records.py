"""Rows of results: what one run of one policy gave, and its JSON on disk."""

from __future__ import annotations  # `_KINDS` and the store read the annotations of RunRecord as text

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, Field, asdict, dataclass, field, fields
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
    # Below: beyond the stable contract, with values another writer may leave out.
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
    rewards: str = ""  # their source: built-in, simulated or replayed; empty where it is unknown
    arm_successes: float = 0.0  # the sum of the arm rewards that were seen

    def to_json(self) -> dict[str, Any]:
        """Plain numbers, strings, lists and objects, ready for `json.dumps`."""
        row = asdict(self)
        row["curve"] = [list(point) for point in self.curve]
        row["reward_curve"] = [list(point) for point in self.reward_curve]
        return row | {"chosen_clusters": list(self.chosen_clusters)}


REQUIRED = tuple(
    column.name for column in fields(RunRecord) if column.default is MISSING and column.default_factory is MISSING
)


def runs_document(records: Sequence[RunRecord]) -> str:
    """The JSON text of a results file: `{"schema": 1, "runs": [...]}`, one run per line."""
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
        wanted = "expected a folder or file of results"
        raise DataError(f"{path}: {wanted}, could not read it ({error.strerror}); name another") from None
    except ValueError as error:
        raise DataError(f"{path}: expected results as JSON, got something else ({error})") from None
    if not isinstance(document, dict) or not isinstance(document.get("runs"), list):
        wanted = f'{{"schema": {SCHEMA}, "runs": [...]}}'
        raise DataError(f"{path}: expected {wanted}, got another document; name a file of results")
    if document.get("schema") != SCHEMA:
        got = f"{document.get('schema')!r}; read it with the neuclust that wrote it"
        raise DataError(f"{path}: expected schema {SCHEMA}, got {got}")
    return [record_from_json(row, f"{path}: run {index}") for index, row in enumerate(document["runs"], start=1)]


def record_from_json(row: object, where: str) -> RunRecord:
    """What `RunRecord.to_json` wrote, checked; `where` stands in the refusal."""
    if not isinstance(row, dict):
        raise DataError(f"{where}: expected an object, got {type(row).__name__}")
    missing = [name for name in REQUIRED if name not in row]
    if missing:
        raise DataError(f"{where}: expected the keys of a run, missing {', '.join(missing)}")
    known = (column for column in fields(RunRecord) if column.name in row)
    return RunRecord(**{column.name: _value(column, row[column.name], where) for column in known})


def _value(column: Field[Any], value: object, where: str) -> Any:
    expected, fits, kept = _KINDS[str(column.type)]
    if not fits(value):
        raise DataError(f"{where}, {column.name}: expected {expected}, got {value!r}")
    return value if kept is None else kept(value)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_curve(value: object) -> bool:
    pairs: list[Any] = value if isinstance(value, list) and all(isinstance(pair, list) for pair in value) else [[]]
    return all(len(pair) == 2 and _is_whole(pair[0]) and _is_number(pair[1]) for pair in pairs)


def _is_choices(value: object) -> bool:
    return isinstance(value, list) and all(map(_is_whole, value))


# By the annotation of a column of RunRecord: what is expected, the check, and how the value is kept, if not as it is.
_KINDS: dict[str, tuple[str, Callable[[object], bool], Callable[[Any], Any] | None]] = {
    "str": ("text", lambda value: isinstance(value, str), None),
    "int": ("a whole number", _is_whole, None),
    "float": ("a finite number", _is_number, float),
    "bool": ("true or false", lambda value: isinstance(value, bool), None),
    "int | None": ("a whole number", lambda value: value is None or _is_whole(value), None),
    "Curve": ("a list of [round, number] pairs", _is_curve, lambda pairs: tuple((t, float(y)) for t, y in pairs)),
    "Choices": ("a list of cluster numbers", _is_choices, tuple),
    "Mapping[str, str]": ("an object", lambda value: isinstance(value, dict), None),
    "Mapping[str, str | int | None]": ("an object", lambda value: isinstance(value, dict), None),
}
