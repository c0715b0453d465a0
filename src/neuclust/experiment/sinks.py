"""Sinks, called with the `Outcome` of each run as it ends: a file of all records, or a folder; and lines of JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from neuclust.errors import DataError, why_not_written
from neuclust.experiment.engines.engine import Failure, Outcome
from neuclust.experiment.records import RunRecord, write_runs
from neuclust.experiment.store import write_run
from neuclust.experiment.tasks import Task, configuration
from neuclust.files import write_text

FAILURES = "failures"


class RunsFiles:
    """All records so far as JSON, in the order of the tasks; each file is rewritten whole after every run."""

    def __init__(self, files: Sequence[Path], tasks: Sequence[Task]) -> None:
        self._files, self._tasks = files, tasks
        self._found: dict[str, RunRecord] = {}

    @property
    def records(self) -> list[RunRecord]:
        return [self._found[task.key] for task in self._tasks if task.key in self._found]

    def __call__(self, outcome: Outcome) -> None:
        self._found[outcome.task.key] = outcome.record()
        for file in self._files:
            write_runs(file, self.records)


class StoreSink:
    """A folder of records (see `store`); a failed run leaves DIR/failures/KEY.json, one cut short leaves nothing."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def __call__(self, outcome: Outcome) -> None:
        task, result = outcome.task, outcome.result
        failure = self._folder / FAILURES / f"{task.key}.json"
        with folder_errors(self._folder):
            if isinstance(result, Failure):
                failure.parent.mkdir(exist_ok=True)
                row = {"key": task.key, "run": task.title, "error": result.error, "traceback": result.traceback}
                document = json.dumps(row | {"config": configuration(task)}, indent=2, ensure_ascii=False)
                write_text(failure, f"{document}\n")
            elif not outcome.interrupted:
                write_run(self._folder, task.key, result)
                failure.unlink(missing_ok=True)


@contextmanager
def folder_errors(folder: Path) -> Iterator[None]:
    """An error of the system while a folder of records is written, as a sentence about the folder."""
    try:
        yield
    except OSError as error:
        reason, advice = why_not_written(error, folder)
        said = f"expected a folder that takes another record, could not write it ({reason}); {advice}"
        kept = "The finished runs are kept, and the same command takes up the rest"
        raise DataError(f"{folder}: {said}. {kept}") from None


class JsonLines:
    """One line of JSON per run, appended and flushed as it ends; a line that a kill cut short is dropped first."""

    def __init__(self, file: Path) -> None:
        content = file.read_bytes() if file.exists() else b""
        if content and not content.endswith(b"\n"):
            file.write_bytes(content[: content.rfind(b"\n") + 1])
        self._stream = file.open("a", encoding="utf-8")

    def __enter__(self) -> JsonLines:
        return self

    def __exit__(self, *_: object) -> None:
        self._stream.close()

    def write(self, row: Mapping[str, Any]) -> None:
        self._stream.write(json.dumps(row) + "\n")
        self._stream.flush()


def read_lines(file: Path) -> list[dict[str, Any]]:
    """The rows of a file of `JsonLines`, none where there is no file; a last line cut short is left out."""
    if not file.exists():
        return []
    lines = file.read_text(encoding="utf-8").splitlines(keepends=True)
    return [json.loads(line) for line in lines if line.endswith("\n")]
