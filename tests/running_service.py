"""A real service in processes of its own, for tests: started, asked over HTTP, killed, started again.

Its processes are forked with their imports done (`warm_start`) unless they are to be `real`.
"""

from __future__ import annotations

import contextlib
import signal
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import warm_start
from patience import HANG_SECONDS

from tools.own_service import OwnService, Process, launched


def launched_warm(arguments: Sequence[str], environment: Mapping[str, str], stdout: int, stderr: int) -> Process:
    """`tools.own_service.launched`, with the imports done."""
    return warm_start.start(arguments, stdout, stderr, environment)


@dataclass
class RunningService:
    """`neuclust serve` on a database, and questions to it; a context manager."""

    own: OwnService
    client: httpx.Client = field(init=False)

    def __enter__(self) -> RunningService:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def db(self) -> str:
        return self.own.db

    @property
    def address(self) -> str:
        return self.own.address

    @property
    def pid(self) -> int:
        assert self.own.process is not None
        return self.own.process.pid

    def start(self) -> None:
        """Start it and wait until it answers."""
        self.own.start()
        self.client = httpx.Client(base_url=self.address, timeout=HANG_SECONDS)

    def stop(self) -> None:
        """End it as a person would, by SIGINT."""
        self.client.close()
        self.own.stop(HANG_SECONDS, signal.SIGINT)

    def kill(self) -> None:
        """SIGKILL to all of its processes."""
        self.client.close()
        self.own.kill()

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
def running(folder: Path, *options: str, db: str | None = None, real: bool = False) -> Iterator[RunningService]:
    """A service on a new SQLite file of a folder, or on another database."""
    place, launch = db or f"sqlite:{folder / 'service.db'}", launched if real else launched_warm
    with RunningService(OwnService(place, options=options, log=folder / "service.log", launch=launch)) as service:
        yield service
