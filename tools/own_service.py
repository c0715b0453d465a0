"""`neuclust serve` as processes of one's own: started, waited for, killed with their children, ended."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Protocol

import httpx

from neuclust.errors import ConfigError

PATIENCE = 120.0  # seconds for a start
ADDRESS = re.compile(rb"http://\S+:(\d+) ")


class Process(Protocol):
    """What is used of `subprocess.Popen`."""

    @property
    def pid(self) -> int: ...

    def poll(self) -> int | None: ...

    def wait(self, timeout: float | None = None) -> int: ...

    def send_signal(self, number: int, /) -> None: ...


Launch = Callable[[Sequence[str], Mapping[str, str], int, int], Process]


def launched(arguments: Sequence[str], environment: Mapping[str, str], stdout: int, stderr: int) -> Process:
    """`neuclust ARGUMENTS` as a process with a group of its own, whose outputs go to two descriptors."""
    words = [sys.executable, "-m", "neuclust", *arguments]
    return subprocess.Popen(
        words, stdin=subprocess.DEVNULL, stdout=stdout, stderr=stderr, env=environment, start_new_session=True
    )


@dataclass
class OwnService:
    """One process of the service, in a process group of its own; the database's address is in its environment.

    Port 0 becomes a free one at the first start and stays the same from then on.
    """

    db: str = field(repr=False)
    role: str = "all"
    port: int = 0
    options: Sequence[str] = ()
    log: Path | None = None
    launch: Launch = launched
    process: Process | None = None

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self, wait: bool = True) -> None:
        """Start, and wait until it is ready."""
        words = ["serve", "--port", str(self.port), "--role", self.role, *self.options]
        environment = os.environ | {"NEUCLUST_DB": self.db, "OMP_NUM_THREADS": "1", "PYTHONUNBUFFERED": "1"}
        with open(self.log or os.devnull, "ab") as log, tempfile.TemporaryFile() as output:
            told = log if self.port or self.role == "learner" else output
            self.process = self.launch(words, environment, told.fileno(), log.fileno())
            if told is output:
                self.port = self._told(output)
        if wait and self.role != "learner":
            self.wait()

    def _told(self, output: IO[bytes]) -> int:
        """The port that the service says it listens on."""
        deadline = time.monotonic() + PATIENCE
        while self.running and time.monotonic() < deadline:
            output.seek(0)
            if found := ADDRESS.search(output.read()):
                return int(found[1])
            time.sleep(0.01)
        raise self._failed()

    def wait(self) -> None:
        """Wait until it is ready."""
        deadline = time.monotonic() + PATIENCE
        while not self.ready():
            if not self.running or time.monotonic() > deadline:
                raise self._failed()
            time.sleep(0.02)

    def _failed(self) -> ConfigError:
        return ConfigError(f"expected the service to start, got {self.errors()[-1_000:] or 'an end'}")

    def errors(self) -> str:
        """What it logged."""
        return "" if self.log is None else self.log.read_text(errors="replace")

    def ready(self) -> bool:
        """Whether it answers that it is."""
        try:
            return httpx.get(f"{self.address}/health/ready", timeout=5).status_code == 200
        except httpx.TransportError:
            return False

    @property
    def running(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def kill(self) -> None:
        """SIGKILL to the process and its children."""
        self._signal(signal.SIGKILL)

    def stop(self, patience: float = 30.0, by: signal.Signals = signal.SIGTERM) -> None:
        """End it in order; what does not end by then is killed."""
        if self.process is None:
            return
        self.process.send_signal(by)
        try:
            self.process.wait(patience)
        except subprocess.TimeoutExpired:
            self.kill()

    def _signal(self, number: signal.Signals) -> None:
        if self.process is None:
            return
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, number)
        self.process.wait(PATIENCE)

    def memory(self) -> int:
        """Bytes that the process and its children hold, shared pages counted once (PSS)."""
        return 0 if self.process is None else sum(_held(pid) for pid in tree(self.process.pid))


def tree(root: int) -> list[int]:
    """A process and all below it."""
    parents: dict[int, int] = {}
    for entry in Path("/proc").glob("[0-9]*/stat"):
        try:
            parents[int(entry.parent.name)] = int(entry.read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
    found = [root]
    for pid in found:
        found += [child for child, parent in parents.items() if parent == pid]
    return found


def _held(pid: int) -> int:
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:")), 0)
