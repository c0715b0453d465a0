"""A sweep: play the runs a folder lacks and write each record as it ends.

DIR/runs, curves, clusters   the records (see `store`)
DIR/bad                      records that turned out to be damaged and were played again
DIR/failures/KEY.json        configuration, error and traceback of a run that failed
DIR/.lock                    held by the one sweep that works on the folder
"""

import fcntl
import os
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from neuclust.errors import ConfigError, why_not_written
from neuclust.experiment.engines.engine import Engine, Outcome, Watch
from neuclust.experiment.sinks import FAILURES, StoreSink, folder_errors
from neuclust.experiment.store import flaw, open_store, present, set_aside, sweep_out_scratch
from neuclust.experiment.tasks import Task

LOCK = ".lock"


@dataclass(frozen=True, slots=True)
class Standing:
    """Tasks of which a folder holds a record or a failure, those that are left, and the number of other records."""

    held: tuple[Task, ...]
    failed: tuple[Task, ...]
    missing: tuple[Task, ...]
    folder: Path
    others: int = 0  # of other settings, or of another version of the code

    @property
    def total(self) -> int:
        return len(self.held) + len(self.failed) + len(self.missing)


class SweepWatch(Watch, Protocol):
    """A `Watch` that also sees how far the folder was at the beginning."""

    def begin(self, before: Standing, todo: Sequence[Task]) -> None: ...


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
        folder,
        len(there - keys),
    )


def sweep(
    folder: Path,
    tasks: Sequence[Task],
    engine: Engine,
    watch: SweepWatch,
    *,
    retry_failed: bool = False,
    also: Callable[[Outcome], None] | None = None,
) -> Standing:
    """Play the tasks the folder lacks, write every outcome as it comes, and return how far the folder is then.

    `also` is told every outcome of a whole run after the folder has it.
    """
    try:
        open_store(folder, make=True)
    except OSError as error:
        reason, advice = why_not_written(error, folder)
        wanted = "expected a folder that can be written"
        raise ConfigError(f"{wanted}, got {folder} ({reason}); {advice}", field="out") from None
    with locked(folder):
        sweep_out_scratch(folder)
        for sentence in _set_aside(folder, tasks):
            watch.say(sentence)
        before, sink = standing(folder, tasks), StoreSink(folder)
        todo = before.missing + (before.failed if retry_failed else ())
        watch.begin(before, todo)
        with closing(_iterate(engine, todo, watch)) as outcomes:
            for outcome in outcomes:
                sink(outcome)
                if not outcome.interrupted:
                    watch.ended(outcome)
                    if also is not None:
                        also(outcome)
        return standing(folder, tasks)


def _set_aside(folder: Path, tasks: Sequence[Task]) -> list[str]:
    """Make damaged records missing; a note of a failure beside one is older than the record, and goes."""
    with folder_errors(folder):
        bad = set_aside(folder, (task.key for task in tasks))
        for key in bad:
            (folder / FAILURES / f"{key}.json").unlink(missing_ok=True)
    return list(bad.values())


def _iterate(engine: Engine, tasks: Sequence[Task], watch: Watch) -> Generator[Outcome, None, None]:
    if tasks:
        yield from engine(tasks, watch)


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Exclusive use of a folder; the lock goes with the process, however that ends."""
    with folder_errors(folder):
        file = os.fdopen(os.open(folder / LOCK, os.O_RDWR | os.O_CREAT, 0o644), "r+b")
    with file:
        handle = file.fileno()
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            owner = os.pread(handle, 32, 0).decode(errors="replace").strip() or "unknown"
            wanted = f"a folder no other process works on, but another sweep (process {owner}) does"
            raise ConfigError(f"{folder}: expected {wanted}; wait for it, or name another folder") from None
        with folder_errors(folder):
            os.ftruncate(handle, 0)
            os.pwrite(handle, f"{os.getpid()}\n".encode(), 0)
        yield
