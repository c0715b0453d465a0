"""Where runs are played: in this process, in worker processes, or on Ray; all give the same records.

An engine is a function of tasks and a `Watch` that yields an `Outcome` a task, in the order they end. It writes
nothing: whoever iterates keeps the records, so workers need no disk in common. Closing the iteration stops the work.
"""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from neuclust.errors import ConfigError, one_of, plain_warnings
from neuclust.experiment.records import RunRecord
from neuclust.experiment.run import Tally
from neuclust.experiment.tasks import Task, play

ENGINES = ("process", "inline", "ray")


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a run gave no record: one line, and the traceback where there is one."""

    error: str
    traceback: str = ""

    @classmethod
    def of(cls, error: Exception) -> Failure:
        return cls(f"{type(error).__name__}: {error}", "".join(traceback.format_exception(error)))


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a task ended."""

    task: Task
    result: RunRecord | Failure


class Watch(Protocol):
    """Told how runs go; asked whether to stop."""

    def started(self, task: Task) -> None: ...

    def played(self, task: Task, rounds: int) -> None: ...

    def stopped(self) -> bool: ...


Engine = Callable[[Sequence[Task], Watch], Iterator[Outcome]]


def make_engine(name: str, workers: int | None = None, address: str | None = None) -> Engine:
    """The engine of this name; `workers` None = one for each core at hand, on Ray one for each of its cores."""
    if name not in ENGINES:
        raise ConfigError(f"--engine: {one_of(name, ENGINES)}")
    if address is not None and name != "ray":
        raise ConfigError(f"--address: expected none with --engine {name}, got {address!r}; it is for --engine ray")
    if name == "inline":
        if workers not in (None, 1):
            raise ConfigError(f"--workers: expected 1 with --engine inline, got {workers}; use --engine process")
        return play_inline
    if name == "process":
        from neuclust.experiment.engines.processes import ProcessEngine

        return ProcessEngine(workers or cores()).play
    from neuclust.experiment.engines.ray import RayEngine, require_ray

    require_ray()
    return RayEngine(workers, address).play


def cores() -> int:
    """Those this process may use, where the system can tell."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def play_inline(tasks: Sequence[Task], watch: Watch) -> Iterator[Outcome]:
    """One after the other, here."""
    for task in tasks:
        if watch.stopped():
            return
        watch.started(task)

        def on_round(tally: Tally, task: Task = task) -> None:
            watch.played(task, tally.rounds)

        outcome = attempt(task, on_round, watch.stopped)
        if isinstance(outcome.result, RunRecord) and outcome.result.interrupted:
            return
        yield outcome


def attempt(task: Task, on_round: Callable[[Tally], None], stop: Callable[[], bool] | None = None) -> Outcome:
    """Play a task; what it raises is its outcome, and warnings about its learning name it."""
    try:
        with plain_warnings(_about(task)):
            return Outcome(task, play(task, on_round=on_round, stop=stop))
    except Exception as error:
        return Outcome(task, Failure.of(error))


def _about(task: Task) -> Callable[[str], None]:
    """Says a warning about learning with the run it is about."""

    def say(sentence: str) -> None:
        sys.stderr.write(f"warning: {task.title}: {sentence}\n")

    return say
