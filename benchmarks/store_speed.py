"""How many events per second does a store make durable, in groups and one by one, and how long does a group take?

    python -m benchmarks.store_speed [--groups 300] [--json FILE]

Events have keys, request ids, users and payloads of 400 bytes. Beside each group size stand the milliseconds of a group
(median and 99th percentile), the floor (a bare `fsync` of as many bytes in one file), and events read per second; the
load average tells whether other processes had the cores.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.store_kills import database
from neuclust.serve.store.contract import DECISION, Event
from neuclust.serve.store.opening import open_store

PAYLOAD = 400


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print and keep."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--groups", type=int, default=300)
    parser.add_argument("--json", type=Path, metavar="FILE")
    options = parser.parse_args(arguments)
    busy = {"cores": os.cpu_count(), "load average at the start": round(os.getloadavg()[0], 1)}
    found: dict[str, object] = {"machine": busy}
    found |= {kind: measured(kind, options.groups) for kind in ("sqlite", "postgres")}
    print(json.dumps(found, indent=1))
    if options.json is not None:
        found["command"] = f"python -m benchmarks.store_speed --groups {options.groups} --json {options.json}"
        options.json.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    return 0


def measured(kind: str, groups: int) -> dict[str, dict[str, float]]:
    """Figures of one kind of store."""
    found = {}
    with database(kind) as (address, _):
        store = open_store(address)
        for size in (1, 100):
            id = store.create(f"groups of {size}", b"{}").id
            seconds = []
            for group in range(groups):
                events = [event(f"{group}-{place}") for place in range(size)]
                began = time.perf_counter()
                store.append({id: events})
                seconds.append(time.perf_counter() - began)
            began = time.perf_counter()
            rows = store.read(id, 0, groups * size + 1)
            read = len(rows) / (time.perf_counter() - began)
            found[f"groups of {size}"] = summary(seconds, size) | {"events read per second": round(read)}
        store.close()
    return found


def event(name: str) -> Event:
    return Event(DECISION, os.urandom(PAYLOAD), f"d{name}", f"r{name}", os.urandom(32), f"u{name[-2:]}")


def summary(seconds: list[float], size: int) -> dict[str, float]:
    """Events per second, and milliseconds of a group beside those of the floor."""
    ordered, floor = sorted(seconds), sorted(synced(len(seconds), size))
    return {
        "events per second": round(size * len(seconds) / sum(seconds)),
        "median ms": round(1000 * ordered[len(ordered) // 2], 2),
        "p99 ms": round(1000 * ordered[int(0.99 * len(ordered))], 2),
        "floor median ms": round(1000 * floor[len(floor) // 2], 2),
        "floor p99 ms": round(1000 * floor[int(0.99 * len(floor))], 2),
    }


def synced(times: int, size: int) -> list[float]:
    """Seconds of a write of a group's bytes to a file that is then made durable."""
    content = bytes(PAYLOAD * size)
    seconds = []
    with tempfile.TemporaryFile() as file:
        for _ in range(times):
            began = time.perf_counter()
            os.write(file.fileno(), content)
            os.fsync(file.fileno())
            seconds.append(time.perf_counter() - began)
    return seconds


if __name__ == "__main__":
    sys.exit(main())
