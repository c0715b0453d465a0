"""Does a store lose, repeat or reorder events when its writers, or the database itself, are killed?

    python -m benchmarks.store_kills --store sqlite|postgres [--kills 500] [--fault NAME] [--json FILE]

A process appends groups of events with keys from four threads and tells each acknowledged one; it is killed (SIGKILL)
at a random moment, again and again on one database. With PostgreSQL, every tenth time the server is killed with all its
processes, or stopped at once, and started again. A reader polls all the while. At the end every acknowledged event must
be there once, the sequence without gaps, the chain whole, and the reader must have seen the log, no more and no less.
`--fault` plants a fault (benchmarks/store_faults.py), which must be reported: the exit code is 1 where anything is.
A killed process leaves what it wrote to the system: this is no test of power cuts.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import logging
import random
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from benchmarks.store_faults import FAULTS
from benchmarks.store_writer import Orders, event, model
from neuclust.errors import NeuclustError
from neuclust.serve.store.chain import START, verify_chain
from neuclust.serve.store.contract import Row, Store, StoreError
from neuclust.serve.store.opening import open_store
from neuclust.serve.store.sql import SqlStore
from tools.own_postgres import OwnPostgres, own_postgres

EVERY = 1_000_000_000  # versions, of which a quick machine publishes thousands
SERVER_EVERY = 10  # kills
LONGEST = 0.3  # seconds that a writer lives after it began


@dataclass
class Told:
    """What the writers said: groups that were sent, keys that were acknowledged, versions that were published."""

    sent: list[list[str]] = field(default_factory=list)
    acknowledged: set[str] = field(default_factory=set)
    versions: set[int] = field(default_factory=set)

    def hear(self, line: str) -> None:
        mark, *words = line.split()
        if mark == "s":
            self.sent.append(words)
        elif mark == "a":
            self.acknowledged.update(words)
        elif mark == "v":
            self.versions.add(int(words[0]))

    def unanswered(self) -> list[list[str]]:
        """Groups that were sent and not acknowledged; they are handed on once."""
        groups = [keys for keys in self.sent if not self.acknowledged.issuperset(keys)]
        self.sent = []
        return groups


@dataclass
class Reader:
    """Polls the log by its place in it, as a learner does, and keeps what it saw."""

    store: Store
    id: int
    seen: list[tuple[int, bytes]] = field(default_factory=list)
    problem: str | None = None
    end: threading.Event = field(default_factory=threading.Event)

    def run(self) -> None:
        while not self.end.is_set() and self.problem is None:
            self.poll()
            time.sleep(0.002)

    def poll(self) -> bool:
        """Whether there was anything new."""
        try:
            rows = self.store.read(self.id, self.seen[-1][0] if self.seen else 0, 2000)
        except StoreError:
            return True  # the server is down: ask again
        except NeuclustError as error:
            self.problem = str(error)
            return False
        self.seen += [(row.seq, row.hash) for row in rows]
        return bool(rows)


@dataclass(frozen=True)
class Report:
    """Counts of a run; `problems` is empty where everything held."""

    store: str
    kills: int
    server_kills: int
    acknowledged: int
    events: int
    versions: int
    lost: int
    twice: int
    problems: list[str]
    seconds: float


def main(arguments: Sequence[str] | None = None) -> int:
    """Run, print and keep the report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--store", choices=["sqlite", "postgres"], required=True)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--fault", choices=FAULTS)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path, metavar="FILE", help="keep the report under the store's name in this file")
    options = parser.parse_args(arguments)
    logging.getLogger("psycopg.pool").setLevel(logging.CRITICAL)  # lost connections are what this is about
    report = run(options.store, options.kills, options.fault, options.seed)
    print(json.dumps(asdict(report), indent=1))
    if options.json is not None:
        kept = json.loads(options.json.read_text(encoding="utf-8")) if options.json.exists() else {}
        command = (
            f"python -m benchmarks.store_kills --store {options.store} --kills {options.kills} --json {options.json}"
        )
        kept[options.store] = {"command": command, **asdict(report)}
        options.json.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")
    return 1 if report.problems else 0


def run(kind: str, kills: int, fault: str | None = None, seed: int = 0, server_every: int = SERVER_EVERY) -> Report:
    """Kill writers of a new database, then look at what is there."""
    began = time.monotonic()
    draw = random.Random(seed)
    told = Told()
    with database(kind) as (address, server):
        store = open_store(address)
        id = store.create("killed", b"{}").id
        reader = Reader(open_store(address), id)
        poller = threading.Thread(target=reader.run, daemon=True)
        poller.start()
        server_kills = 0
        for life in range(kills):
            orders = Orders(address, id, life, told.unanswered(), fault)
            victim = server if (life + 1) % server_every == 0 else None
            live_and_die(orders, told, draw, victim)
            server_kills += victim is not None
        reader.end.set()
        poller.join()
        while reader.poll():
            pass
        checked = check(store, id, told, reader)
        store.close()
        reader.store.close()
    return Report(kind, kills, server_kills, seconds=round(time.monotonic() - began, 1), **checked)


