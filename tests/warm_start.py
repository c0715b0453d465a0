"""Processes of neuclust that begin with everything imported: forked from one process that did it once per test run.

Importing torch takes seconds, and hundreds of tests need a process. A forked one has its own memory, descriptors,
signals and end; what differs from a real start is that its imports are done. Tests of the start itself use
`subprocess` (tests/cli/test_manners.py, tests/cli/test_serve_commands.py, and every soak of the service).
"""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import io
import json
import os
import selectors
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import IO, Any

COMMAND, LEARNER = "neuclust", "neuclust.serve.learner"  # what may be started
LATE = ("PYTHON", "LC_", "LANG", "OMP_", "NUMBA_", "MKL_", "MPL")  # variables that imports and the interpreter read
READY = b"ready"


# --- the process that everything is forked from ------------------------------------------------------------------


@dataclass(frozen=True)
class Order:
    """What a process is to run, where, and in which process group; 0: one of its own."""

    module: str
    arguments: list[str]
    environment: dict[str, str]
    folder: str
    group: int = 0


def wait_for_order(listener: socket.socket) -> tuple[Order, list[int]]:
    """Fork for every order until nobody holds a connection; returns in the forked processes alone."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    with contextlib.ExitStack() as never_closed, selectors.DefaultSelector() as waiting:
        waiting.register(listener, selectors.EVENT_READ)
        holders = 0
        while True:
            for key, _ in waiting.select():
                if key.fileobj is not listener:  # a worker of the tests has ended
                    waiting.unregister(key.fileobj)
                    holders -= 1
                    if holders == 0:
                        os._exit(0)
                    continue
                connection, _ = listener.accept()
                text, descriptors, _, _ = socket.recv_fds(connection, 1 << 20, 3)
                if not text.strip():
                    connection.close()
                elif text == b"hold":
                    waiting.register(connection, selectors.EVENT_READ)
                    holders += 1
                    connection.sendall(READY)
                elif os.fork() == 0:
                    order = Order(**json.loads(text))
                    if _watch(connection, descriptors, order.group):
                        never_closed.pop_all()
                        return order, descriptors
                else:
                    connection.close()
                    for each in descriptors:
                        os.close(each)


def _watch(connection: socket.socket, descriptors: Sequence[int], group: int) -> bool:
    """True in the process that runs; its parent tells the other side how it ended, and is gone."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    child = os.fork()
    if child == 0:
        return True
    for each in descriptors:
        os.close(each)
    with contextlib.suppress(OSError):  # before anybody knows of it: a kill of its group must find it from then on
        os.setpgid(child, group)
    with contextlib.suppress(OSError):
        connection.sendall(f"{child}\n".encode())
    _, status = os.waitpid(child, 0)
    with contextlib.suppress(OSError):
        connection.sendall(f"{os.waitstatus_to_exitcode(status)}\n".encode())
    os._exit(0)


def ended(order: Order, descriptors: Sequence[int], place: str) -> int:
    """The exit code of an ordered process after all that the end of an interpreter does for others.

    To take apart the memory of an interpreter with torch in it would last longer than most commands.
    """
    code = 0
    try:
        become(order, descriptors, place)
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        traceback.print_exc()
        code = 1
    vars(threading)["_shutdown"]()  # waits for threads that are no daemons
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    return code


def become(order: Order, descriptors: Sequence[int], place: str) -> None:
    """Be the process that was ordered, until its end."""
    os.setpgid(0, order.group)
    for number, each in enumerate(descriptors):
        os.dup2(each, number)
    os.closerange(3, os.sysconf("SC_OPEN_MAX") if os.sysconf("SC_OPEN_MAX") < 65536 else 65536)
    os.chdir(order.folder)
    os.environ.clear()
    os.environ.update(order.environment)
    sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stdout, sys.stderr = _stream(1, "strict"), _stream(2, "backslashreplace")
    sys.argv = [order.module, *order.arguments]
    signal.signal(signal.SIGINT, signal.default_int_handler)
    _start_learners_warm(place)
    if order.module == LEARNER:
        from neuclust.serve.learner.process import child_main

        child_main(sys.stdin, float(order.arguments[0]))
    else:
        from neuclust.cli import main

        main()


def _stream(descriptor: int, errors: str) -> io.TextIOWrapper:
    raw = io.FileIO(descriptor, "w", closefd=False)
    direct = bool(os.environ.get("PYTHONUNBUFFERED")) or descriptor == 2 or os.isatty(descriptor)
    return io.TextIOWrapper(io.BufferedWriter(raw), "utf-8", errors, line_buffering=direct)


def _start_learners_warm(place: str) -> None:
    """Children of a service are forked, too; they stay in its process group, where a kill finds them."""
    from neuclust.serve.learner import process

    class Warm:
        PIPE, TimeoutExpired = subprocess.PIPE, subprocess.TimeoutExpired

        @staticmethod
        def Popen(command: Sequence[str], env: dict[str, str], **_: Any) -> WarmProcess:
            assert command[1:3] == ["-m", LEARNER]
            order = Order(LEARNER, list(command[3:]), env, os.getcwd(), os.getpgrp())
            given, gives = os.pipe()
            os.set_inheritable(gives, False)
            try:
                return ordered(place, order, (given, 1, 2), os.fdopen(gives, "w"))
            finally:
                os.close(given)

    vars(process)["subprocess"] = Warm


