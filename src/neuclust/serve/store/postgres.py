"""PostgreSQL through psycopg and its pool: any number of processes may use one database.

A recommender's row is locked while its sequence numbers are given out, so that they are committed in their order.
"""

import contextlib
import time
from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any

import psycopg
from psycopg import errors, sql
from psycopg_pool import ConnectionPool, PoolClosed, PoolTimeout

from neuclust.serve.store.addresses import PostgresAddress
from neuclust.serve.store.contract import StoreError
from neuclust.serve.store.database import Result, Session, Values, Work, absent
from neuclust.serve.store.migrations import PRESENT, migrate, version
from neuclust.serve.store.tables import TABLES

PATIENCE = 10.0  # seconds to wait for a lock
RECONNECTING = 5.0  # seconds to wait for a connection
IDLE = 5.0  # seconds after which the server ends a transaction whose process went silent; others wait longer
MOST = 10  # connections of one process
TRIES, PAUSE = 5, 0.02  # of a transaction that was certainly not committed; seconds before the second
GATE = 0x6E657563  # the advisory lock under which tables are made
WORDS = {
    "now": "extract(epoch FROM clock_timestamp())::float8", "lock": "FOR UPDATE", "share": "FOR SHARE",
    "among": "= ANY(?)", "integer": "BIGINT", "real": "DOUBLE PRECISION", "bytes": "BYTEA", "strict": "",
    "large": "ALTER TABLE parts ALTER COLUMN content SET STORAGE EXTERNAL",
    "said": "convert_from(payload, 'UTF8')::json ->> 'decision'",
}  # fmt: skip
_TYPES = {"integer": "int8", "real": "float8", "text": "text", "bytes": "bytea"}
_SETTINGS = (
    b"SET synchronous_commit = on; SET enable_seqscan = off; "  # few statistics yet must not mean a slow plan
    b"SELECT set_config('lock_timeout', '%d', false), set_config('idle_in_transaction_session_timeout', '%d', false)"
    % (int(PATIENCE * 1000), int(IDLE * 1000))
)
_SNAPSHOT = b"BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
_TABLES = "SELECT tablename FROM pg_tables WHERE schemaname = current_schema()"
Connection = psycopg.Connection[tuple[Any, ...]]


