"""The PostgreSQL of a test run: one server, shared by all workers, that ends with the last of them.

`postgres_address()` gives an address with nothing in it; `private_postgres()` is a server for a test that stops it.
"""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import json
import os
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from benchmarks.postgres_server import PASSWORD, NoPostgres, Server, end_server, made_server, private_server, programs

__all__ = ["PASSWORD", "Server", "postgres_address", "private_postgres"]


def postgres_address() -> str:
    """A new address with nothing in it, on the server of this test run; skips where there is none."""
    _need_postgres()
    return _shared().new_address()


@contextlib.contextmanager
def private_postgres() -> Iterator[Server]:
    """A server that no other test uses; skips where there is none."""
    _need_postgres()
    with private_server() as server:
        yield server


def _need_postgres() -> None:
    try:
        programs()
    except NoPostgres as none:
        pytest.skip(str(none))


@cache
def _shared() -> Server:
    """The server of all workers of this run: the first makes it, the last ends it."""
    run = os.environ.get("PYTEST_XDIST_TESTRUNUID") or f"alone-{os.getpid()}"
    place = Path(tempfile.gettempdir()) / f"neuclust-postgres-{os.geteuid()}-{run}"
    users = place.with_suffix(".users")
    with _locked(users) as count:
        if count == 0:
            place.mkdir(mode=0o700)
            server = made_server(place)
            server.start()
            (place / "server.json").write_text(json.dumps(server.port))
        server = Server(place, int(json.loads((place / "server.json").read_text())))
        users.write_text(str(count + 1))
    atexit.register(_leave, users, server)
    return server


def _leave(users: Path, server: Server) -> None:
    with _locked(users) as count:
        users.write_text(str(count - 1))
        if count == 1:
            end_server(server)
            users.unlink()  # all workers end together: none comes later


@contextlib.contextmanager
def _locked(users: Path) -> Iterator[int]:
    """How many workers use the server, and nobody else asks until the block ends."""
    with users.open("a+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.seek(0)
        yield int(file.read() or 0)
