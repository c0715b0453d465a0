"""Engines: functions of tasks and a `Watch` that yield one `Outcome` per task, in the order they end.

They play in this process, in worker processes, on Ray or on a device, give the same records and write nothing. Closing
the iteration stops the work. A run that `Watch.stopped` ended early may be yielded, with an `interrupted` record.
"""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple, Protocol

from neuclust.core import Policy
from neuclust.errors import ConfigError, NeuclustError, StateError, one_of, plain_warnings
from neuclust.experiment.records import RunRecord
from neuclust.experiment.run import Tally
from neuclust.experiment.tasks import Hooks, Task, play_task
from neuclust.extras import require
from neuclust.logs import LogWriter

ENGINES = ("processes", "inline", "ray", "device")
ALIASES = {"process": "processes"}  # the name until 0.1


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a run gave no record: one line, the traceback and the exception itself where there are some."""

    error: str
    traceback: str = ""
    exception: Exception | None = field(default=None, compare=False, repr=False)

    @classmethod
    def of(cls, error: Exception) -> Failure:
        return cls(f"{type(error).__name__}: {error}", "".join(traceback.format_exception(error)), error)

    @property
    def sendable(self) -> Failure:
        """For another process, which may not be able to rebuild exceptions of other libraries."""
        return self if isinstance(self.exception, NeuclustError) else replace(self, exception=None)

    def error_of(self, title: str) -> Exception:
        """What to raise for a failed job of this title."""
        return self.exception or StateError(f"{title}: {self.error}")


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a task ended."""

    task: Task
    result: RunRecord | Failure

    def record(self) -> RunRecord:
        """The record; a failed run raises its error."""
        if isinstance(self.result, RunRecord):
            return self.result
        raise self.result.error_of(self.task.title)

    @property
    def interrupted(self) -> bool:
        return isinstance(self.result, RunRecord) and self.result.interrupted


class Progress(NamedTuple):
    """How far a run is."""

    rounds: int
    expected_regret: float
    successes: float

    @classmethod
    def of(cls, tally: Tally) -> Progress:
        return cls(tally.rounds, tally.expected_regret, tally.successes)


class Watch(Protocol):
    """Sees how runs go, and decides when to stop."""

    def started(self, task: Task) -> None: ...

    def played(self, task: Task, progress: Progress) -> None: ...

    def ended(self, outcome: Outcome) -> None: ...

    def say(self, text: str) -> None: ...

    def stopped(self) -> bool: ...


@dataclass(frozen=True, slots=True)
class Unwatched:
    """A `Watch` that shows nothing and stops when `stopped` says so."""

    stopped: Callable[[], bool] = bool  # bool() is False

    def started(self, *_: object) -> None:
        """Nothing is shown, nor by the methods below."""

    played = ended = say = started


Engine = Callable[[Sequence[Task], Watch], Iterator[Outcome]]


def make_engine(name: str, workers: int | None = None, address: str | None = None) -> Engine:
    """The engine of this name (`device` is the CPU, `device:cuda` a GPU); `workers` None = one per core."""
    name = ALIASES.get(name, name)
    kind, _, device = name.partition(":")
    if kind not in ENGINES or (device and kind != "device"):
        raise ConfigError(one_of(name, ENGINES), field="engine")
    if address is not None and kind != "ray":
        raise ConfigError(f"expected none with the engine {kind}, got {address!r}; it is for ray", field="address")
    if kind in ("inline", "device"):
        if workers not in (None, 1):
            raise ConfigError(f"expected 1 with the engine {kind}, got {workers}; use processes", field="workers")
        if kind == "inline":
            return play_inline
        from neuclust.experiment.engines.device_engine import DeviceEngine

        return DeviceEngine(device or "cpu").play
    if kind == "processes":
        from neuclust.experiment.engines.processes import ProcessEngine

        return ProcessEngine(workers or cores()).play
    require("ray", "the engine ray", field="engine")
    from neuclust.experiment.engines.ray import RayEngine

    return RayEngine(workers, address).play


def cores() -> int:
    """The number of cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def play(
    tasks: Sequence[Task],
    engine: str | Engine = "inline",
    *,
    workers: int | None = None,
    on_failure: Callable[[Outcome], None] | None = None,
    watch: Watch | None = None,
) -> Iterator[RunRecord]:
    """Play tasks and yield their records as they end; `engine` is one of `ENGINES` or `device:cuda`.

    The first run that fails raises its error and stops the others, unless `on_failure` takes failed runs.
    """
    chosen = make_engine(engine, workers) if isinstance(engine, str) else engine
    for outcome in chosen(tasks, Unwatched() if watch is None else watch) if tasks else ():
        if isinstance(outcome.result, RunRecord):
            yield outcome.result
        elif on_failure is not None:
            on_failure(outcome)
        else:
            outcome.record()


@dataclass(frozen=True, slots=True)
class InlineEngine:
    """One run after the other in this process; `on_policy` gets each final policy, `titled` warnings name the run, and
    `log` gets every decision."""

    on_policy: Callable[[Policy], None] | None = None
    titled: bool = True
    log: LogWriter | None = None

    def play(self, tasks: Sequence[Task], watch: Watch) -> Iterator[Outcome]:
        """Outcomes in the order of the tasks; stops between two when `watch` says so."""
        for task in tasks:
            if watch.stopped():
                return
            watch.started(task)

            def on_round(tally: Tally, task: Task = task) -> None:
                watch.played(task, Progress.of(tally))

            hooks = Hooks(on_round, watch.stopped, self.on_policy, self.log)
            outcome = Outcome(task, attempt(task, hooks, self.titled))
            if not isinstance(outcome.result, RunRecord) or outcome.result.rounds:
                yield outcome


play_inline: Engine = InlineEngine().play


def attempt(task: Task, hooks: Hooks, titled: bool = True) -> RunRecord | Failure:
    """Play a task; what it raises is its outcome."""

    def say(sentence: str) -> None:
        sys.stderr.write(f"warning: {task.title}: {sentence}\n")

    try:
        if not titled:
            return play_task(task, hooks)
        with plain_warnings(say):
            return play_task(task, hooks)
    except Exception as error:
        return Failure.of(error)
