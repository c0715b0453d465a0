"""A real PostgreSQL for tests and benchmarks: installed from the system's packages, run as its own user.

The server has a private folder and port and writes durably (fsync is on). Its data outlive a stop or a kill.
"""

from __future__ import annotations

import contextlib
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

OWNER = "postgres"  # the server refuses to run as root
PASSWORD = "a-secret"
PATIENCE = 900  # seconds that a program of PostgreSQL may take on a busy machine


class NoPostgres(Exception):
    """There is no PostgreSQL here, and it may not be installed from here."""


@dataclass(frozen=True)
class Server:
    """A server of PostgreSQL in a folder of its own."""

    folder: Path
    port: int

    @property
    def data(self) -> Path:
        return self.folder / "data"

    def start(self) -> None:
        """Wait until it accepts connections; recovers what a kill left."""
        places = "-c listen_addresses=127.0.0.1 -c unix_socket_directories="
        # after a kill it makes its files durable one by one unless told to do it for all at once
        settings = f"-p {self.port} {places} -c max_connections=200 -c recovery_init_sync_method=syncfs"
        log = self.folder / "log"
        try:
            _as_owner("pg_ctl", "start", "-w", "-t", "60", "-D", self.data, "-l", log, "-o", settings)
        except subprocess.CalledProcessError as error:
            raise RuntimeError(f"PostgreSQL did not start: {log.read_text()[-2000:]}") from error

    def stop(self, mode: str = "fast") -> None:
        _as_owner("pg_ctl", "stop", "-w", "-m", mode, "-D", self.data)

    def kill(self) -> None:
        """SIGKILL for the server and every process of it."""
        lock = self.data / "postmaster.pid"
        main = int(lock.read_text().split()[0])
        os.kill(main, signal.SIGSTOP)  # it makes no more processes while these are listed
        for process in (*_children(main), main):
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        deadline = time.monotonic() + 60
        while _alive(main) and time.monotonic() < deadline:
            time.sleep(0.01)
        lock.unlink(missing_ok=True)  # a process that nobody waits for looks alive to the next start

    def address(self, password: str = PASSWORD) -> str:
        return f"postgresql://{OWNER}:{password}@127.0.0.1:{self.port}/postgres"

    def new_address(self) -> str:
        """The address of an empty schema: all that a store sees of its database, and made faster than another one."""
        name = f"test_{uuid.uuid4().hex}"
        with psycopg.connect(self.address(), autocommit=True) as connection:
            connection.execute(f"CREATE SCHEMA {name}".encode())
        return f"{self.address()}?options=-csearch_path%3D{name}"


@cache
def programs() -> Path:
    """The folder of PostgreSQL's programs, installed where that is allowed."""
    found = _installed()
    if found is None and os.geteuid() == 0 and shutil.which("apt-get"):
        environment = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
        patient = ["apt-get", "-o", "DPkg::Lock::Timeout=300"]  # wait for whoever installs already
        for step in (["update"], ["install", "-y", "--no-install-recommends", "postgresql"]):
            subprocess.run([*patient, *step], capture_output=True, env=environment, timeout=PATIENCE)
        found = _installed()
    if found is None:
        raise NoPostgres("no PostgreSQL here, and it may not be installed from here")
    return found


@contextlib.contextmanager
def private_server() -> Iterator[Server]:
    """A server that nobody else uses, to be stopped and killed; it ends with the block."""
    server = made_server(Path(tempfile.mkdtemp(prefix="neuclust-postgres-")))
    try:
        server.start()
        yield server
    finally:
        end_server(server)


def made_server(folder: Path) -> Server:
    """A server that was not started yet, in an empty folder."""
    programs()
    secret = folder / "password"
    secret.write_text(PASSWORD)
    if os.geteuid() == 0:
        for path in (folder, secret):
            shutil.chown(path, OWNER, OWNER)
    _as_owner(
        "initdb", "-D", folder / "data", "-U", OWNER, "-E", "UTF8", "--locale=C.UTF-8", "-A", "scram-sha-256",
        f"--pwfile={secret}", "--no-sync",
    )  # fmt: skip
    return Server(folder, _free_port())


def end_server(server: Server) -> None:
    """Stop it and delete its data."""
    with contextlib.suppress(subprocess.CalledProcessError):
        server.stop("immediate")
    shutil.rmtree(server.folder, ignore_errors=True)


def _as_owner(program: str, *words: str | Path) -> None:
    user = OWNER if os.geteuid() == 0 else None
    # the server keeps the output of its starter open: nothing here may wait for the end of a pipe
    subprocess.run(
        [programs() / program, *words], user=user, group=user, extra_groups=[] if user else None, cwd="/",
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=PATIENCE, check=True,
    )  # fmt: skip


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
