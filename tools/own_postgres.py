"""A PostgreSQL server of one's own: from Debian's packages, as its own user, on a private port and folder.

with own_postgres() as server:
    print(server.address)   # postgresql://…, with a password of its own
"""

from __future__ import annotations

import os
import pwd
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from neuclust.errors import ConfigError

USER = "postgres"  # the server refuses to run as root
PATIENCE = 60.0  # seconds for a start or an end
SETTINGS = ("listen_addresses=127.0.0.1", "max_connections=60", "shared_buffers=64MB", "log_min_messages=warning")


def programs() -> Path:
    """The folder of the server's programs, installed from the system's packages where that is allowed."""
    found = _newest()
    if found is None and os.geteuid() == 0 and shutil.which("apt-get"):
        quiet = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
        patient = ["apt-get", "-o", "DPkg::Lock::Timeout=300"]
        for step in (["update"], ["install", "-y", "--no-install-recommends", "postgresql"]):
            subprocess.run([*patient, *step], capture_output=True, env=quiet, check=False)
        found = _newest()
    if found is None:
        raise ConfigError("expected PostgreSQL's server programs, got none; install Debian's package postgresql")
    return found


def _newest() -> Path | None:
    places = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"), key=lambda each: int(each.parts[-3]))
    if places:
        return places[-1].parent
    found = shutil.which("postgres")
    return None if found is None else Path(found).parent


def free_port() -> int:
    """A port of loopback that nobody uses now."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


def _account() -> tuple[int | None, int | None]:
    """User and group of the server, where this process is root and must not be; else none."""
    if os.geteuid() != 0:
        return None, None
    entry = pwd.getpwnam(USER)
    return entry.pw_uid, entry.pw_gid


@dataclass
class OwnPostgres:
    """A server in a folder; it may be ended, killed and started again."""

    folder: Path
    port: int
    password: str = field(repr=False)
    process: subprocess.Popen[bytes] | None = None

    @property
    def address(self) -> str:
        """The address of its database, with the password."""
        return f"postgresql://{USER}:{self.password}@127.0.0.1:{self.port}/{USER}"

    def create(self) -> None:
        """Make the folder of data, durable writes as by default."""
        secret = self.folder / "password"
        secret.write_text(self.password)
        _give(self.folder)
        _give(secret)
        words = [
            str(programs() / "initdb"), "--pgdata", str(self.folder / "data"), "--username", USER, "--encoding", "UTF8",
            "--locale", "C.UTF-8", "--auth", "scram-sha-256", "--pwfile", str(secret),
        ]  # fmt: skip
        user, group = _account()
        done = subprocess.run(
            words, capture_output=True, text=True, cwd=self.folder, check=False, user=user, group=group
        )
        secret.unlink()
        if done.returncode:
            raise ConfigError(f"expected initdb to work, got {done.stderr.strip()[-300:]}")

    def start(self) -> None:
        """Start and wait until it takes connections."""
        settings = [part for each in (*SETTINGS, f"unix_socket_directories={self.folder}") for part in ("-c", each)]
        words = [str(programs() / "postgres"), "-D", str(self.folder / "data"), "-p", str(self.port), *settings]
        user, group = _account()
        with (self.folder / "server.log").open("ab") as log:
            self.process = subprocess.Popen(
                words, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=self.folder, start_new_session=True,
                user=user, group=group,
            )  # fmt: skip
        deadline = time.monotonic() + PATIENCE
        ask = [str(programs() / "pg_isready"), "-q", "-h", "127.0.0.1", "-p", str(self.port)]
        while subprocess.run(ask, check=False).returncode:
            if self.process.poll() is not None or time.monotonic() > deadline:
                tail = (self.folder / "server.log").read_text(errors="replace")[-500:]
                raise ConfigError(f"expected PostgreSQL to start, got {tail}")
            time.sleep(0.05)

    def stop(self) -> None:
        """End it in order."""
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)  # its fast shutdown
            self.process.wait(PATIENCE)
        self.process = None

    def kill(self) -> None:
        """SIGKILL to the server and all its processes, as a machine that loses power would end them."""
        if self.process is None:
            return
        children = _children(self.process.pid)
        for pid in (self.process.pid, *children):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        self.process.wait(PATIENCE)
        deadline = time.monotonic() + PATIENCE
        while any(Path(f"/proc/{pid}").exists() for pid in children) and time.monotonic() < deadline:
            time.sleep(0.01)  # a server does not start while one of the old ones holds its memory
        self.process = None


def _children(parent: int) -> list[int]:
    """Processes whose parent this one is."""
    found = []
    for entry in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = entry.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == parent:
            found.append(int(entry.parent.name))
    return found


def _give(path: Path) -> None:
    """Hand a file or folder to the server's user."""
    user, group = _account()
    if user is not None and group is not None:
        os.chown(path, user, group)


@contextmanager
def own_postgres() -> Iterator[OwnPostgres]:
    """A server that runs inside, in a folder that is deleted afterwards."""
    programs()
    with tempfile.TemporaryDirectory(prefix="neuclust-postgres-") as folder:
        server = OwnPostgres(Path(folder).resolve(), free_port(), secrets.token_urlsafe(18))
        server.create()
        server.start()
        try:
            yield server
        finally:
            server.stop()
