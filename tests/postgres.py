"""A real PostgreSQL for the tests: installed from the system's packages, started as its own user, shared by workers.

`postgres_address()` gives an address with nothing in it. The server has a private folder and port, writes
durably (fsync is on), and ends with the test run: the last worker that used it stops it.
"""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import json
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import psycopg
import pytest
from patience import HANG_SECONDS

OWNER = "postgres"  # the server refuses to run as root
PASSWORD = "a-secret"


@dataclass(frozen=True)
class Server:
    """A server of PostgreSQL in a folder of its own; its data outlive a stop or a kill."""

    folder: Path
    port: int

    @property
    def data(self) -> Path:
        return self.folder / "data"

    def start(self) -> None:
        """Wait until it accepts connections; recovers what a kill left."""
        settings = f"-p {self.port} -k {self.folder} -c listen_addresses=127.0.0.1 -c max_connections=200"
        _as_owner("pg_ctl", "start", "-w", "-t", "60", "-D", self.data, "-l", self.folder / "log", "-o", settings)

    def stop(self, mode: str = "fast") -> None:
        _as_owner("pg_ctl", "stop", "-w", "-m", mode, "-D", self.data)

    def kill(self) -> None:
        """SIGKILL for the server and every process of it."""
        main = int((self.data / "postmaster.pid").read_text().split()[0])
        for process in (main, *_children(main)):
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        deadline = time.monotonic() + 60
        while _alive(main) and time.monotonic() < deadline:
            time.sleep(0.01)

    def address(self, password: str = PASSWORD) -> str:
        return f"postgresql://{OWNER}:{password}@127.0.0.1:{self.port}/postgres"

    def new_address(self) -> str:
        """The address of an empty schema: all that a store sees of its database, and made faster than another one."""
        name = f"test_{uuid.uuid4().hex}"
        with psycopg.connect(self.address(), autocommit=True) as connection:
            connection.execute(f"CREATE SCHEMA {name}".encode())
        return f"{self.address()}?options=-csearch_path%3D{name}"


@cache
def programs() -> Path | None:
    """The folder of PostgreSQL's programs, installed where that is allowed; None where there are none."""
    found = _installed()
    if found or os.geteuid() != 0 or shutil.which("apt-get") is None:
        return found
    environment = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    patient = ["apt-get", "-o", "DPkg::Lock::Timeout=300"]  # tests run side by side: wait for whoever installs already
    for step in (["update"], ["install", "-y", "--no-install-recommends", "postgresql"]):
        subprocess.run([*patient, *step], capture_output=True, env=environment, timeout=HANG_SECONDS)
    return _installed()


@contextlib.contextmanager
def private_server() -> Iterator[Server]:
    """A server that nobody else uses, to be stopped and killed; skips where there is none."""
    server = _made(Path(tempfile.mkdtemp(prefix="neuclust-postgres-")))
    try:
        server.start()
        yield server
    finally:
        _ended(server)


def postgres_address() -> str:
    """A new address with nothing in it, on the server of this test run; skips where there is none."""
    return _shared().new_address()


@cache
def _shared() -> Server:
    """The server of all workers of this run: the first makes it, the last ends it."""
    run = os.environ.get("PYTEST_XDIST_TESTRUNUID") or f"alone-{os.getpid()}"
    place = Path(tempfile.gettempdir()) / f"neuclust-postgres-{os.geteuid()}-{run}"
    users = place.with_suffix(".users")
    with _locked(users) as count:
        if count == 0:
            place.mkdir(mode=0o700)
            server = _made(place)
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
            _ended(server)
            users.unlink()  # all workers end together: none comes later


@contextlib.contextmanager
def _locked(users: Path) -> Iterator[int]:
    """How many workers use the server, and nobody else asks until the block ends."""
    with users.open("a+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.seek(0)
        yield int(file.read() or 0)


def _made(folder: Path) -> Server:
    if programs() is None:
        pytest.skip("no PostgreSQL here, and it may not be installed from here")
    secret = folder / "password"
    secret.write_text(PASSWORD)
    if os.geteuid() == 0:
        for path in (folder, secret):
            shutil.chown(path, OWNER, OWNER)
    _as_owner(
        "initdb", "-D", folder / "data", "-U", OWNER, "-E", "UTF8", "--locale=C.UTF-8", "-A", "scram-sha-256",
        f"--pwfile={secret}",
    )  # fmt: skip
    return Server(folder, _free_port())


def _ended(server: Server) -> None:
    with contextlib.suppress(subprocess.CalledProcessError):
        server.stop("immediate")
    shutil.rmtree(server.folder, ignore_errors=True)


def _as_owner(program: str, *words: str | Path) -> None:
    folder = programs()
    assert folder is not None
    user = OWNER if os.geteuid() == 0 else None
    # the log of the server keeps its own output open: nothing here may wait for the end of a pipe
    done = subprocess.run(
        [folder / program, *words], user=user, group=user, extra_groups=[] if user else None, cwd="/",
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=HANG_SECONDS,
    )  # fmt: skip
    done.check_returncode()


def _installed() -> Path | None:
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda folder: int(folder.parent.name))
    if folders:
        return folders[-1]
    found = shutil.which("initdb")
    return Path(found).parent if found else None


def _children(process: int) -> list[int]:
    found = []
    for status in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            if int(status.read_text().rpartition(")")[2].split()[1]) == process:
                found.append(int(status.parent.name))
    return found


def _alive(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def _free_port() -> int:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        return int(server.getsockname()[1])
