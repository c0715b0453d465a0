"""Kills of the whole service under load: nothing acknowledged is lost, nothing is learned twice, replay agrees.

    python -m benchmarks.serve_kills --store sqlite --kills 60 --json docs/records/serve_kills_sqlite.json
    python -m benchmarks.serve_kills --store postgres --kills 60 --json docs/records/serve_kills_postgres.json

Clients ask for slates and send clicks, with ids of their own that they repeat until they are answered. Meanwhile
processes are killed (SIGKILL) at random moments and started again: on SQLite the service with its learner; on
PostgreSQL one of two replicas, the learner, or the database server. At the end the log is compared with what clients
were told, its chain is verified, and the model is made again from it.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.serve_ledger import Ledger, faults
from benchmarks.serve_shop import DEVICES, items, users
from benchmarks.tables import machine, markdown, write_record
from neuclust.client import Client, Retry, ServiceError
from tools.own_postgres import OwnPostgres, own_postgres
from tools.own_service import Launch, OwnService, launched

NAME, ITEMS, USERS = "shop", 60, 40
PATIENT = Retry(times=400, first=0.05, longest=0.5)
ANSWERS = (10, 60)  # acknowledged events between two kills: a service that serves nobody has nothing to lose
MOMENT = 0.05  # seconds after that, drawn from 0: anywhere within a request or a commit
LONGEST = 120.0  # seconds without enough of them, which is a fault
DRAIN = 300.0  # seconds for the learner to come to the end of the log
Record = dict[str, Any]


@dataclass
class Site:
    """Everything that can be killed: processes of the service, and the database server where there is one."""

    db: str
    apis: list[OwnService]
    others: list[OwnService] = field(default_factory=list)
    server: OwnPostgres | None = None
    revived: int = 0

    def revive(self) -> None:
        """Start what ended by itself, as a supervisor does: a process that starts while its database is down ends."""
        for service in (*self.apis, *self.others):
            if not service.running:
                service.start(wait=False)
                self.revived += 1

    def targets(self) -> dict[str, Callable[[], None]]:
        """What a kill may be, by name; each brings back what it killed."""
        found = {f"api {at + 1}": _again(each) for at, each in enumerate(self.apis)}
        found |= {each.role: _again(each) for each in self.others}
        if self.server is not None:
            found["database"] = self._restart_database
        return found

    def _restart_database(self) -> None:
        assert self.server is not None
        self.server.kill()
        time.sleep(0.2)
        self.server.start()


def _again(service: OwnService) -> Callable[[], None]:
    def kill() -> None:
        service.kill()
        service.start(wait=False)

    return kill


@contextmanager
def site(store: str, folder: Path, launch: Launch = launched) -> Iterator[Site]:
    """A service on a fresh database."""
    with ExitStack() as stack:
        if store == "sqlite":
            db = f"sqlite:{folder / 'shop.db'}"
            made = Site(db, [OwnService(db, log=folder / "service.log", launch=launch)])
        else:
            server = stack.enter_context(own_postgres())
            *apis, learner = (
                OwnService(server.address, role, log=folder / f"{at}-{role}.log", launch=launch)
                for at, role in enumerate(("api", "api", "learner"))
            )
            made = Site(server.address, apis, [learner], server)
        for service in (*made.apis, *made.others):
            stack.callback(service.stop)
            service.start()
        yield made


@dataclass
class Shopper:
    """A client that asks and clicks until it is told to end, and writes down what it was told."""

    number: int
    address: str
    ledger: Ledger
    end: threading.Event
    failed: list[str] = field(default_factory=list)

    def run(self) -> None:
        coins = random.Random(self.number)
        client = Client(self.address, timeout=5.0, retries=PATIENT)
        shop = client.recommender(NAME)
        count = 0
        while not self.end.is_set():
            count += 1
            try:
                self._visit(shop, f"{self.number}-{count}", coins)
            except ServiceError as error:
                self.failed.append(f"{self.number}-{count}: {error.status} {error}")
        client.close()

    def _visit(self, shop: Any, id: str, coins: random.Random) -> None:
        asked = {"user": f"u{coins.randrange(USERS)}", "context": {"device": coins.choice(DEVICES)}}
        answer = shop.recommend(**asked, request_id=id)
        self.ledger.decided(id, answer.decision_id, answer.items)
        if coins.random() < 0.1:  # the same request again: the same answer
            again = shop.recommend(**asked, request_id=id)
            self.ledger.decided(id, again.decision_id, again.items)
        if coins.random() < 0.8:
            values = {item: float(coins.random() < 0.2) for item in answer.items}
            taken = shop.feedback(answer.decision_id, values, feedback_id=f"f{id}")
            self.ledger.heard(taken.feedback_id, answer.decision_id)
        if coins.random() < 0.05:
            name = f"new-{id}"
            shop.put_item(name, {"category": "c1", "brand": "b1", "price": 9.0, "rating": 4.0, "sale": False})
            self.ledger.stocked(name)


def play(made: Site, kills: int, shoppers: int, seed: int) -> tuple[Ledger, Counter[str], list[str]]:
    """Load and kills; what clients were told, what was killed, what failed."""
    ledger, end, coins = Ledger(), threading.Event(), random.Random(seed)
    first = Client(made.apis[0].address, timeout=5.0, retries=PATIENT)
    shop = first.create(NAME, slate_size=3, policy="linucb", window=30.0)
    shop.put_items(items(ITEMS))
    shop.put_users(users(USERS))
    people = [Shopper(at, made.apis[at % len(made.apis)].address, ledger, end) for at in range(shoppers)]
    threads = [threading.Thread(target=each.run) for each in people]
    for thread in threads:
        thread.start()
    killed: Counter[str] = Counter()
    try:
        targets = made.targets()
        for _ in range(kills):
            _served(made, ledger, coins.randint(*ANSWERS))
            time.sleep(coins.uniform(0.0, MOMENT))
            name = coins.choice(sorted(targets))
            targets[name]()
            killed[name] += 1
        _served(made, ledger, ANSWERS[1])  # it serves after the last one, too
    finally:
        end.set()
        for thread in threads:
            thread.join()
    drain(shop, made.revive)
    return ledger, killed, [sentence for each in people for sentence in each.failed]


def _served(made: Site, ledger: Ledger, count: int) -> None:
    """Wait until clients were told of so many more events; a service that does not come back is a fault."""
    wanted, deadline = len(ledger) + count, time.monotonic() + LONGEST
    while len(ledger) < wanted:
        if time.monotonic() > deadline:
            ledger.wrong.append(f"fewer than {count} events were acknowledged within {LONGEST:g} seconds of a start")
            return
        made.revive()
        time.sleep(0.005)


def drain(shop: Any, each: Callable[[], None] = lambda: None) -> None:
    """Wait until the learner has come to the end of the log."""
    deadline = time.monotonic() + DRAIN
    while time.monotonic() < deadline:
        told = shop.configuration()
        if told["learned_events"] >= told["events"]:
            return
        each()
        time.sleep(0.2)


def measured(store: str, kills: int, shoppers: int = 4, seed: int = 0, launch: Launch = launched) -> Record:
    """One whole run with its verdict: `faults` is empty where everything holds."""
    begun = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="neuclust-kills-") as folder, site(store, Path(folder), launch) as made:
        ledger, killed, failed = play(made, kills, shoppers, seed)
        for service in (*made.apis, *made.others):
            service.stop()
        found, told = faults(made.db, NAME, ledger)
    return {
        "store": store, "kills": kills, "killed": dict(killed), "revived": made.revived,
        "acknowledged_decisions": len(ledger.decisions),
        "acknowledged_feedback": len(ledger.feedback), **told, "faults": [*found, *failed[:20]],
        "seconds": round(time.monotonic() - begun, 1),
    }  # fmt: skip


def main(arguments: Sequence[str] | None = None) -> None:
    """Kill and compare; exit code 1 where something does not hold."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--store", choices=("sqlite", "postgres"), default="sqlite")
    parser.add_argument("--kills", type=int, default=60)
    parser.add_argument("--shoppers", type=int, default=4)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path, default=None, help="where the figures go")
    options = parser.parse_args(arguments)
    found = measured(options.store, options.kills, options.shoppers, options.seed)
    header = ["store", "kills", "decisions", "feedback", "events", "lessons", "faults", "seconds"]
    keys = ("store", "kills", "acknowledged_decisions", "acknowledged_feedback", "events", "lessons")
    print(markdown(header, [[*(str(found[key]) for key in keys), str(len(found["faults"])), str(found["seconds"])]]))
    for sentence in found["faults"]:
        print(sentence, file=sys.stderr)
    command = f"python -m benchmarks.serve_kills --store {options.store} --kills {options.kills}"
    write_record(options.json, {"command": command, "machine": machine("apsw", "psycopg"), **found})
    if found["faults"]:
        sys.exit(1)


if __name__ == "__main__":
    main()
