"""The learner as a process: started by the service as its child, or by itself where several services share a store."""

import contextlib
import logging
import os
import signal
import subprocess
import sys
import threading
from dataclasses import dataclass, field
from typing import IO

import torch

from neuclust.serve.learner.lease import SECONDS, Lease
from neuclust.serve.learner.loop import Loop
from neuclust.serve.learner.publishing import Pace
from neuclust.serve.learner.reporting import reported
from neuclust.serve.store.opening import open_store

GENTLE = 5  # how much a child yields to the service that answers requests
THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS")


def run_learner(
    address: str, stop: threading.Event | None = None, pace: Pace | None = None, seconds: float = SECONDS
) -> None:
    """Learn from the logs of a store until `stop`, SIGTERM or SIGINT; the computation has one thread."""
    torch.set_num_threads(1)
    end = threading.Event() if stop is None else stop
    if stop is None:
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: end.set())
    store = open_store(address)
    lease = Lease(store, seconds)
    try:
        with reported(address, lambda: lease.token is not None):
            Loop(store, lease, Pace() if pace is None else pace).run(end)
    finally:
        store.close()


def child_main(given: IO[str], seconds: float = SECONDS) -> None:
    """The child's life: the address is the first line of `given`, and its end means that the parent is gone."""
    address = given.readline().strip()
    if not address:
        return
    end = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: end.set())
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # of a terminal: the parent says when to end
    threading.Thread(target=_end_with, args=(given,), name="parent", daemon=True).start()
    with contextlib.suppress(OSError):
        os.nice(GENTLE)
    logging.basicConfig(level=logging.WARNING, format="learner: %(message)s")
    run_learner(address, end, seconds=seconds)


def _end_with(given: IO[str]) -> None:
    """End at once when nobody holds the other end: every write is whole or not there."""
    with contextlib.suppress(OSError, ValueError):
        while given.read(1):
            pass
    os._exit(0)


@dataclass
class LearnerProcess:
    """The child, from its parent's side. The address may hold a password and goes through a pipe."""

    address: str
    seconds: float = SECONDS
    _child: "subprocess.Popen[str] | None" = field(default=None, repr=False)

    @property
    def pid(self) -> int | None:
        return None if self._child is None else self._child.pid

    @property
    def alive(self) -> bool:
        return self._child is not None and self._child.poll() is None

    def start(self) -> None:
        """Start the child, or another one where it ended."""
        if self.alive:
            return
        self._close()
        environment = os.environ | dict.fromkeys(THREADS, "1")
        command = [sys.executable, "-m", "neuclust.serve.learner", str(self.seconds)]
        self._child = subprocess.Popen(command, stdin=subprocess.PIPE, env=environment, text=True)
        if self._child.stdin is not None:
            self._child.stdin.write(f"{self.address}\n")
            self._child.stdin.flush()

    def stop(self, patience: float = 30.0) -> None:
        """Let the child leave its states; after a while it is ended."""
        if self._child is not None and self.alive:
            self._child.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._child.wait(patience)
        self.kill()

    def kill(self) -> None:
        """End the child at once; nothing is lost."""
        if self._child is not None and self.alive:
            self._child.kill()
            self._child.wait()
        self._close()

    def _close(self) -> None:
        if self._child is not None and self._child.stdin is not None:
            with contextlib.suppress(OSError):
                self._child.stdin.close()
        self._child = None
