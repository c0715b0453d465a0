"""The process that `benchmarks.store_kills` kills: threads that append groups, and one that publishes versions.

It reads its orders as one line of JSON and prints lines: `ready`, `s KEY …` before a group is sent, `a KEY …` once it
is acknowledged, `v NUMBER` once a version is published. A group that fails is sent again, as a client would.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import random
import sys
import threading
import time
from dataclasses import dataclass

from benchmarks.store_faults import with_fault
from neuclust.serve.store.contract import DECISION, Event, Store, StoreError, Version
from neuclust.serve.store.opening import open_store
from neuclust.serve.store.sql import SqlStore

THREADS = 4
LARGEST = 12  # events in a group
BLOB = 700_000  # bytes of a model: three parts


@dataclass(frozen=True)
class Orders:
    """Where to write and what was sent before without an answer."""

    address: str
    id: int
    life: int
    again: list[list[str]]
    fault: str | None = None


def event(key: str) -> Event:
    """The event of a key: everything in it follows from the key."""
    payload = hashlib.sha512(key.encode()).digest() * 4
    return Event(DECISION, payload, key=key, request=f"request-{key}", digest=payload[:32], user=key[-2:])


def model(number: int) -> bytes:
    """The model of a version."""
    return hashlib.sha256(str(number).encode()).digest() * (BLOB // 32)


def main() -> None:
    """Write until somebody ends this process."""
    logging.getLogger("psycopg.pool").setLevel(logging.CRITICAL)
    orders = Orders(**json.loads(sys.stdin.readline()))
    store = with_fault(opened(orders.address), orders.fault)
    say("ready")
    for thread in range(THREADS):
        again = orders.again[thread::THREADS]
        threading.Thread(target=append_forever, args=(store, orders, thread, again), daemon=True).start()
    publish_forever(store, orders.id)


def opened(address: str) -> SqlStore:
    """The store, also where its server is killed while it is opened."""
    while True:
        try:
            return open_store(address)
        except StoreError:
            time.sleep(0.01)


def append_forever(store: Store, orders: Orders, thread: int, again: list[list[str]]) -> None:
    """What was left without an answer first, then groups of new keys and a few old ones."""
    for keys in again:
        send(store, orders.id, keys)
    draw = random.Random(f"{orders.life} {thread}")
    old: list[str] = []
    number = 0
    while True:
        keys = [f"{orders.life}-{thread}-{number + place}" for place in range(draw.randint(1, LARGEST))]
        number += len(keys)
        repeated = draw.sample(old, min(len(old), draw.randint(0, 2)))
        send(store, orders.id, keys + repeated)
        old = (old + keys)[-50:]


def send(store: Store, id: int, keys: list[str]) -> None:
    """One group, again and again until it is acknowledged."""
    say("s", *keys)
    while True:
        try:
            store.append({id: [event(key) for key in keys]})
            break
        except StoreError:
            time.sleep(0.01)
    say("a", *keys)


def publish_forever(store: Store, id: int) -> None:
    """Versions one after the other, with a model of several parts."""
    while True:
        try:
            token = store.lease("the learner", 1.0)
            number = max((version.version for version in store.versions(id)), default=0) + 1
            if token is not None:
                version = Version(number, 1, time.time(), 0, state=False, model=True)
                store.publish(id, token, version, model(number), None)
                store.prune(id, token, list(range(number - 5, number - 2)), [])
                say("v", str(number))
        except StoreError:
            pass
        time.sleep(0.05)


def say(*words: str) -> None:
    """One line in one write: a kill leaves whole lines but for the last."""
    os.write(1, (" ".join(words) + "\n").encode())


if __name__ == "__main__":
    main()
