"""A full disk, errors of the disk, a busy file, a server that is down: nothing is acknowledged that is not there."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import apsw
import psycopg
import pytest
from postgres import private_postgres
from stores import decision

from benchmarks.store_damage import trials
from neuclust.serve.store import postgres, sqlite
from neuclust.serve.store.chain import START, verify_chain
from neuclust.serve.store.contract import Damaged, Event, Head, Progress, Store, StoreError
from neuclust.serve.store.opening import open_store

GROUP = 20


def append(store: Store, head: Head, first: int) -> int:
    """A group of decisions from a number on; the number after them once they are acknowledged."""
    store.append({head.id: [decision(number) for number in range(first, first + GROUP)]})
    return first + GROUP


def append_until_refused(store: Store, head: Head, first: int) -> int:
    """The first number that was not acknowledged."""
    for _ in range(10_000):
        try:
            first = append(store, head, first)
        except StoreError:
            return first
    raise AssertionError("nothing was refused")


def check_log(store: Store, head: Head, acknowledged: int) -> None:
    """The configuration, then every acknowledged decision once, and nothing else."""
    rows = store.read(head.id, 0, 1_000_000)
    assert list(verify_chain(rows, START, 0)) == rows
    assert [row.key for row in rows[1:]] == [f"d{number}" for number in range(acknowledged)]


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of two megabytes."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(folder)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True).returncode != 0:
        pytest.skip("no file system may be mounted here")
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


def test_a_full_disk_refuses_and_goes_on_when_there_is_room(small_disk: Path) -> None:
    """Fails when a full disk acknowledges, tears a group, ends the reading, or needs a restart once there is room."""
    ballast = small_disk / "ballast"
    ballast.write_bytes(bytes(500_000))
    address = f"sqlite:{small_disk / 'shop.db'}"
    store = open_store(address)
    head = store.create("shop", b"{}")
    written = append_until_refused(store, head, 0)
    assert written > 0
    with pytest.raises(StoreError, match="make room"):
        append(store, head, written)
    check_log(store, head, written)
    ballast.unlink()
    written = append(store, head, written)
    check_log(store, head, written)
    written = append_until_refused(store, head, written)
    store.close()
    again = open_store(address)
    check_log(again, head, written)
    again.close()


class FaultyDisk(apsw.VFS):
    """Passes everything on to SQLite's files, until it is told to fail."""

    failing: str | None = None  # the operation that fails

    def __init__(self) -> None:
        self.name, self.below = f"faulty-{os.urandom(4).hex()}", sqlite.VFS
        super().__init__(self.name, self.below)

    def xOpen(self, name: str | apsw.URIFilename | None, flags: list[int]) -> FaultyFile:
        return FaultyFile(self, name, flags)


class FaultyFile(apsw.VFSFile):
    """A file of such a disk."""

    def __init__(self, disk: FaultyDisk, name: str | apsw.URIFilename | None, flags: list[int]) -> None:
        self.disk = disk
        super().__init__(disk.below, name, flags)

    def _fail(self, operation: str) -> None:
        if self.disk.failing == operation:
            raise apsw.IOError("planted")

    def xWrite(self, data: bytes, offset: int) -> None:
        self._fail("write")
        super().xWrite(data, offset)

    def xSync(self, flags: int) -> None:
        self._fail("sync")
        super().xSync(flags)

    def xRead(self, amount: int, offset: int) -> bytes:
        self._fail("read")
        return super().xRead(amount, offset)


@pytest.mark.parametrize("operation", ["write", "sync", "read"])
def test_errors_of_the_disk_are_no_acknowledgements(
    operation: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fails when a disk that cannot write, sync or read acknowledges, or the store does not come back after it."""
    address = f"sqlite:{tmp_path / 'shop.db'}"
    open_store(address).close()
    disk = FaultyDisk()
    monkeypatch.setattr(sqlite, "VFS", disk.name)
    store = open_store(address)
    head = store.create("shop", b"{}")
    written = append(store, head, 0)
    store.close()
    store = open_store(address)  # nothing in memory: a read has to ask the disk
    disk.failing = operation
    for _ in range(3):
        with pytest.raises(StoreError):
            append(store, head, written)
    disk.failing = None
    check_log(store, head, written)
    written = append(store, head, written)
    check_log(store, head, written)
    store.close()
    monkeypatch.undo()
    again = open_store(address)
    check_log(again, head, written)
    again.close()


def test_a_file_that_another_process_writes_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fails when a long transaction of another process is not waited for, or waited for without end."""
    monkeypatch.setattr(sqlite, "PATIENCE", 0.1)
    file = tmp_path / "shop.db"
    store = open_store(f"sqlite:{file}")
    head = store.create("shop", b"{}")
    other = apsw.Connection(str(file))
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreError, match="its turn to write"):
        append(store, head, 0)
    other.execute("ROLLBACK")
    other.close()
    check_log(store, head, append(store, head, 0))
    store.close()


