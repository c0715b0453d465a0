"""Runs in worker processes of one thread each: fed one at a time, renewed now and then, replaced when they die."""

from __future__ import annotations

import os
import signal
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from multiprocessing import get_context, resource_tracker
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from time import monotonic
from typing import Any

from neuclust.errors import StateError
from neuclust.experiment.engines.engine import Failure, Outcome, Watch, attempt
from neuclust.experiment.run import Tally
from neuclust.experiment.tasks import Task

RUNS_PER_WORKER = 200  # then a fresh process, so that what libraries hold on to cannot pile up
ATTEMPTS = 2
FALSE_STARTS = 3  # workers in a row that die before they are ready
POLL_SECONDS = 0.2
PROGRESS_SECONDS = 0.2
THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS")


@dataclass(slots=True)
class _Worker:
    """A process, our end of its pipe, and what it is doing."""

    process: SpawnProcess
    pipe: Connection
    ready: bool = False
    task: Task | None = None
    runs: int = 0


@dataclass(frozen=True, slots=True)
class ProcessEngine:
    """At most `workers` processes at once; a run whose worker dies is tried once more, then given up."""

    workers: int
    runs_per_worker: int = RUNS_PER_WORKER

    def play(self, tasks: Sequence[Task], watch: Watch) -> Iterator[Outcome]:
        crew = _Crew(deque(tasks), watch, self.runs_per_worker)
        try:
            crew.hire(min(self.workers, len(tasks)))
            while crew.busy and not watch.stopped():
                # The next runs begin before the caller writes the last ones down.
                yield from crew.step()
        finally:
            crew.dismiss()


@dataclass(slots=True)
class _Crew:
    """The workers, the tasks nobody has begun, and how often each was tried."""

    waiting: deque[Task]
    watch: Watch
    runs_per_worker: int
    members: list[_Worker] = field(default_factory=list)
    tries: dict[str, int] = field(default_factory=dict)
    false_starts: int = 0

    @property
    def busy(self) -> bool:
        return bool(self.waiting) or any(worker.task is not None for worker in self.members)

    def hire(self, count: int) -> None:
        self.members += [_start_worker() for _ in range(count)]

    def step(self) -> list[Outcome]:
        """Hear what the workers say, give the free ones something to do, answer what has ended."""
        by_pipe = {worker.pipe: worker for worker in self.members}
        ended: list[Outcome] = []
        for pipe in wait(list(by_pipe), timeout=POLL_SECONDS):
            worker = by_pipe[pipe]  # type: ignore[index]
            try:
                word, content = worker.pipe.recv()
            except (EOFError, OSError):
                ended += self._lose(worker)
            else:
                ended += self._hear(worker, word, content)
        return ended

    def _hear(self, worker: _Worker, word: str, content: Any) -> list[Outcome]:
        task = worker.task
        if word == "round" and task is not None:
            self.watch.played(task, content)
            return []
        ended = [] if word == "ready" or task is None else [Outcome(task, content)]
        worker.ready, worker.task, self.false_starts = True, None, 0
        worker.runs += len(ended)
        self._employ(worker)
        return ended

    def _employ(self, worker: _Worker) -> None:
        if not self.waiting:
            return
        if worker.runs >= self.runs_per_worker:
            self._release(worker)
            self.hire(1)
            return
        task = self.waiting.popleft()
        worker.task = task
        self.tries[task.key] = self.tries.get(task.key, 0) + 1
        self.watch.started(task)
        with suppress(OSError):  # a dead worker is met when it is next heard
            worker.pipe.send(task)

    def _lose(self, worker: _Worker) -> list[Outcome]:
        """A worker died: its run goes back to the front of the queue, or is given up."""
        worker.process.join(timeout=1.0)  # for the exit code it chose
        self._release(worker)
        task, code = worker.task, worker.process.exitcode
        if not worker.ready:
            self.false_starts += 1
            if self.false_starts >= FALSE_STARTS:
                raise StateError(
                    f"expected worker processes to start, got {FALSE_STARTS} in a row that ended with {_ending(code)}; "
                    "try --engine inline to see why"
                )
        ended = []
        if task is not None and self.tries[task.key] < ATTEMPTS:
            self.waiting.appendleft(task)
        elif task is not None:
            ended = [Outcome(task, Failure(f"the worker process died {ATTEMPTS} times, last with {_ending(code)}"))]
        if self.waiting:
            self.hire(1)
        return ended

    def _release(self, worker: _Worker) -> None:
        self.members.remove(worker)
        _end(worker)

    def dismiss(self) -> None:
        for worker in list(self.members):
            self._release(worker)


def _ending(code: int | None) -> str:
    return f"signal {-code}" if code is not None and code < 0 else f"exit code {code}"


def _end(worker: _Worker) -> None:
    """At once: nothing of a worker is on disk, so there is nothing it could leave half done."""
    worker.pipe.close()
    worker.process.kill()
    worker.process.join()


def _start_worker() -> _Worker:
    context = get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_work, args=(theirs,), daemon=True)
    with _single_threaded(), _deaf_to_interrupts():
        process.start()
    theirs.close()
    return _Worker(process, ours)


@contextmanager
def _single_threaded() -> Iterator[None]:
    """What a process started here finds in its environment: libraries read it once, when they load."""
    before = {name: os.environ.get(name) for name in THREADS}
    os.environ.update(dict.fromkeys(THREADS, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


@contextmanager
def _deaf_to_interrupts() -> Iterator[None]:
    """Ctrl-C reaches the whole group, but the sweep alone decides what it means; a child inherits this mask."""
    resource_tracker.ensure_running()  # the first start would do so, and undo the mask
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _work(pipe: Connection) -> None:
    """A worker's life: play what comes, until the other end closes, as it also does when the sweep is killed."""
    import torch

    torch.set_num_threads(1)
    with suppress(EOFError, OSError, _GoneError):
        pipe.send(("ready", None))
        while True:
            task: Task = pipe.recv()
            pipe.send(("ended", attempt(task, _Progress(pipe)).result))


class _GoneError(BaseException):
    """Nobody listens any more; not an Exception, so that it is no outcome of the run."""


class _Progress:
    """Sends how many rounds were played, a few times a second."""

    def __init__(self, pipe: Connection) -> None:
        self._pipe, self._said = pipe, monotonic()

    def __call__(self, tally: Tally) -> None:
        now = monotonic()
        if now - self._said < PROGRESS_SECONDS:
            return
        self._said = now
        try:
            self._pipe.send(("round", tally.rounds))
        except OSError:
            raise _GoneError from None