@contextlib.contextmanager
def database(kind: str) -> Iterator[tuple[str, OwnPostgres | None]]:
    """An empty database of its own, and its server where it has one."""
    if kind == "postgres":
        with own_postgres() as server:
            yield server.new_address(), server
        return
    with tempfile.TemporaryDirectory() as folder:
        yield f"sqlite:{folder}/killed.db", None


def live_and_die(orders: Orders, told: Told, draw: random.Random, server: OwnPostgres | None) -> None:
    """One writer from its start to its kill; most are killed after they began to write."""
    command = [sys.executable, "-m", "benchmarks.store_writer"]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdin is not None
    assert process.stdout is not None
    with contextlib.suppress(BrokenPipeError):
        process.stdin.write(json.dumps(asdict(orders)) + "\n")
        process.stdin.flush()
    begun = threading.Event()
    lines: list[str] = []

    def listen(output: Iterator[str]) -> None:
        for line in output:
            begun.set()
            lines.append(line)

    listener = threading.Thread(target=listen, args=(process.stdout,))
    listener.start()
    try:
        begun.wait(timeout=0.2 * draw.random() if draw.random() < 0.1 else 60)
        time.sleep(LONGEST * draw.random())
        if server is not None:
            restart(server, draw)
            time.sleep(LONGEST)
    finally:
        process.kill()
        process.wait()
        listener.join()
    for line in lines:
        if line.endswith("\n"):  # the last one may be torn
            told.hear(line)
    if not begun.is_set():
        told.sent += orders.again


def restart(server: OwnPostgres, draw: random.Random) -> None:
    """End the server in one of two hard ways and start it again."""
    if draw.random() < 0.5:
        server.kill()
    else:
        server.stop("immediate")
    server.start()


# --- what is there afterwards ---------------------------------------------------------------------------------


def check(store: SqlStore, id: int, told: Told, reader: Reader) -> dict[str, Any]:
    """Counts and problems of the log, the reader and the versions."""
    problems = [] if reader.problem is None else [f"the reader stopped: {reader.problem}"]
    keys: Counter[str] = Counter()
    log: list[tuple[int, bytes]] = []
    try:
        for row in verify_chain(stored_rows(store, id), START, 0):
            log.append((row.seq, row.hash))
            if row.key is not None:
                keys[row.key] += 1
                problems += [] if row.payload == event(row.key).payload else [f"event {row.seq} has another content"]
    except NeuclustError as error:
        problems.append(f"the log: {error}")
    lost, twice = len(told.acknowledged - keys.keys()), sum(count > 1 for count in keys.values())
    if lost:
        problems.append(f"{lost} acknowledged events are not in the log")
    if twice:
        problems.append(f"{twice} keys are in the log more than once")
    if reader.seen != log:
        problems.append(f"the reader saw {len(reader.seen)} events and the log has {len(log)}")
    problems += check_versions(store, id, told)
    return {
        "acknowledged": len(told.acknowledged), "events": len(log), "versions": len(told.versions), "lost": lost,
        "twice": twice, "problems": problems,
    }  # fmt: skip


def stored_rows(store: Store, id: int) -> Iterator[Row]:
    after = 0
    while rows := store.read(id, after, 5000):
        yield from rows
        after = rows[-1].seq


def check_versions(store: SqlStore, id: int, told: Told) -> list[str]:
    """Published versions are listed, models that are kept are whole, and nothing of unfinished ones stays."""
    listed = {version.version: version for version in store.versions(id, EVERY)}
    problems = [f"version {number} was published and is not listed" for number in told.versions - listed.keys()]
    for number, version in listed.items():
        if version.model and store.model(id, number) != model(number):
            problems.append(f"the model of version {number} is another one")
    token = store.lease("the learner", 1.0)
    if token is not None and listed:
        newest = max(listed)
        store.publish(id, token, replace(listed[newest], version=newest + 1), b"last", None)
        parts = store.database.read(lambda session: session.rows("SELECT DISTINCT version FROM parts"))
        kept = {number for number, version in listed.items() if version.model} | {newest + 1}
        if {number for (number,) in parts} != kept:
            problems.append("parts of versions that were never finished are still there")
    return problems


if __name__ == "__main__":
    sys.exit(main())
