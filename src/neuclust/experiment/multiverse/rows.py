"""One line of JSON per run: who played with which settings, on what, and the sums of the run."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from neuclust.errors import DataError
from neuclust.experiment.contestants import Contestant
from neuclust.experiment.records import RunRecord
from neuclust.experiment.sinks import read_lines
from neuclust.experiment.tasks import Task, code_version

MEASURES = ("expected_regret", "clipped_regret", "expected_clipped_regret", "clipped_floor", "successes")
_DIGITS = 6
Name = tuple[str, str]  # who, as canonical JSON, and the problem's content


@dataclass(frozen=True, slots=True)
class RunKey:
    """What names a run: equal in every version of the code that reads the settings alike."""

    who: str
    content: str | None
    rounds: int
    seed: int


def who_of(one: Contestant) -> str:
    """A contestant as canonical JSON: policy, preset and settings."""
    return json.dumps([one.policy, one.preset, dict(one.settings)], sort_keys=True)


def key_of_task(task: Task) -> RunKey:
    return RunKey(who_of(task.contestant), task.content, task.rounds, task.seed)


def row_of(task: Task, record: RunRecord, engine: str) -> dict[str, Any]:
    """A run as it is kept."""
    who = task.contestant
    row: dict[str, Any] = {"policy": who.policy, "preset": who.preset, "settings": dict(who.settings)}
    row |= {"problem": task.problem.name, "content": task.content, "rounds": task.rounds, "seed": task.seed}
    row |= {name: round(getattr(record, name), _DIGITS) for name in MEASURES}
    row |= {"failed_trainings": record.failed_trainings, "seconds": round(record.seconds, 3)}
    return row | {"engine": engine, "code": code_version()}


def key_of_row(row: Any, where: str) -> RunKey:
    """The key of a kept run; another line is refused."""
    try:
        who = Contestant(row["policy"], row["preset"], settings=row["settings"])
        key = RunKey(who_of(who), row["content"], row["rounds"], row["seed"])
        numbers = [float(row[name]) for name in MEASURES]
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        got = f"{type(error).__name__}: {error}"
        raise DataError(f"{where}: expected a run of a grid of readings, got another line ({got})") from None
    if not all(number == number for number in numbers):
        raise DataError(f"{where}: expected finite sums, got {numbers}")
    return key


def read_rows(files: Iterable[Path]) -> dict[RunKey, dict[str, Any]]:
    """All runs of these files, the first of each; files that are not there hold none."""
    found: dict[RunKey, dict[str, Any]] = {}
    for file in files:
        try:
            lines = read_lines(file)
        except ValueError as error:
            raise DataError(f"{file}: expected lines of JSON, got something else ({error})") from None
        for number, row in enumerate(lines, start=1):
            found.setdefault(key_of_row(row, f"{file}:{number}"), row)
    return found
