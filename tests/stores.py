"""Stores of both kinds for the tests, and events to put into them."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from neuclust.serve.store.contract import Event, Store, Version

KINDS_OF_STORES = ("sqlite", "postgres")


def new_address(kind: str, folder: Path) -> str:
    """The address of an empty database."""
    from postgres import postgres_address

    return f"sqlite:{folder / f'{os.urandom(4).hex()}.db'}" if kind == "sqlite" else postgres_address()


@pytest.fixture(params=KINDS_OF_STORES)
def store_address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of an empty database of each kind."""
    return new_address(request.param, tmp_path)


@pytest.fixture
def store(store_address: str) -> Iterator[Store]:
    """An empty store of each kind."""
    from neuclust.serve.store.opening import open_store

    opened = open_store(store_address)
    yield opened
    opened.close()


def decision(number: int, user: str | None = None, **changes: str | None) -> Event:
    """A decision with a key, a request id and a user of its own."""
    from neuclust.serve.store.contract import DECISION, Event

    names = {"key": f"d{number}", "request": f"r{number}", "user": user or f"u{number}"} | changes
    return Event(DECISION, f'{{"number":{number}}}'.encode(), digest=bytes([number % 256]) * 32, **names)


def version(number: int, seq: int, state: bool = True) -> Version:
    from neuclust.serve.store.contract import Version

    return Version(number, seq, 10.0 + number, 5 * number, state, True, {"torch": "2", "threads": 1})


def stop_outside_transactions(child: int, store: Store) -> None:
    """SIGSTOP at a moment when others can write: within a transaction it would keep its locks, for ever on SQLite."""
    from neuclust.serve.store.contract import StoreError

    for _ in range(20):
        os.kill(child, signal.SIGSTOP)
        try:
            store.check()
        except StoreError:
            os.kill(child, signal.SIGCONT)
            time.sleep(0.3)
        else:
            return
    raise AssertionError("the learner was never outside a transaction")


def damage_blob(store: Any, id: int, version: int, blob: str) -> None:
    """Change a byte of a model or state in the database; what the database itself checks is as it should be."""
    statement = "SELECT content FROM parts WHERE recommender = ? AND version = ? AND blob = ? AND part = 0"
    change = "UPDATE parts SET content = ? WHERE recommender = ? AND version = ? AND blob = ? AND part = 0"

    def work(session: Any) -> None:
        content = bytearray(session.rows(statement, (id, version, blob))[0][0])
        content[len(content) // 2] ^= 1
        session.run(change, (bytes(content), id, version, blob))

    store.database.write(work)