def main(place: str) -> None:
    """Import everything, say so, and fork."""
    import importlib

    for name in ("neuclust.cli.app", "neuclust.serve.api.running", "neuclust.serve.fold.replay", "polars", "uvloop"):
        importlib.import_module(name)
    for path in (Path(__file__).parents[1] / "src/neuclust/cli/commands").glob("[a-z]*.py"):
        importlib.import_module(f"neuclust.cli.commands.{path.stem}")
    assert threading.active_count() == 1
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(place)
    listener.listen(64)
    os.write(1, READY)
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 1)
    os._exit(ended(*wait_for_order(listener), place))


# --- from the side of the tests ----------------------------------------------------------------------------------


@dataclass
class WarmProcess:
    """A forked process, with what is used of `subprocess.Popen`."""

    pid: int
    stdin: IO[str] | None
    _connection: socket.socket
    returncode: int | None = None
    _said: bytes = field(default=b"", repr=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def poll(self) -> int | None:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.wait(0.0)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """The exit code, negative where a signal ended it."""
        with self._lock:
            if self.returncode is None:
                self._connection.settimeout(timeout if timeout else (None if timeout is None else 1e-6))
                try:
                    while not self._said.endswith(b"\n"):
                        part = self._connection.recv(64)
                        if not part:
                            raise RuntimeError("the process that watches over a forked one is gone")
                        self._said += part
                except TimeoutError:
                    raise subprocess.TimeoutExpired("neuclust", timeout or 0.0) from None
                self.returncode = int(self._said)
                self._connection.close()
            return self.returncode

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


def ordered(place: str, order: Order, descriptors: Sequence[int], stdin: IO[str] | None = None) -> WarmProcess:
    """Order a process with these as its standard input, output and error."""
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(place)
    socket.send_fds(connection, [json.dumps(vars(order)).encode()], list(descriptors))
    said = b""
    while not said.endswith(b"\n"):
        said += connection.recv(1)
    return WarmProcess(int(said), stdin, connection)


def can_be_warm(environment: Mapping[str, str]) -> bool:
    """Whether no variable differs that only the start of an interpreter, or an import, would read."""
    names = environment.keys() | os.environ.keys()
    changed = [name for name in names if environment.get(name) != os.environ.get(name)]
    late = [name for name in changed if name.startswith(LATE) and name != "PYTHONUNBUFFERED"]
    return all(environment.get(name) == "1" and name == "OMP_NUM_THREADS" for name in late)


def start(
    arguments: Sequence[str], stdout: int, stderr: int, env: Mapping[str, str] | None = None, cwd: str | None = None
) -> WarmProcess:
    """`neuclust ARGUMENTS` in a process group of its own, without standard input."""
    environment = dict(os.environ if env is None else env)
    order = Order(COMMAND, list(arguments), environment, cwd or os.getcwd())
    with open(os.devnull) as nothing:
        return ordered(_source(), order, (nothing.fileno(), stdout, stderr))


def run(
    arguments: Sequence[str], env: Mapping[str, str] | None = None, cwd: str | None = None, timeout: float | None = None
) -> tuple[int, str, str]:
    """Exit code, standard output and standard error of `neuclust ARGUMENTS`."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        process = start(arguments, out.fileno(), err.fileno(), env, cwd)
        try:
            code = process.wait(timeout)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            raise
        said = []
        for file in (out, err):
            file.seek(0)
            said.append(file.read().decode())
    return code, said[0], said[1]


@cache
def _source() -> str:
    """The address of the process to fork from: one for all workers of a test run; it ends with the last of them."""
    run = os.environ.get("PYTEST_XDIST_TESTRUNUID") or f"alone-{os.getpid()}"
    place = Path(tempfile.gettempdir()) / f"neuclust-warm-{os.geteuid()}-{run}"
    with place.with_suffix(".lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        try:
            holder = _hold(place)
        except OSError:
            place.unlink(missing_ok=True)
            _begin(place)
            holder = _hold(place)
    _HELD.append(holder)
    return str(place)


_HELD: list[socket.socket] = []  # open until this process ends


def _begin(place: Path) -> None:
    begun = subprocess.Popen(
        [sys.executable, __file__, str(place)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        start_new_session=True, env=os.environ | {"OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    assert begun.stdout is not None
    assert begun.stdout.read(len(READY)) == READY
    begun.stdout.close()


def _hold(place: Path) -> socket.socket:
    holder = socket.socket(socket.AF_UNIX)
    holder.connect(str(place))
    holder.sendall(b"hold")
    assert holder.recv(len(READY)) == READY
    return holder


if __name__ == "__main__":
    main(sys.argv[1])
