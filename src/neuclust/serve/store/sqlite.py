"""SQLite through apsw: one connection that writes, and as many that read as threads read at once.

Pages carry checksums (SQLite's own extension cksumvfs, which apsw brings along), so that a damaged file is found when
it is read: an index that lost a key could not be told from a log that never had it.
"""

import contextlib
import json
import threading
import time
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import apsw
import apsw.sqlite_extra

from neuclust.serve.store.contract import Damaged, StoreError
from neuclust.serve.store.database import Result, Values, Work, absent
from neuclust.serve.store.migrations import PRESENT, migrate, version
from neuclust.serve.store.tables import TABLES

PATIENCE = 10.0  # seconds to wait for a transaction of another process
STEP = 0.001
JOURNAL = 16_000  # pages after which a commit copies the journal into the file, where nobody else has (`settle`)
BEGINNING = 2.0  # seconds in which another process writes the first page of a new file
VFS = "cksmvfs"
CHECKSUM = 8  # bytes at the end of each page
WORDS = {
    "now": "unixepoch('subsec')", "lock": "", "share": "", "among": "IN (SELECT value FROM json_each(?))",
    "integer": "INTEGER", "real": "REAL", "bytes": "BLOB", "strict": " STRICT", "large": "",
    "said": "json_extract(CAST(payload AS TEXT), '$.decision')",
}  # fmt: skip


class SqliteSession:
    """Fulfils `database.Session`."""

    def __init__(self, connection: apsw.Connection) -> None:
        self.connection = connection

    def rows(self, statement: str, values: Values = ()) -> list[tuple[Any, ...]]:
        return list(self.connection.execute(_translated(statement), _bound(values)))

    def stream(self, statement: str, values: Values = (), at_once: int = 1000) -> Iterable[tuple[Any, ...]]:  # noqa: ARG002
        return self.connection.execute(_translated(statement), _bound(values))

    def run(self, statement: str, values: Values = ()) -> int:
        self.rows(statement, values)
        return self.connection.changes()

    def many(self, statement: str, values: Iterable[Values]) -> None:
        self.connection.executemany(_translated(statement), values)

    def insert(self, table: str, rows: Iterable[Values]) -> None:
        self.connection.executemany(_insertion(table), rows)


class SqliteDatabase:
    """Fulfils `database.Database` with a file."""

    shared = False

    def __init__(self, file: Path, make: bool = True) -> None:
        self.file, self.address = file, f"sqlite:{file}"
        self._lock = threading.Lock()
        self._writer: apsw.Connection | None = None
        self._readers: list[apsw.Connection] = []  # those that nobody uses now
        self._closed = False
        with self._said():
            _register_checksums()
            self._refuse_empty()
        if not make and not self.file.exists():
            raise absent(self.address)
        found = self.read(lambda session: version(session, _tables(session))) if self.file.exists() else 0
        if not make and not found:
            raise absent(self.address, ", which has no tables")
        if found != PRESENT:
            self.write(lambda session: migrate(session, _tables(session)))

    def write(self, work: Work[Result]) -> Result:
        with self._lock, self._said():
            self._writer = self._writer or self._connected(writes=True)
            try:
                return _transaction(self._writer, "BEGIN IMMEDIATE", work)
            except BaseException as error:
                if isinstance(error, apsw.Error) or not _is_idle(self._writer):
                    _dropped(self._writer)  # what it holds in memory may not be what the file has
                    self._writer = None
                raise

    def read(self, work: Work[Result]) -> Result:
        with self._said():
            try:
                reader = self._readers.pop()
            except IndexError:
                reader = self._connected(writes=False)
            try:
                return _transaction(reader, "BEGIN", work)
            except apsw.Error:
                _dropped(reader)  # the next read asks the file anew
                raise
            finally:
                self._give_back(reader)

    def _give_back(self, reader: apsw.Connection) -> None:
        """Keep a reader for the next read, unless it failed or the store was closed meanwhile."""
        if self._closed or not _is_idle(reader):
            _dropped(reader)
        else:
            self._readers.append(reader)

    def tidy(self) -> None:
        """Deleted content is overwritten in the file (secure_delete); here it leaves the journal."""
        with self._lock, contextlib.suppress(apsw.Error):
            if self._writer is not None:
                self._writer.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)

    def settle(self) -> None:
        """Copy the journal into the file, beside writers, which would else do so in the middle of a commit."""
        with contextlib.suppress(apsw.Error, StoreError):
            connection = self._connected(writes=True)
            try:
                connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)
            finally:
                connection.close()

    def close(self) -> None:
        with self._lock:
            self._closed = True
            while self._readers:
                self._readers.pop().close()
            if self._writer is not None:
                self._writer.close()
            self._writer = None

    def _refuse_empty(self) -> None:
        """Refuse a file that lost its content, where SQLite would begin anew; wait for one that is being made."""
        deadline = time.monotonic() + BEGINNING
        while self.file.exists() and self.file.stat().st_size == 0:
            if time.monotonic() > deadline:
                raise StoreError(
                    f"{self.address}: expected a database or the name of a new file, got an empty file; "
                    "restore a backup, or delete the file to begin anew"
                )
            time.sleep(0.05)

    def _connected(self, writes: bool) -> apsw.Connection:
        if self._closed:
            raise StoreError(f"{self.address}: expected an open store, got one that was closed; open it again")
        connection = apsw.Connection(str(self.file), vfs=VFS)
        connection.set_busy_handler(_wait)
        connection.wal_autocheckpoint(JOURNAL)
        if not self.file.exists() or self.file.stat().st_size == 0:
            connection.reserve_bytes("main", CHECKSUM)
        elif connection.reserve_bytes() != CHECKSUM:
            raise StoreError(f"{self.address}: expected a database of neuclust, got another file; name another one")
        for pragma, value in (("journal_mode", "wal"), ("synchronous", "full"), ("secure_delete", "on")):
            connection.pragma(pragma, value)
        connection.pragma("foreign_keys", True)
        connection.pragma("query_only", not writes)
        return connection

    @contextlib.contextmanager
    def _said(self) -> Iterator[None]:
        """Errors of SQLite as those of a store."""
        try:
            yield
        except apsw.Error as error:
            raise _translated_error(self.address, error) from error
        except OSError as error:
            raise StoreError(f"{self.address}: expected a file to use, got {error.strerror}; see to it") from error


