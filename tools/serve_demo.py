"""A service that learns while you watch: `make serve-demo`, and on PostgreSQL with two replicas `make serve-cluster`.

    python -m tools.serve_demo [--cluster] [--db FILE] [--port 8000] [--rate 20] [--seconds N]

Starts the service on a temporary SQLite file (or a named one), makes a shop of 300 items and 400 users, and sends it
shoppers over HTTP until Ctrl-C, or for N seconds. With --cluster: a PostgreSQL server of its own, two API processes
and one learner.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from neuclust.cli.interrupt import patient_interrupt
from neuclust.client import Client, Conflict
from neuclust.errors import NeuclustError
from neuclust.experiment.shop import SimulatedShop
from tools.own_postgres import own_postgres
from tools.own_service import OwnService
from tools.shoppers import CONFIGURATION, Shoppers, bounds

NAME = "shop"
SAY_EVERY = 10.0  # seconds


@contextmanager
def one_process(db: Path, port: int) -> Iterator[list[OwnService]]:
    """The service on one SQLite file."""
    service = OwnService(f"sqlite:{db}", port=port, log=db.with_suffix(".log"))
    try:
        service.start()
        yield [service]
    finally:
        service.stop()


@contextmanager
def cluster(folder: Path, port: int) -> Iterator[list[OwnService]]:
    """PostgreSQL, two API processes and one learner."""
    with own_postgres() as server, ExitStack() as running:
        made = [
            OwnService(server.address, role, port + at, log=folder / f"{role}-{at}.log")
            for at, role in enumerate(("api", "api", "learner"))
        ]
        for service in made:
            running.callback(service.stop)
            service.start()
        yield made[:2]


def play(services: Sequence[OwnService], rate: float, seconds: float | None) -> None:
    """Make the shop and send it shoppers until Ctrl-C."""
    shop = SimulatedShop.of(0)
    clients = [Client(service.address) for service in services]
    try:
        clients[0].create(NAME, **CONFIGURATION)
    except Conflict:
        print(f"going on with the recommender {NAME} that is there", flush=True)
    shoppers = Shoppers(shop, [client.recommender(NAME) for client in clients])
    shoppers.open()
    even, best = bounds(shop)
    print(f"\nWatch it learn: {services[0].address}/#{NAME}   (Ctrl-C stops it)", flush=True)
    for other in services[1:]:
        print(f"The second replica: {other.address}/#{NAME}", flush=True)
    print(f"Random slates earn {even:.2f} clicks per visit here, the best possible {best:.2f}.\n", flush=True)
    with patient_interrupt(lambda: print("stopping", flush=True)) as stopping:
        begun = said = time.monotonic()
        while not stopping() and (seconds is None or time.monotonic() - begun < seconds):
            shoppers.visit()
            shoppers.send_due()
            now = time.monotonic()
            if now - said > SAY_EVERY:
                said = now
                print(shoppers.told(), flush=True)
            time.sleep(max(0.0, begun + shoppers.visits / rate - time.monotonic()))
    print(shoppers.told(), flush=True)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the demo."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cluster", action="store_true", help="PostgreSQL, two replicas and a learner")
    parser.add_argument("--db", type=Path, default=None, help="a SQLite file that stays; default: a temporary one")
    parser.add_argument("--port", type=int, default=8000, help="of the first API process")
    parser.add_argument("--rate", type=float, default=20.0, help="visits per second")
    parser.add_argument("--seconds", type=float, default=None, help="end by itself")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="neuclust-demo-") as folder:
        place = Path(folder)
        made = (
            cluster(place, options.port)
            if options.cluster
            else one_process(options.db or place / "shop.db", options.port)
        )
        print("starting the service …", flush=True)
        try:
            with made as services:
                play(services, options.rate, options.seconds)
        except NeuclustError as error:
            sys.exit(f"serve_demo: {error}")
    print("stopped", flush=True)


if __name__ == "__main__":
    main()
