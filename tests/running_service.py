"""A real service in processes of its own, for tests: started, asked over HTTP, killed, started again."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
from patience import HANG_SECONDS

ADDRESS = re.compile(r"http://\S+")


@dataclass
class RunningService:
    """`neuclust serve` on a database; a context manager."""

    db: str
    options: tuple[str, ...] = ()
    key: str | None = None
    log: Path | None = None
    process: subprocess.Popen[str] | None = None
    address: str = ""
    client: httpx.Client = field(init=False)

    def __enter__(self) -> RunningService:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        """Start it and wait until it answers."""
        command = [sys.executable, "-m", "neuclust", "serve", "--db", self.db, "--port", "0", *self.options]
        errors = subprocess.DEVNULL if self.log is None else self.log.open("a")
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=errors, text=True, start_new_session=True,
            env=os.environ | {"OMP_NUM_THREADS": "1", "PYTHONUNBUFFERED": "1"},
        )  # fmt: skip
        assert self.process.stdout is not None
        said = ""
        for line in self.process.stdout:
            said += line
            if found := ADDRESS.search(line):
                self.address = found[0].rstrip("/")
                break
        assert self.address, f"the service did not start: {said} {self.errors()}"
        headers = {} if self.key is None else {"Authorization": f"Bearer {self.key}"}
        self.client = httpx.Client(base_url=self.address, timeout=HANG_SECONDS, headers=headers)
        eventually(lambda: self.client.get("/health/ready").status_code == 200, "the service is ready")

    def errors(self) -> str:
        return "" if self.log is None else self.log.read_text()

    def stop(self) -> None:
        """End it as a person would, by SIGINT."""
        if self.process is not None:
            self.client.close()
            self.process.send_signal(signal.SIGINT)
            try:
                self.process.wait(HANG_SECONDS)
            finally:
                self.kill()

    def kill(self) -> None:
        """SIGKILL to all of its processes."""
        if self.process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait(HANG_SECONDS)
            assert self.process.stdout is not None
            self.process.stdout.close()
            self.process = None

    # --- asking ---------------------------------------------------------------------------------------------------

    def call(self, method: str, path: str, body: Any = None, status: int | None = None, **more: Any) -> Any:
        """The JSON of an answer, whose status is checked."""
        answer = self.client.request(method, f"/v1/recommenders/{path}".rstrip("/"), json=body, **more)
        assert status is None or answer.status_code == status, answer.text
        return answer.json() if answer.content else None

    def make(self, name: str, items: int = 30, **configuration: Any) -> None:
        """A recommender of slates of three with so many items."""
        self.call("PUT", name, {"slate_size": 3, **configuration}, 201)
        rows = [{"id": f"i{at}", "price": at % 7, "kind": "abc"[at % 3]} for at in range(items)]
        if rows:
            self.call("POST", f"{name}/items:batch", rows, 200)

    def learned(self, name: str) -> None:
        """Wait until the learner has applied the whole log and its model is served."""

        def done() -> bool:
            found = self.call("GET", name, status=200)
            return bool(found["learned_events"] == found["events"])

        eventually(done, "the learner has applied the log")


def eventually(check: Callable[[], bool], what: str, seconds: float = 240.0) -> None:
    """Wait for something that takes time; fails where it does not come."""
    end = time.monotonic() + seconds
    while not check():
        assert time.monotonic() < end, f"waited in vain: {what}"
        time.sleep(0.05)


@contextlib.contextmanager
def running(folder: Path, *options: str, db: str | None = None) -> Iterator[RunningService]:
    """A service on a new SQLite file of a folder, or on another database."""
    log = folder / "service.log"
    with RunningService(db or f"sqlite:{folder / 'service.db'}", options, log=log) as service:
        yield service