class PostgresSession:
    """Fulfils `database.Session`."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection

    def rows(self, statement: str, values: Values = ()) -> list[tuple[Any, ...]]:
        cursor = self.connection.execute(_translated(statement), values or None, binary=True)
        return cursor.fetchall() if cursor.description else []

    def stream(self, statement: str, values: Values = (), at_once: int = 1000) -> Iterable[tuple[Any, ...]]:
        with self.connection.cursor("rows", binary=True) as cursor:
            cursor.itersize = at_once
            cursor.execute(_translated(statement), values or None)
            yield from cursor

    def run(self, statement: str, values: Values = ()) -> int:
        return self.connection.execute(_translated(statement), values or None).rowcount

    def many(self, statement: str, values: Iterable[Values]) -> None:
        with self.connection.cursor() as cursor:
            cursor.executemany(_translated(statement), values)

    def insert(self, table: str, rows: Iterable[Values]) -> None:
        with self.connection.cursor() as cursor, cursor.copy(_insertion(table)) as copy:
            copy.set_types([_TYPES[kind] for kind in TABLES[table].values()])
            for row in rows:
                copy.write_row(row)


class PostgresDatabase:
    """Fulfils `database.Database` with a server."""

    shared = True

    def __init__(self, address: PostgresAddress, make: bool = True) -> None:
        self._place = address
        self.address = address.shown
        with self._said():
            psycopg.connect(address.whole, connect_timeout=int(PATIENCE)).close()  # the pool would try again and again
        self._pool: ConnectionPool[Connection] = ConnectionPool(
            address.whole,
            kwargs={"autocommit": True, "connect_timeout": int(PATIENCE)},
            min_size=1,
            max_size=MOST,
            timeout=RECONNECTING,
            reconnect_timeout=RECONNECTING / 2,  # then whoever comes next begins anew, without a long pause
            configure=_configure,
            open=True,
        )
        try:
            found = self.read(lambda session: version(session, _tables(session)))
            if not make and not found:
                raise absent(self.address, ", which has no tables")
            if found != PRESENT:
                self.write(_prepare)
        except BaseException:
            self._pool.close()
            raise

    def write(self, work: Work[Result]) -> Result:
        return self._tried(b"BEGIN", work)

    def read(self, work: Work[Result]) -> Result:
        return self._tried(_SNAPSHOT, work)

    def settle(self) -> None:
        """The server does that by itself."""

    def tidy(self) -> None:
        """Remove deleted rows from the tables; what the server keeps in its own journal goes with time."""
        with contextlib.suppress(psycopg.Error), self._pool.connection() as connection:
            for table in TABLES:
                connection.execute(sql.SQL("VACUUM {}").format(sql.Identifier(table)))

    def close(self) -> None:
        self._pool.close()

    def _tried(self, begin: bytes, work: Work[Result]) -> Result:
        """A transaction, again where the one before it certainly changed nothing."""
        for attempt in range(TRIES):
            with self._said(), self._pool.connection() as connection:
                transaction = _Transaction(connection, begin)
                try:
                    return transaction.run(work)
                except psycopg.Error as error:
                    if attempt == TRIES - 1 or not transaction.may_repeat(error):
                        raise
            self._recover(PAUSE * 2**attempt)
        raise AssertionError("the last try returns or raises")

    def _recover(self, pause: float) -> None:
        """Wait, and replace the connections that a restart of the server has ended."""
        time.sleep(pause)
        with self._said():
            self._pool.check()

    @contextlib.contextmanager
    def _said(self) -> Iterator[None]:
        """Errors of PostgreSQL as those of a store."""
        try:
            yield
        except (PoolTimeout, PoolClosed) as error:
            closed = isinstance(error, PoolClosed)
            got = "one that was closed; open it again" if closed else "none; see whether it runs, and try again"
            raise StoreError(f"{self.address}: expected a server that answers, got {got}") from error
        except psycopg.Error as error:
            words = self._place.without_secrets(str(error)).strip().partition("\n")[0] or type(error).__name__
            raise StoreError(f"{self.address}: expected a server to use, got: {words}; see to the server") from error


class _Transaction:
    """One try of a transaction on a connection."""

    def __init__(self, connection: Connection, begin: bytes) -> None:
        self.connection, self.begin = connection, begin
        self.committing = False

    def run(self, work: Work[Result]) -> Result:
        self.connection.execute(self.begin)
        result = work(PostgresSession(self.connection))
        self.committing = True
        status = self.connection.execute(b"COMMIT").statusmessage
        if status != "COMMIT":
            raise psycopg.OperationalError(f"the transaction ended with {status}")
        return result

    def may_repeat(self, error: psycopg.Error) -> bool:
        """After a lost connection only where COMMIT was not sent: else nobody knows what became of it."""
        if isinstance(error, errors.SerializationFailure | errors.DeadlockDetected):
            return True
        return self.connection.closed and not self.committing


def _prepare(session: Session) -> None:
    """Make or migrate the tables, one process at a time."""
    session.rows("SELECT pg_advisory_xact_lock(?)", (GATE,))
    migrate(session, _tables(session))


def _tables(session: Session) -> set[str]:
    return {name for (name,) in session.rows(_TABLES)}


def _configure(connection: Connection) -> None:
    connection.execute(_SETTINGS)


@cache
def _translated(statement: str) -> bytes:
    return statement.format(**WORDS).replace("?", "%s").encode()


@cache
def _insertion(table: str) -> bytes:
    return f"COPY {table} ({', '.join(TABLES[table])}) FROM STDIN (FORMAT BINARY)".encode()
