"""Files written whole or not at all, made durable, and folders one process uses at a time."""

import contextlib
import errno
import os
import tempfile
import time
from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import IO, Any

from neuclust.errors import SaveError, writing

# None where a system has no such locks: two processes must not write to one folder at once there
fcntl: Any = import_module("fcntl") if find_spec("fcntl") else None

SCRATCH = ".scratch"  # the ending of files that are being written; a kill may leave them behind
PATIENCE = 60.0  # seconds to wait for another process that uses the folder


def write_text(path: Path, text: str) -> None:
    """Write a text file whole or not at all."""
    write_bytes(path, text.encode("utf-8"))


def write_bytes(path: Path, content: bytes, *, durable: bool = False) -> None:
    """Write a file whole or not at all; an error of the system names the file."""
    with writing(path), placed(path, durable=durable) as file:
        file.write(content)


@contextlib.contextmanager
def placed(path: Path, *, durable: bool = False) -> Iterator[IO[bytes]]:
    """A file to write that takes its name when the block ends without an error; a link at `path` is followed.

    `durable`: on the disk before it takes the name, or a power cut could leave the name without its content.
    """
    path = path.resolve() if path.is_symlink() else path
    handle, scratch = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=SCRATCH)
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
            if durable:
                file.flush()
                sync(handle)
        os.chmod(scratch, 0o644)
        os.replace(scratch, path)
    except BaseException:
        Path(scratch).unlink(missing_ok=True)
        raise


def sync(descriptor: int) -> None:
    """The file's content on the disk."""
    if hasattr(fcntl, "F_FULLFSYNC"):  # macOS: fsync stops at the drive's own cache
        with contextlib.suppress(OSError):
            fcntl.fcntl(descriptor, fcntl.F_FULLFSYNC)
            return
    os.fsync(descriptor)


def sync_folder(directory: Path) -> None:
    """Names on the disk, not only contents; where a system cannot, nothing better is to be had."""
    if fcntl is None:  # such systems do not open folders
        return
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP, errno.EBADF):
            raise
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def locked(directory: Path, exclusive: bool) -> Iterator[None]:
    """Alone in the folder, or among readers only; the system releases the lock of a process that is killed."""
    if fcntl is None:
        yield
        return
    # not every path is a folder: to open a pipe would wait for its other end
    descriptor = os.open(directory, os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_NONBLOCK", 0))
    try:
        _wait_for(directory, descriptor, fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH)
        yield
    finally:
        os.close(descriptor)


def _wait_for(directory: Path, descriptor: int, kind: int) -> None:
    end = time.monotonic() + PATIENCE
    while True:
        try:
            fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            if time.monotonic() > end:
                wanted = f"expected to get at the save within {PATIENCE:g} s, but another process keeps it"
                raise SaveError(f"{directory}: {wanted}; end that one or name another folder") from None
            time.sleep(0.005)
        except OSError:
            return  # a file system without locks