def _wait(times: int) -> bool:
    """Wait for another process's transaction by short steps; SQLite's own become long, and commits are short."""
    time.sleep(STEP)
    return times * STEP < PATIENCE


def _transaction(connection: apsw.Connection, begin: str, work: Work[Result]) -> Result:
    connection.execute(begin)
    try:
        result = work(SqliteSession(connection))
        connection.execute("COMMIT")
    except BaseException:
        with contextlib.suppress(apsw.Error):
            if connection.in_transaction:
                connection.execute("ROLLBACK")
        raise
    return result


def _is_idle(connection: apsw.Connection) -> bool:
    """Whether a connection is open, and outside a transaction."""
    try:
        return not connection.in_transaction
    except apsw.ConnectionClosedError:
        return False


def _dropped(connection: apsw.Connection) -> None:
    with contextlib.suppress(apsw.Error):
        connection.close()


def _tables(session: Any) -> set[str]:
    return {name for (name,) in session.rows("SELECT name FROM sqlite_schema WHERE type = 'table'")}


@cache
def _register_checksums() -> None:
    """Once in a process: every connection may use it then."""
    with contextlib.closing(apsw.Connection(":memory:")) as connection:
        try:
            apsw.sqlite_extra.load(connection, "cksumvfs")
        except apsw.sqlite_extra.NotAvailable as error:
            raise StoreError(
                "expected apsw with SQLite's extension cksumvfs, got one without it; "
                "install the wheel: pip install 'neuclust[serve]'"
            ) from error


@cache
def _translated(statement: str) -> str:
    return statement.format(**WORDS)


@cache
def _insertion(table: str) -> str:
    marks = ", ".join("?" * len(TABLES[table]))
    return f"INSERT INTO {table} ({', '.join(TABLES[table])}) VALUES ({marks})"


def _bound(values: Values) -> Values:
    """Lists as JSON, which SQLite takes apart."""
    return [json.dumps(value) if isinstance(value, list) else value for value in values]


def _translated_error(address: str, error: apsw.Error) -> StoreError | Damaged:
    damaged = isinstance(error, apsw.CorruptError | apsw.NotADBError)
    if damaged or getattr(error, "extendedresult", 0) == apsw.SQLITE_IOERR_DATA:
        return Damaged(f"{address}: expected a file as it was written, got a damaged one ({error}); restore a backup")
    if isinstance(error, apsw.FullError):
        return StoreError(f"{address}: expected room on its disk, got none; make room and try again")
    if isinstance(error, apsw.BusyError):
        return StoreError(
            f"{address}: expected its turn to write within {PATIENCE:g} seconds, got none; "
            "end the other process that writes to it"
        )
    return StoreError(f"{address}: expected a file that can be read and written, got: {error}; see to its disk")
