"""A file that one writer appends lines to: locked, repaired where a killed process left half a line, never lost."""

import contextlib
import os
import stat
import warnings
from pathlib import Path
from weakref import WeakValueDictionary

from neuclust.errors import ConfigError, LogWarning, StateError, not_written
from neuclust.files import fcntl

BLOCK = 1 << 16  # bytes read at once
LONGEST_HEAD = 1 << 26  # bytes of the first line
_MODE = os.O_RDWR | os.O_APPEND | os.O_CREAT | getattr(os, "O_BINARY", 0)


class LogFile:
    """Appends bytes to a file. What the system does not take, as on a full disk, is kept and written first next time.

    So the call whose lines could not be written still has its answer, and `ready`, with which the next call begins,
    refuses before anything is decided or learned. Lines are handed to the system at once: they outlive a killed
    process, and a power cut may cost the last ones.
    """

    def __init__(self, path: Path, descriptor: int) -> None:
        self.path, self._descriptor = path, descriptor
        self._rest = memoryview(b"")
        status = os.fstat(descriptor)
        self.plain = stat.S_ISREG(status.st_mode)  # not a device or pipe, which cannot be read back
        self.key = status.st_dev, status.st_ino

    @classmethod
    def opened(cls, path: Path) -> "LogFile":
        """The file at a path, made where there is none, for this writer alone."""
        try:
            file = cls(path, os.open(path, _MODE, 0o644))
        except OSError as error:
            raise ConfigError(not_written(path, error, kind="log"), field="log") from None
        if file.plain:
            file._take()
        return file

    def _take(self) -> None:
        """Become the file's only writer; an earlier one of this process ends, as where a notebook's cell runs again."""
        earlier = _WRITERS.get(self.key)
        if earlier is not None:
            earlier.close()
        try:
            if fcntl is not None:
                fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self.close()
            got = f"got {self.path}, to which another process writes"
            advice = "end that one or name another file"
            raise ConfigError(f"expected a log of its own, {got}; {advice}", field="log") from None
        except OSError:
            pass  # a file system without locks
        _WRITERS[self.key] = self

    # --- what is there already --------------------------------------------------------------------------------

    def head(self) -> bytes:
        """The first line, without its end where it was not finished; nothing of a new file."""
        if not self.plain:
            return b""
        found = b""
        while b"\n" not in found and len(found) < LONGEST_HEAD:
            block = self._read(BLOCK, len(found))
            if not block:
                return found
            found += block
        return found[: found.find(b"\n") + 1] or found

    def repair(self) -> None:
        """Cut off a last line that was not finished, with a warning."""
        if not self.plain:
            return
        size = end = os.fstat(self._descriptor).st_size
        kept = 0
        while end > 0:
            start = max(0, end - BLOCK)
            at = self._read(end - start, start).rfind(b"\n")
            if at >= 0:
                kept = start + at + 1
                break
            end = start
        if kept < size:
            os.ftruncate(self._descriptor, kept)
            reason = "the last line was not finished, as after a killed process"
            text = f"{self.path}: {reason}; its {size - kept} bytes are cut off"
            warnings.warn(text, LogWarning, stacklevel=2)

    def _read(self, size: int, start: int) -> bytes:
        os.lseek(self._descriptor, start, os.SEEK_SET)  # appending goes to the end all the same
        return os.read(self._descriptor, size)

    # --- writing ----------------------------------------------------------------------------------------------

    def append(self, content: bytes) -> None:
        """Write, or keep for the next time, with a warning."""
        waiting = len(self._rest)
        self._rest = memoryview(bytes(self._rest) + content) if waiting else memoryview(content)
        problem = self.problem()
        if problem and not waiting:
            text = f"{problem}; what was to be written is kept, and the next call is refused unless it can be"
            warnings.warn(text, LogWarning, stacklevel=4)

    def problem(self) -> str:
        """Write what waits; why that cannot be done, empty where nothing waits any more."""
        if self._descriptor < 0:
            wanted = "expected an open log, but it was closed, or a newer recommender of this process writes to it"
            return f"{self.path}: {wanted}; use that one"
        try:
            while self._rest:
                self._rest = self._rest[os.write(self._descriptor, self._rest) :]
        except OSError as error:
            return not_written(self.path, error, kind="log")
        return ""

    def ready(self) -> None:
        """Refuse to go on where the log cannot be written."""
        if (self._rest or self._descriptor < 0) and (problem := self.problem()):
            raise StateError(f"log: {problem}; this call has changed nothing and can be repeated")

    def close(self) -> None:
        """End writing and let others write."""
        if self._descriptor >= 0:
            self.problem()
            with contextlib.suppress(OSError):
                os.close(self._descriptor)
            self._descriptor = -1

    def __del__(self) -> None:
        if hasattr(self, "_rest"):
            self.close()


_WRITERS: WeakValueDictionary[tuple[int, int], LogFile] = WeakValueDictionary()  # of this process, by device and file
