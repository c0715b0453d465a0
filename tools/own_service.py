"""`neuclust serve` as processes of one's own: started, waited for, killed with their children, ended."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import httpx

from neuclust.errors import ConfigError
from tools.own_postgres import free_port

PATIENCE = 120.0  # seconds for a start


@dataclass
class OwnService:
    """One process of the service, in a process group of its own; the database's address is in its environment."""

    db: str = field(repr=False)
    role: str = "all"
    port: int = field(default_factory=free_port)
    options: Sequence[str] = ()
    log: Path | None = None
    process: subprocess.Popen[bytes] | None = None

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self, wait: bool = True) -> None:
        """Start, and wait until it is ready."""
        words = [sys.executable, "-m", "neuclust", "serve", "--port", str(self.port), "--role", self.role]
        environment = os.environ | {"NEUCLUST_DB": self.db, "OMP_NUM_THREADS": "1"}
        with open(self.log or os.devnull, "ab") as log:
            self.process = subprocess.Popen(
                [*words, *self.options], stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment,
                start_new_session=True,
            )  # fmt: skip
        if wait and self.role != "learner":
            self.wait()

    def wait(self) -> None:
        """Wait until it is ready."""
        deadline = time.monotonic() + PATIENCE
        while not self.ready():
            if not self.running or time.monotonic() > deadline:
                tail = "" if self.log is None else self.log.read_text(errors="replace")[-1_000:]
                raise ConfigError(f"expected the service to start at {self.address}, got {tail or 'an end'}")
            time.sleep(0.02)

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

    def stop(self, patience: float = 30.0) -> None:
        """End it in order; what does not end by then is killed."""
        if self.process is None:
            return
        self.process.terminate()
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
