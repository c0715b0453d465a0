"""A PostgreSQL server of one's own: from Debian's packages, as its own user, on a private port and folder.

with own_postgres() as server:
    print(server.address)   # postgresql://…, with a password of its own

It writes durably (fsync is on), and its data outlive a stop or a kill.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from neuclust.errors import ConfigError

OWNER = "postgres"  # the server refuses to run as root
PATIENCE = 900  # seconds that a program of PostgreSQL may take on a busy machine
SETTINGS = (
    "listen_addresses=127.0.0.1", "unix_socket_directories=", "max_connections=200", "log_min_messages=warning",
    "recovery_init_sync_method=syncfs",  # else it makes its files durable one by one after a kill
)  # fmt: skip


@dataclass(frozen=True)
class OwnPostgres:
    """A server in a folder; any process may end it, kill it and start it again."""

    folder: Path
    port: int
    password: str = field(repr=False)

    @property
    def data(self) -> Path:
        return self.folder / "data"

    @property
    def address(self) -> str:
        """The address of its database, with the password."""
        return f"postgresql://{OWNER}:{self.password}@127.0.0.1:{self.port}/{OWNER}"

    def new_address(self) -> str:
        """The address of an empty schema: all that a store sees of its database, and made faster than another one."""
        import psycopg

        name = f"schema_{uuid.uuid4().hex}"
        with psycopg.connect(self.address, autocommit=True) as connection:
            connection.execute(f"CREATE SCHEMA {name}".encode())
        return f"{self.address}?options=-csearch_path%3D{name}"

    def start(self) -> None:
        """Wait until it accepts connections; recovers what a kill left."""
        log, settings = self.folder / "log", " ".join((f"-p {self.port}", *(f"-c {each}" for each in SETTINGS)))
        try:
            _as_owner(
                "pg_ctl", "start", "-w", "-t", "60", "-D", self.data, "-l", log, "-o", f"-p {self.port} {settings}"
            )
        except subprocess.CalledProcessError:
            tail = log.read_text(errors="replace")[-500:] if log.exists() else "nothing said"
            raise ConfigError(f"expected PostgreSQL to start, got {tail}; see to it, and try again") from None

    def stop(self, mode: str = "fast") -> None:
        """End it in order."""
        _as_owner("pg_ctl", "stop", "-w", "-m", mode, "-D", self.data)

    def kill(self) -> None:
        """SIGKILL to the server and all its processes, as a machine that loses power would end them."""
        lock = self.data / "postmaster.pid"
        main = int(lock.read_text().split()[0])
        os.kill(main, signal.SIGSTOP)  # it makes no more processes while these are listed
        processes = [*_children(main), main]
        for process in processes:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        deadline = time.monotonic() + 60
        while any(map(_alive, processes)) and time.monotonic() < deadline:
            time.sleep(0.01)  # a server does not start while one of the old ones holds its memory
        lock.unlink(missing_ok=True)  # a process that nobody waits for looks alive to the next start

    def remove(self) -> None:
        """End it and delete its data."""
        with contextlib.suppress(subprocess.CalledProcessError):
            self.stop("immediate")
        shutil.rmtree(self.folder, ignore_errors=True)


@cache
def programs() -> Path:
    """The folder of the server's programs, installed from the system's packages where that is allowed."""
    found = _installed()
    if found is None and os.geteuid() == 0 and shutil.which("apt-get"):
        quiet = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
        patient = ["apt-get", "-o", "DPkg::Lock::Timeout=300"]  # wait for whoever installs already
        for step in (["update"], ["install", "-y", "--no-install-recommends", "postgresql"]):
            subprocess.run([*patient, *step], capture_output=True, env=quiet, check=False, timeout=PATIENCE)
        found = _installed()
    if found is None:
        raise ConfigError("expected PostgreSQL's server programs, got none; install Debian's package postgresql")
    return found


def made_postgres(folder: Path) -> OwnPostgres:
    """A server that was not started yet, in an empty folder."""
    password, secret = secrets.token_urlsafe(18), folder / "password"
    programs()
    secret.write_text(password)
    if os.geteuid() == 0:
        for path in (folder, secret):
            shutil.chown(path, OWNER, OWNER)
    try:
        _as_owner(
            "initdb", "-D", folder / "data", "-U", OWNER, "-E", "UTF8", "--locale=C.UTF-8", "-A", "scram-sha-256",
            f"--pwfile={secret}", "--no-sync",
        )  # fmt: skip
    except subprocess.CalledProcessError as error:
        raise ConfigError(f"expected initdb to work, got exit code {error.returncode}; see to the disk") from None
    secret.unlink()
    return OwnPostgres(folder, free_port(), password)


@contextlib.contextmanager
def own_postgres() -> Iterator[OwnPostgres]:
    """A server that runs inside, in a folder that is deleted afterwards."""
    programs()
    server = made_postgres(Path(tempfile.mkdtemp(prefix="neuclust-postgres-")).resolve())
    try:
        server.start()
        yield server
    finally:
        server.remove()


def free_port() -> int:
    """A port of loopback that nobody uses now."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


def _as_owner(program: str, *words: str | Path) -> None:
    user = OWNER if os.geteuid() == 0 else None
    # the server keeps the output of its starter open: nothing here may wait for the end of a pipe
    subprocess.run(
        [programs() / program, *words], user=user, group=user, extra_groups=[] if user else None, cwd="/",
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=PATIENCE, check=True,
    )  # fmt: skip


def _installed() -> Path | None:
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda folder: int(folder.parent.name))
    folders = [folder for folder in folders if (folder / "postgres").exists()]
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
