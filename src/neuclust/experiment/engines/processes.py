"""Runs in worker processes of one thread each: one job at a time, renewed now and then, replaced when they die."""

from __future__ import annotations

import os
import signal
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing import get_context, resource_tracker
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from time import monotonic
from typing import Any, Generic, TypeVar

from neuclust.errors import StateError
from neuclust.experiment.engines.engine import Failure, Outcome, Progress, Watch, attempt
from neuclust.experiment.records import RunRecord
from neuclust.experiment.tasks import Hooks, Task
from neuclust.registry import Registration, adopt, outside

RUNS_PER_WORKER = 200  # then a fresh process, so that what libraries hold on to cannot pile up
ATTEMPTS = 2
FALSE_STARTS = 3  # workers in a row that die before they are ready
POLL_SECONDS = 0.2
PROGRESS_SECONDS = 0.2
THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS")

J = TypeVar("J")
R = TypeVar("R")
OnProgress = Callable[[Progress], None]
Work = Callable[[J, OnProgress], R]  # a function of a module, by which workers find it


@dataclass(slots=True)
class _Worker:
    """A process, our end of its pipe, and the place of the job it works on."""

    process: SpawnProcess
    pipe: Connection
    ready: bool = False
    job: int | None = None
    jobs: int = 0


@dataclass(frozen=True, slots=True)
class ProcessEngine:
    """At most `workers` processes at once; a run whose worker dies is tried once more, then given up."""

    workers: int
    runs_per_worker: int = RUNS_PER_WORKER

    def play(self, tasks: Sequence[Task], watch: Watch) -> Iterator[Outcome]:
        pool = _Pool(_play, tasks, watch.started, watch.played)
        yield from (Outcome(task, result) for task, result in self._results(pool, watch.stopped))

    def map(self, work: Work[J, R], jobs: Sequence[J], stopped: Callable[[], bool]) -> Iterator[tuple[J, R | Failure]]:
        """Each job with what `work` returned for it, in the order they end; closing the iteration ends the workers."""
        return self._results(_Pool(work, jobs), stopped)

    def _results(self, pool: _Pool[J, R], stopped: Callable[[], bool]) -> Iterator[tuple[J, R | Failure]]:
        try:
            pool.start(self.workers, self.runs_per_worker)
            while pool.busy and not stopped():
                # The next runs begin before the caller writes the last ones down.
                yield from pool.step()
        finally:
            pool.stop()


def _play(task: Task, on_progress: OnProgress) -> RunRecord | Failure:
    result = attempt(task, Hooks(lambda tally: on_progress(Progress.of(tally))))
    return result.sendable if isinstance(result, Failure) else result


