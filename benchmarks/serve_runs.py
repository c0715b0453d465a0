"""What the benchmarks of the service share: a service with a shop in it, the load process, watching, the floor."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.http_load import Spec
from benchmarks.serve_shop import SLATE_SIZE, Requests, items, users
from neuclust.client import Client, RemoteRecommender, ServiceError, Unavailable
from tools.own_postgres import own_postgres
from tools.own_service import OwnService

NAME = "shop"
WARM = 300  # slates with feedback before the clock starts
Record = dict[str, Any]


@dataclass
class Running:
    """A service that runs, and its recommender."""

    services: list[OwnService]
    client: Client
    shop: RemoteRecommender

    @property
    def first(self) -> OwnService:
        return self.services[0]

    def memory(self) -> int:
        """Bytes of all its processes."""
        return sum(service.memory() for service in self.services)

    def progress(self) -> Record:
        """Events, events that were learned, lessons."""
        told = self.shop.configuration()
        return {name: int(told[name]) for name in ("events", "learned_events", "lessons", "model_version")}


@contextmanager
def database(store: str) -> Iterator[str]:
    """The address of a fresh database of a kind."""
    with ExitStack() as stack:
        if store == "postgres":
            yield stack.enter_context(own_postgres()).address
        else:
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="neuclust-bench-"))
            yield f"sqlite:{Path(folder) / 'shop.db'}"


@contextmanager
def running(store: str, policy: str, n_items: int, n_users: int, **more: Any) -> Iterator[Running]:
    """A fresh service with a recommender that has items, users, and a model that learned a little."""
    with database(store) as db:
        service = OwnService(db)
        try:
            service.start()
            client = Client(service.address, timeout=60.0)
            shop = client.create(NAME, slate_size=SLATE_SIZE, policy=policy, **more)
            shop.put_items(items(n_items))
            shop.put_users(users(n_users))
            made = Running([service], client, shop)
            warm_up(made, n_items, n_users)
            yield made
        finally:
            service.stop()


def warm_up(made: Running, n_items: int, n_users: int) -> None:
    """Some slates with feedback, and the model that learned them is served."""
    asked = Requests(n_items, n_users, min(300, n_items), seed=1, prepared=WARM).arguments()
    for at, each in enumerate(asked):
        answer = made.shop.recommend(**each)
        made.shop.feedback(answer.decision_id, {answer.items[0]: float(at % 10 == 0)})
    wait_for(lambda: drained(made), 120.0)


def drained(made: Running) -> bool:
    """Whether the learner has seen every event."""
    told = made.progress()
    return bool(told["learned_events"] >= told["events"] and told["model_version"] > 0)


def wait_for(done: Callable[[], bool], most: float) -> float:
    """Seconds until something holds; infinity where it does not in time."""
    begun = time.monotonic()
    while time.monotonic() - begun < most:
        try:
            if done():
                return time.monotonic() - begun
        except (Unavailable, ServiceError):
            pass
        time.sleep(0.1)
    return float("inf")


@dataclass
class Watch:
    """Looks at a service once per second from a thread: lag, lessons, memory."""

    made: Running
    samples: list[Record] = field(default_factory=list)
    _end: threading.Event = field(default_factory=threading.Event)

    @contextmanager
    def watching(self) -> Iterator[list[Record]]:
        """The samples, filled while inside."""
        thread = threading.Thread(target=self._run)
        thread.start()
        try:
            yield self.samples
        finally:
            self._end.set()
            thread.join()

    def _run(self) -> None:
        begun = time.monotonic()
        quick = Client(self.made.first.address, timeout=5.0, retries=0)
        shop = quick.recommender(NAME)
        while not self._end.wait(1.0):
            sample: Record = {"at": round(time.monotonic() - begun, 1), "memory_mb": self.made.memory() // 2**20}
            try:
                told = shop.configuration()
                sample |= {"lag": told["events"] - told["learned_events"], "lessons": told["lessons"]}
            except ServiceError:
                pass  # overloaded: memory is still known
            self.samples.append(sample)
        quick.close()


def send(spec: Spec) -> Record:
    """The figures of a load, made by a process of its own."""
    words = [sys.executable, "-m", "benchmarks.http_load"]
    done = subprocess.run(words, input=json.dumps(asdict(spec)), capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr[-2_000:])
    found: Record = json.loads(done.stdout)
    return found


def floor(policy: str, n_items: int, n_users: int, eligible: int | None, count: int = 200) -> Record:
    """Milliseconds of one recommendation by a reader of the front door in a process of its own: scoring alone."""
    asked = json.dumps([policy, n_items, n_users, eligible, count])
    words = [sys.executable, "-m", "benchmarks.serve_runs"]
    done = subprocess.run(words, input=asked, capture_output=True, text=True, check=True)
    found: Record = json.loads(done.stdout.splitlines()[-1])
    return found


def _floor(policy: str, n_items: int, n_users: int, eligible: int | None, count: int) -> Record:
    from benchmarks.tables import one_thread
    from neuclust import Recommender

    one_thread()
    shop = Recommender(
        items(n_items), "id", users=users(n_users), user_id="id", slate_size=SLATE_SIZE, policy=policy
    )  # fmt: skip
    for at, each in enumerate(Requests(n_items, n_users, min(300, n_items), 1, WARM).arguments()):
        choice = shop.recommend(**each)
        shop.feedback(choice.id, {choice.items[0]: float(at % 10 == 0)})
    reader, asked, took = shop.reader(), Requests(n_items, n_users, eligible).arguments(), []
    for at in range(count):
        begun = time.perf_counter()
        reader.recommend(**asked[at % len(asked)])
        took.append(time.perf_counter() - begun)
    took = sorted(took[count // 10 :])
    return {
        "median_ms": round(1e3 * statistics.median(took), 2),
        "p99_ms": round(1e3 * took[int(0.99 * len(took))], 2),
        "per_second": round(1 / statistics.mean(took), 1),
    }


if __name__ == "__main__":
    print(json.dumps(_floor(*json.load(sys.stdin))))
