"""Backups, restores and moves: the same store elsewhere."""

from __future__ import annotations

import threading
from pathlib import Path

import apsw
import pytest
from stores import KINDS_OF_STORES, decision, new_address, version

from neuclust.errors import ConfigError, StateError
from neuclust.serve.store.contract import Damaged, Key, Progress, Store
from neuclust.serve.store.copying import backup, copy_store, restore
from neuclust.serve.store.opening import open_store


def filled(store: Store) -> None:
    """Something in every table: erased events, a dropped beginning, versions without blobs, told, keys."""
    token = store.lease("learner", 60)
    assert token is not None
    for name in ("one", "two", "three", "gone"):
        id = store.create(name, name.encode()).id
        store.append({id: [decision(number, user="ann" if number == 3 else "bob") for number in range(1, 9)]})
        store.publish(id, token, version(1, 3), b"first", b"first state")
        store.publish(id, token, version(2, 6), bytes(300_000), b"second state" * 50_000)
        store.publish(id, token, version(3, 8, state=False), b"", None)
        store.advance(id, token, Progress(9, 4, 7.5, {"loss": 1}), {2: b"two", 7: b"seven"})
    head = store.head("two")
    assert head is not None
    store.retain(head.id, token, 3)
    store.erase(head.id, token, "ann", 5)
    head = store.head("three")
    assert head is not None
    store.promote(head.id, 3)
    store.prune(head.id, token, [1], [1])
    store.delete("gone")
    store.add_key(Key("one", b"1" * 32, ("admin",), None, 1.0, "note"))


def content(store: Store) -> list[object]:
    """All that can be read from a store."""
    found: list[object] = [store.heads(), store.keys()]
    for head in store.heads():
        found += [store.read(head.id, 0, 1000), store.progress(head.id), store.told(head.id, 0, 100)]
        for each in store.versions(head.id):
            found += [each, store.model(head.id, each.version), store.state(head.id, each.version)]
    return found


@pytest.mark.parametrize("target", KINDS_OF_STORES)
def test_a_copy_is_the_same_store(store: Store, store_address: str, target: str, tmp_path: Path) -> None:
    """Fails when something is lost or changed on the way between any two kinds, or a new id is an old one's."""
    filled(store)
    source, copy = open_store(store_address), open_store(new_address(target, tmp_path))
    told: list[tuple[int, int]] = []
    assert copy_store(source, copy, lambda done, total: told.append((done, total))) == 9 + 6 + 9
    assert told[-1] == (24, 24)
    assert content(copy) == content(store)
    assert copy.create("new", b"").id == source.create("new", b"").id
    id = copy.heads()[0].id
    assert copy.append({id: [decision(1), decision(50)]})[id][1].seq == 10
    with pytest.raises(StateError, match="empty store"):
        copy_store(source, copy)
    for each in (source, copy):
        each.close()


def test_a_backup_is_made_while_the_service_writes(store: Store, store_address: str, tmp_path: Path) -> None:
    """Fails when a backup under way loses or tears a group, stops the writer, or cannot be restored."""
    head = store.create("shop", b"{}")
    store.append({head.id: [decision(number) for number in range(100)]})
    end = threading.Event()

    def write() -> None:
        group = 0
        while not end.is_set():
            group += 1
            store.append({head.id: [decision(1000 * group + place) for place in range(10)]})

    writer = threading.Thread(target=write)
    writer.start()
    file = tmp_path / "backup.db"
    count = backup(store_address, file)
    end.set()
    writer.join()
    assert [path.name for path in tmp_path.iterdir() if "backup" in path.name] == ["backup.db"]
    restored = f"sqlite:{tmp_path / 'restored.db'}"
    assert restore(file, restored) == count
    again = open_store(restored)
    rows = store.read(head.id, 0, 100_000)
    assert again.read(head.id, 0, 100_000) == rows[:count]
    assert (count - 101) % 10 == 0
    again.close()


def test_places_that_cannot_be_used(store: Store, store_address: str, tmp_path: Path) -> None:
    """Fails when a backup overwrites a file, or a restore makes an empty one of a misspelt name."""
    there = tmp_path / "there.db"
    there.write_text("mine")
    with pytest.raises(ConfigError, match="there already"):
        backup(store_address, there)
    assert there.read_text() == "mine"
    with pytest.raises(ConfigError, match="make the folder"):
        backup(store_address, tmp_path / "nowhere" / "backup.db")
    with pytest.raises(ConfigError, match="not there"):
        restore(tmp_path / "misspelt.db", store_address)
    assert not (tmp_path / "misspelt.db").exists()


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE events SET payload = x'00' WHERE seq = 3 AND recommender = 1",
        "UPDATE events SET time = time + 1 WHERE seq = 3 AND recommender = 1",
        "DELETE FROM events WHERE seq = 3 AND recommender = 1",
        "DELETE FROM events WHERE seq = 9 AND recommender = 1",
        "DELETE FROM events WHERE seq = 4 AND recommender = 2",
        "UPDATE recommenders SET hash = x'00' WHERE id = 1",
        "UPDATE recommenders SET base_hash = x'00' WHERE id = 2",
        "UPDATE parts SET content = x'00' WHERE version = 2 AND blob = 'model'",
        "DELETE FROM parts WHERE version = 2 AND part = 1",
        "UPDATE events SET payload = NULL WHERE seq = 3 AND recommender = 1",
    ],
)
def test_a_changed_store_is_not_copied(change: str, tmp_path: Path) -> None:
    """Fails when a copy is made of a log or a blob that is not what was written, or leaves a file behind."""
    file = tmp_path / "shop.db"
    store = open_store(f"sqlite:{file}")
    filled(store)
    store.close()
    connection = apsw.Connection(str(file), vfs="cksmvfs")
    connection.execute(change)
    assert connection.changes() > 0
    connection.close()
    with pytest.raises(Damaged):
        backup(f"sqlite:{file}", tmp_path / "backup.db")
    assert [path.name for path in tmp_path.iterdir()] == ["shop.db"]