class _Pool(Generic[J, R]):
    """The workers, the jobs that wait by their places, and how often each was tried."""

    def __init__(
        self,
        work: Work[J, R],
        jobs: Sequence[J],
        on_start: Callable[[J], None] = lambda _: None,
        on_progress: Callable[[J, Progress], None] = lambda *_: None,
    ) -> None:
        self._work, self._jobs, self._on_start, self._on_progress = work, jobs, on_start, on_progress
        self._jobs_per_worker = RUNS_PER_WORKER
        self._waiting = deque(range(len(jobs)))
        self._workers: list[_Worker] = []
        self._tries = [0] * len(jobs)
        self._false_starts = 0

    @property
    def busy(self) -> bool:
        return bool(self._waiting) or any(worker.job is not None for worker in self._workers)

    def start(self, workers: int, jobs_per_worker: int) -> None:
        self._jobs_per_worker = jobs_per_worker
        for _ in self._jobs[:workers]:
            self._add()

    def _add(self) -> None:
        self._workers.append(_start_worker(self._work))

    def stop(self) -> None:
        for worker in list(self._workers):
            self._remove(worker)

    def step(self) -> list[tuple[J, R | Failure]]:
        """Read what workers have sent, assign jobs to free ones, and return the jobs that ended."""
        ended: list[tuple[J, R | Failure]] = []
        by_pipe: dict[object, _Worker] = {worker.pipe: worker for worker in self._workers}
        for pipe in wait([worker.pipe for worker in self._workers], timeout=POLL_SECONDS):
            worker = by_pipe[pipe]
            try:
                word, content = worker.pipe.recv()
            except (EOFError, OSError):
                ended += self._replace(worker)
            else:
                ended += self._receive(worker, word, content)
        return ended

    def _receive(self, worker: _Worker, word: str, content: Any) -> list[tuple[J, R | Failure]]:
        place = worker.job
        if word == "progress" and place is not None:
            self._on_progress(self._jobs[place], content)
            return []
        ended = [] if word == "ready" or place is None else [(self._jobs[place], content)]
        worker.ready, worker.job, self._false_starts = True, None, 0
        worker.jobs += len(ended)
        self._assign(worker)
        return ended

    def _assign(self, worker: _Worker) -> None:
        if not self._waiting:
            return
        if worker.jobs >= self._jobs_per_worker:
            self._remove(worker)
            self._add()
            return
        worker.job = self._waiting.popleft()
        self._tries[worker.job] += 1
        self._on_start(self._jobs[worker.job])
        with suppress(OSError):  # a dead worker is found when its pipe is next read
            worker.pipe.send(self._jobs[worker.job])

    def _replace(self, worker: _Worker) -> list[tuple[J, R | Failure]]:
        """A worker died: its job goes back to the front of the queue, or is given up."""
        worker.process.join(timeout=1.0)  # for the exit code it chose
        self._remove(worker)
        code = worker.process.exitcode
        if not worker.ready:
            self._false_starts += 1
            if self._false_starts >= FALSE_STARTS:
                got = f"{FALSE_STARTS} in a row that ended with {_ending(code)}"
                raise StateError(f"expected worker processes to start, got {got}; try the engine inline to see why")
        ended: list[tuple[J, R | Failure]] = []
        if worker.job is not None and self._tries[worker.job] < ATTEMPTS:
            self._waiting.appendleft(worker.job)
        elif worker.job is not None:
            failure = Failure(f"the worker process died {ATTEMPTS} times, last with {_ending(code)}")
            ended = [(self._jobs[worker.job], failure)]
        if self._waiting:
            self._add()
        return ended

    def _remove(self, worker: _Worker) -> None:
        """End a worker at once: nothing of it is on disk that it could leave half done."""
        self._workers.remove(worker)
        worker.pipe.close()
        worker.process.kill()
        worker.process.join()


def _ending(code: int | None) -> str:
    return f"signal {-code}" if code is not None and code < 0 else f"exit code {code}"


def _start_worker(work: Work[Any, Any]) -> _Worker:
    context = get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_serve, args=(theirs, work, outside()), daemon=True)
    with _single_threaded(), _interrupts_blocked():
        process.start()
    theirs.close()
    return _Worker(process, ours)


@contextmanager
def _single_threaded() -> Iterator[None]:
    """Environment variables of a process started here: libraries read them once, when they load."""
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
def _interrupts_blocked() -> Iterator[None]:
    """Ctrl-C reaches the whole process group, but the parent alone handles it; a child inherits this mask."""
    resource_tracker.ensure_running()  # the first start would do so, and undo the mask
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _serve(pipe: Connection, work: Work[Any, Any], registrations: Sequence[Registration]) -> None:
    """The main loop of a worker, until the other end closes, as it also does when the parent is killed."""
    import torch

    torch.set_num_threads(1)
    with suppress(EOFError, OSError, _ClosedError):
        adopt(registrations)
        pipe.send(("ready", None))
        while True:
            job = pipe.recv()
            try:
                result = work(job, _Sender(pipe))
            except Exception as error:
                result = Failure.of(error).sendable
            pipe.send(("ended", result))


class _ClosedError(BaseException):
    """The parent has closed the pipe; not an Exception, so that it is no outcome of the run."""


class _Sender:
    """Sends progress a few times per second."""

    def __init__(self, pipe: Connection) -> None:
        self._pipe, self._sent = pipe, monotonic()

    def __call__(self, progress: Progress) -> None:
        now = monotonic()
        if now - self._sent < PROGRESS_SECONDS:
            return
        self._sent = now
        try:
            self._pipe.send(("progress", progress))
        except OSError:
            raise _ClosedError from None
