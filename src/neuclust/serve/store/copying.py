"""Copies a whole store into an empty one of any kind: backups, restores, and the way from SQLite to PostgreSQL.

The copy is read at one moment, while the service goes on, and what is copied is checked: hashes of contents, the chain
of each log, the hashes of models and states.
"""

import contextlib
import os
from collections.abc import Callable, Iterable, Iterator
from itertools import islice, tee
from pathlib import Path

from neuclust.errors import ConfigError, StateError
from neuclust.serve.store.chain import START, verify_chain
from neuclust.serve.store.contract import Damaged, Head
from neuclust.serve.store.database import Session, Values
from neuclust.serve.store.opening import open_store
from neuclust.serve.store.rows import checked_row
from neuclust.serve.store.sql import SqlStore
from neuclust.serve.store.tables import EVENT, columns
from neuclust.serve.store.versions import MODEL, STATE, read_blob, split_blob

Report = Callable[[int, int], None]
_AT_ONCE = 1000  # rows in memory
_PLAIN = ("versions", "progress", "told", "api_keys")
_SCRATCH = ".scratch"  # the ending of a backup that is being written


def copy_store(source: SqlStore, target: SqlStore, progress: Report | None = None) -> int:
    """Copy every recommender with its log, versions and progress, and the keys; how many events there were.

    `progress` is told the events that are copied and all there are, now and then.
    """
    said = progress or _silent
    return source.database.read(lambda old: target.database.write(lambda new: _copied(old, new, said)))


def backup(address: str, file: Path, progress: Report | None = None) -> int:
    """Copy the store at an address into a new SQLite file, which is there when all of it is; how many events."""
    if file.exists():
        raise ConfigError(f"expected a new file, got {file}, which is there already; name another one")
    if not file.absolute().parent.is_dir():
        raise ConfigError(f"expected a file in a folder that is there, got {file}; make the folder first")
    scratch = file.absolute().with_name(f".{file.name}.{os.urandom(8).hex()}{_SCRATCH}")
    try:
        with _opened(address, make=False) as source, _opened(f"sqlite:{scratch}") as target:
            count = copy_store(source, target, progress)
        os.replace(scratch, file)
        _sync_folder(file.absolute().parent)
    finally:
        for ending in ("", "-wal", "-shm"):
            Path(f"{scratch}{ending}").unlink(missing_ok=True)
    return count


def restore(file: Path, address: str, progress: Report | None = None) -> int:
    """Copy a backup into the empty store at an address; how many events."""
    if not file.is_file():
        raise ConfigError(f"expected the file of a backup, got {file}, which is not there; name another one")
    with _opened(f"sqlite:{file}", make=False) as source, _opened(address) as target:
        return copy_store(source, target, progress)


def _copied(old: Session, new: Session, said: Report) -> int:
    if new.rows("SELECT 1 FROM recommenders LIMIT 1") or new.rows("SELECT 1 FROM api_keys LIMIT 1"):
        raise StateError("expected an empty store to copy into, got one with recommenders or keys; name another one")
    counter = old.rows("SELECT value FROM meta WHERE name = 'recommenders'")[0]
    new.run("UPDATE meta SET value = ? WHERE name = 'recommenders'", counter)
    recommenders = old.rows(f"SELECT {columns('recommenders')} FROM recommenders ORDER BY id")
    new.insert("recommenders", recommenders)
    total = sum(row[2] - row[-1] for row in recommenders)
    done = 0
    for row in recommenders:
        for events in _batches(_events(old, Head(*row[:-1]), dropped=row[-1])):
            new.insert("events", events)
            done += len(events)
            said(done, total)
        _copy_blobs(old, new, row[0])
    for table in _PLAIN:
        for rows in _batches(old.stream(f"SELECT {columns(table)} FROM {table}", at_once=_AT_ONCE)):
            new.insert(table, rows)
    return done


def _events(old: Session, head: Head, dropped: int) -> Iterator[Values]:
    """The stored events of a recommender, each after it was checked; `Damaged` where the log ends early."""
    statement = f"SELECT {EVENT} FROM events WHERE recommender = ? ORDER BY seq"
    stored, read = tee(old.stream(statement, (head.id,), at_once=_AT_ONCE))
    last, seq = _start(old, head, dropped)
    for values, row in zip(stored, verify_chain(map(checked_row, read), last, seq), strict=True):
        last, seq = row.hash, row.seq
        if seq == head.base and last != head.base_hash:
            raise Damaged(
                f"expected the base of {head.name!r:.100} with its hash, got another; restore the last backup"
            )
        yield head.id, *values
    if (last, seq) != (head.hash, head.seq):
        raise Damaged(
            f"expected the log of {head.name!r:.100} up to event {head.seq}, got it up to {seq}; restore a backup"
        )


def _start(old: Session, head: Head, dropped: int) -> tuple[bytes, int]:
    """The hash and the place before the first event that is kept."""
    if dropped == 0:
        return START, 0
    if dropped == head.base:
        return head.base_hash, head.base
    rows = old.rows("SELECT before FROM events WHERE recommender = ? AND seq = ?", (head.id, dropped + 1))
    return (rows[0][0] if rows else START), dropped  # an erasure moved the base on: the row before is in the chain


def _copy_blobs(old: Session, new: Session, id: int) -> None:
    """The models and states that are kept, one in memory at a time."""
    for (version,) in old.rows("SELECT version FROM versions WHERE recommender = ? ORDER BY version", (id,)):
        for blob in (MODEL, STATE):
            content = read_blob(old, id, version, blob)
            new.insert("parts", split_blob(id, version, blob, content or b""))


def _batches(rows: Iterable[Values]) -> Iterator[list[Values]]:
    rows = iter(rows)
    while batch := list(islice(rows, _AT_ONCE)):
        yield batch


@contextlib.contextmanager
def _opened(address: str, make: bool = True) -> Iterator[SqlStore]:
    store = open_store(address, make)
    try:
        yield store
    finally:
        store.close()


def _sync_folder(folder: Path) -> None:
    """The new name on the disk too."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _silent(done: int, total: int) -> None:
    """Nobody listens."""
