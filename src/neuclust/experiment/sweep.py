"""A sweep: play what a folder does not hold yet, write each record down as it comes, forget nothing, repeat nothing.

DIR/runs, curves, clusters   the records (see `store`)
DIR/bad                      records that turned out to be damaged and were played again
DIR/failures/KEY.json        configuration, error and traceback of a run that failed
DIR/.lock                    held by the one sweep that works on the folder
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from neuclust.errors import ConfigError, DataError, not_written, why_not_written
from neuclust.experiment.engines.engine import Engine, Failure, Outcome, Watch
from neuclust.experiment.records import RunRecord
from neuclust.experiment.store import flaw, open_store, present, set_aside, sweep_out_scratch, write_run
from neuclust.experiment.tasks import Task, configuration
from neuclust.files import write_text

FAILURES = "failures"
LOCK = ".lock"


@dataclass(frozen=True, slots=True)
class Standing:
    """Which tasks a folder holds, which failed there, which are left, and how many records are of none of them."""

    held: tuple[Task, ...]
    failed: tuple[Task, ...]
    missing: tuple[Task, ...]
    others: int = 0  # of other settings, or of another version of the code


def standing(folder: Path, tasks: Sequence[Task]) -> Standing:
    """How far a folder is with these tasks; a folder that is not there yet holds none."""
    keys = {task.key for task in tasks}
    there = present(folder)
    held = {key for key in there & keys if flaw(folder, key) is None}
    failed = {file.stem for file in (folder / FAILURES).glob("*.json")} - there
    return Standing(
        tuple(task for task in tasks if task.key in held),
        tuple(task for task in tasks if task.key in failed),
        tuple(task for task in tasks if task.key not in held | failed),
        len(there - keys),
    )


def sweep(
    folder: Path,
    tasks: Sequence[Task],
    engine: Engine,
    watch: Watch,
    *,
    retry_failed: bool = False,
    on_bad: Callable[[str], None] | None = None,
    on_begin: Callable[[Standing], None] | None = None,
    on_end: Callable[[Outcome], None] | None = None,
) -> Standing:
    """Play the tasks the folder lacks, keep every outcome at once, and answer how far the folder is then.

    `on_bad` hears of every damaged record that was set aside, in a sentence, `on_begin` how far the folder was
    before, `on_end` every outcome after it was written.
    """
    _make(folder)
    with locked(folder):
        sweep_out_scratch(folder)
        for sentence in _set_aside(folder, tasks):
            if on_bad is not None:
                on_bad(sentence)
        before = standing(folder, tasks)
        if on_begin is not None:
            on_begin(before)
        todo = before.missing + (before.failed if retry_failed else ())
        with closing(_iterate(engine, todo, watch)) as outcomes:
            for outcome in outcomes:
                _keep(folder, outcome)
                if on_end is not None:
                    on_end(outcome)
        return standing(folder, tasks)


def _set_aside(folder: Path, tasks: Sequence[Task]) -> list[str]:
    """Make damaged records missing; a note of a failure beside one is older than the record, and goes."""
    with _said_why(folder):
        bad = set_aside(folder, (task.key for task in tasks))
        for key in bad:
            (folder / FAILURES / f"{key}.json").unlink(missing_ok=True)
    return list(bad.values())


def _iterate(engine: Engine, tasks: Sequence[Task], watch: Watch) -> Generator[Outcome, None, None]:
    if tasks:
        yield from engine(tasks, watch)


def _make(folder: Path) -> None:
    try:
        open_store(folder, make=True)
    except OSError as error:
        raise ConfigError(not_written(folder, error, "--out", "folder")) from None


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold a folder alone; the lock goes with the process, however that ends."""
    with _opened(folder / LOCK) as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            owner = os.pread(handle, 32, 0).decode(errors="replace").strip() or "unknown"
            raise ConfigError(
                f"{folder}: expected a folder nobody works on, but another sweep (process {owner}) does; wait for it, "
                "or name another folder with --out"
            ) from None
        with _said_why(folder):
            os.ftruncate(handle, 0)
            os.pwrite(handle, f"{os.getpid()}\n".encode(), 0)
        yield


@contextmanager
def _opened(file: Path) -> Iterator[int]:
    with _said_why(file.parent):
        handle = os.open(file, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        yield handle
    finally:
        os.close(handle)


def _keep(folder: Path, outcome: Outcome) -> None:
    task, result = outcome.task, outcome.result
    failure = folder / FAILURES / f"{task.key}.json"
    with _said_why(folder):
        if isinstance(result, RunRecord):
            write_run(folder, task.key, result)
            failure.unlink(missing_ok=True)
        else:
            failure.parent.mkdir(exist_ok=True)
            write_text(failure, _failure_document(task, result))


def _failure_document(task: Task, failure: Failure) -> str:
    config = configuration(task.problem, task.content, task.contestant, task.seed, task.rounds)
    row = {"run": task.title, "error": failure.error, "traceback": failure.traceback, "config": config}
    return json.dumps({"key": task.key, **row}, indent=2, ensure_ascii=False) + "\n"


@contextmanager
def _said_why(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        reason, advice = why_not_written(error, folder)
        raise DataError(
            f"{folder}: expected a folder that takes another record, could not write it ({reason}); {advice}. The "
            "finished runs are kept, and the same command takes up the rest"
        ) from None