def test_an_empty_file_is_not_begun_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fails when a database that was cut off to nothing is taken for a new one."""
    monkeypatch.setattr(sqlite, "BEGINNING", 0.1)
    file = tmp_path / "shop.db"
    file.touch()
    with pytest.raises(StoreError, match="delete the file to begin anew"):
        open_store(f"sqlite:{file}")


def test_a_server_that_was_down_comes_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fails when a stopped server acknowledges, or a store needs a restart when its server has had one."""
    monkeypatch.setattr(postgres, "RECONNECTING", 0.6)
    with private_postgres() as server:
        address = server.new_address()
        store = open_store(address)
        head = store.create("shop", b"{}")
        written = append(store, head, 0)
        server.stop()
        for call in (
            lambda: append(store, head, written),
            lambda: store.read(head.id, 0, 10),
            store.check,
            lambda: store.advance(head.id, 0, Progress(1, 1, 1.0), {}),
        ):
            with pytest.raises(StoreError, match="server"):
                call()
        server.start()
        written = append(store, head, written)
        check_log(store, head, written)
        server.kill()
        server.start()
        written = append(store, head, written)  # at once: broken connections are replaced within the call
        store.close()
        again = open_store(address)
        check_log(again, head, written)
        again.close()


def test_a_transaction_that_the_server_took_back_is_tried_again() -> None:
    """Fails when a deadlock or a lost connection before the commit is not tried again, or one after it is."""
    from postgres import postgres_address

    store = open_store(postgres_address())
    head = store.create("shop", b"{}")
    errors = [psycopg.errors.DeadlockDetected("planted"), psycopg.errors.SerializationFailure("planted")]

    def unlucky(session: object) -> str:
        if errors:
            raise errors.pop()
        return "done"

    assert store.database.write(unlucky) == "done"

    def cut_off(session: postgres.PostgresSession) -> int:
        if store.database.read(lambda reader: reader.rows("SELECT value FROM meta WHERE name = 'checks'"))[0][0] == 0:
            store.check()
            session.connection.close()
        return session.run("UPDATE meta SET value = value + 1 WHERE name = 'checks'")

    assert store.database.write(cut_off) == 1  # type: ignore[arg-type]
    check_log(store, head, append(store, head, 0))
    store.close()


def test_a_closed_store_says_so(store: Store) -> None:
    """Fails when a call after close ends in an error of the driver."""
    head = store.create("shop", b"{}")
    store.close()
    for call in (store.check, store.heads, lambda: store.append({head.id: [Event("items", b"")]})):
        with pytest.raises(StoreError, match="closed"):
            call()


# --- damage ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["file", "blobs"])
def test_damage_is_found_or_harmless(kind: str) -> None:
    """Fails when damage of the file, or of a model or state in it, is read as if it were whole."""
    counts = trials(kind, 25, seed=1)
    assert counts["wrong"] == 0
    assert counts["found"] > 10


@pytest.mark.soak
@pytest.mark.parametrize("kind", ["file", "blobs"])
def test_much_damage_is_found_or_harmless(kind: str) -> None:
    """Fails when one of a thousand damages is read as if it were whole."""
    counts = trials(kind, 1000, seed=2)
    assert counts["wrong"] == 0
    assert counts["found"] > 500


@pytest.mark.parametrize("change", ["payload = x'00'", "key = 'other'", "kind = 'items'", "time = 0", "salt = NULL"])
def test_a_changed_row_is_not_read(change: str, tmp_path: Path) -> None:
    """Fails when a row that was changed past the store is given to anybody."""
    file = tmp_path / "shop.db"
    store = open_store(f"sqlite:{file}")
    head = store.create("shop", b"{}")
    append(store, head, 0)
    other = apsw.Connection(str(file), vfs="cksmvfs")
    other.execute(f"UPDATE events SET {change} WHERE seq = 5")
    other.close()
    with pytest.raises(Damaged, match="event 5"):
        store.read(head.id, 0, 100)
    store.close()
