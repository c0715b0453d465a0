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

from neuclust.errors import ConfigError
from tools.own_postgres import OwnPostgres, made_postgres, own_postgres, programs

__all__ = ["postgres_address", "private_postgres"]


def postgres_address() -> str:
    """A new address with nothing in it, on the server of this test run; skips where there is none."""
    _need_postgres()
    return _shared().new_address()


@contextlib.contextmanager
def private_postgres() -> Iterator[OwnPostgres]:
    """A server that no other test uses; skips where there is none."""
    _need_postgres()
    with own_postgres() as server:
        yield server


def _need_postgres() -> None:
    try:
        programs()
    except ConfigError as none:
        pytest.skip(str(none))


@cache
def _shared() -> OwnPostgres:
    """The server of all workers of this run: the first makes it, the last ends it."""
    run = os.environ.get("PYTEST_XDIST_TESTRUNUID") or f"alone-{os.getpid()}"
    place = Path(tempfile.gettempdir()) / f"neuclust-postgres-{os.geteuid()}-{run}"
    users = place.with_suffix(".users")
    with _locked(users) as count:
        if count == 0:
            place.mkdir(mode=0o700)
            server = made_postgres(place)
            server.start()
            (place / "server.json").write_text(json.dumps([server.port, server.password]))
        server = OwnPostgres(place, *json.loads((place / "server.json").read_text()))
        users.write_text(str(count + 1))
    atexit.register(_leave, users, server)
    return server


def _leave(users: Path, server: OwnPostgres) -> None:
    with _locked(users) as count:
        users.write_text(str(count - 1))
        if count == 1:
            server.remove()
            users.unlink()  # all workers end together: none comes later


@contextlib.contextmanager
def _locked(users: Path) -> Iterator[int]:
    """How many workers use the server, and nobody else asks until the block ends."""
    with users.open("a+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.seek(0)
        yield int(file.read() or 0)
