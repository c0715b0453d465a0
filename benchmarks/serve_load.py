"""How many recommendations and feedbacks does the service take, how quickly, and what does it do with too many?

    python -m benchmarks.serve_load recommend --policy auto --rate 100 --seconds 300 --json docs/records/serve_auto.json
    python -m benchmarks.serve_load recommend --policy linucb --rate 300 --seconds 300
    python -m benchmarks.serve_load recommend --policy auto --rate 40 --eligible 0 --seconds 60
    python -m benchmarks.serve_load feedback --policy linucb --rate 2000 --seconds 60
    python -m benchmarks.serve_load overload --policy auto --times 5 --seconds 60
    python -m benchmarks.serve_load upload --items 100000

One service with its learner on loopback, and the load from a process of its own (`benchmarks.http_load`: open loop,
latencies from the time a request was due). 10,000 items, slates of 5, feedback on half of the slates. The floor is
scoring alone: a reader of the front door in one process, asked the same.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks.http_load import Spec
from benchmarks.serve_runs import NAME, Record, Running, Watch, drained, floor, running, send, wait_for
from benchmarks.serve_shop import Requests, items
from benchmarks.tables import machine, markdown, write_record
from neuclust.client import ServiceError

CALM = 0.5  # of the capacity: what normal load is in the overload scenario
BACK = 5.0  # seconds by which it is normal again
LARGEST_BATCH = 500


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure one scenario and print its table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("scenario", choices=sorted(SCENARIOS))
    parser.add_argument("--store", choices=("sqlite", "postgres"), default="sqlite")
    parser.add_argument("--policy", default="auto")
    parser.add_argument("--rate", type=float, default=100.0, help="per second")
    parser.add_argument("--seconds", type=float, default=300.0)
    parser.add_argument("--items", type=int, default=10_000)
    parser.add_argument("--users", type=int, default=1_000)
    parser.add_argument("--eligible", type=int, default=300, help="0: all")
    parser.add_argument("--times", type=float, default=5.0, help="overload: how many times the capacity")
    parser.add_argument("--no-floor", action="store_true")
    parser.add_argument("--json", type=Path, default=None, help="where the figures go")
    options = parser.parse_args(arguments)
    about = machine("uvicorn", "fastapi", "apsw")
    found = SCENARIOS[options.scenario](options)
    words = " ".join(arguments if arguments is not None else sys.argv[1:])
    write_record(options.json, {"command": f"python -m benchmarks.serve_load {words}", "machine": about, **found})


def _spec(options: argparse.Namespace, made: Running, **more: Any) -> Spec:
    return Spec(
        made.first.port, NAME, options.rate, options.seconds, options.items, options.users, options.eligible or None,
        **more,
    )  # fmt: skip


def recommend(options: argparse.Namespace) -> Record:
    """Slates at a rate, feedback on half of them, the learner running."""
    with running(options.store, options.policy, options.items, options.users) as made:
        with Watch(made).watching() as samples:
            load = send(_spec(options, made))
        drain = wait_for(lambda: drained(made), 600.0)
    least = {} if options.no_floor else floor(options.policy, options.items, options.users, options.eligible or None)
    found = {**load, "floor": least, "drain_s": round(drain, 1), **_learning(samples), "samples": samples}
    print(_latencies(options, found))
    return found


def feedback(options: argparse.Namespace) -> Record:
    """Feedback in batches on decisions that were made before."""
    count = int(options.rate * options.seconds)
    with running(options.store, options.policy, options.items, options.users, window=86_400.0) as made:
        known = _decisions(made, options, count)
        wait_for(lambda: drained(made), 1_200.0)
        before = made.progress()["lessons"]
        with Watch(made).watching() as samples:
            load = send(_spec(options, made, decisions=known))
        during = made.progress()["lessons"] - before
        drain = wait_for(lambda: drained(made), 1_800.0)
        learned = made.progress()["lessons"] - before
    told = {"learned_during": during, "learned": learned, "drain_s": round(drain, 1), **_learning(samples)}
    found = {**load, **told, "samples": samples}
    header = ["feedback/s", "p50 ms", "p99 ms", "statuses of batches", "lessons/s", "peak lag", "drain s"]
    each = found["feedback batches"]
    row = [f"{options.rate:g}", *_p(each), str(each["statuses"]), _rate(told), str(told["peak_lag"]), _s(drain)]
    print(markdown(header, [row], words=0))
    return found


def _decisions(made: Running, options: argparse.Namespace, count: int) -> list[tuple[str, str]]:
    """Decisions to give feedback on: id and first item."""
    asked = Requests(options.items, options.users, options.eligible or None, seed=2).arguments()
    known: list[tuple[str, str]] = []
    while len(known) < count:
        part = [asked[(len(known) + at) % len(asked)] for at in range(min(LARGEST_BATCH, count - len(known)))]
        for answer in made.shop.recommend_many(part):
            if isinstance(answer, ServiceError):
                time.sleep(0.05)
            else:
                known.append((answer.decision_id, answer.items[0]))
    return known


def overload(options: argparse.Namespace) -> Record:
    """Several times what it can hold for a while, between two times of normal load."""
    with running(options.store, options.policy, options.items, options.users) as made:
        spec = _spec(options, made)
        capacity = _capacity(spec)
        calm = replace(spec, rate=CALM * capacity, seconds=10.0, seed=3)
        before = send(calm)
        with Watch(made).watching() as samples:
            begun = time.monotonic()
            during = send(replace(spec, rate=options.times * capacity, seed=4))
            lasted = time.monotonic() - begun
            after = send(replace(calm, seed=5, seconds=15.0))
        back = _back_within(after["recommendations"], before["recommendations"])
    found = {
        "capacity": round(capacity, 1), "before": before, "during": during, "after": after, "back_s": back,
        "overload_s": round(lasted, 1),
        **_memory(samples, options.seconds), "samples": samples,
    }  # fmt: skip
    header = ["load", "per second", "sent", "statuses", "p50 ms", "p99 ms"]
    rows = []
    for name, part, rate in (("before", before, calm.rate), ("during", during, options.times * capacity),
                             ("after", after, calm.rate)):  # fmt: skip
        each = part["recommendations"]
        rows.append([name, f"{rate:.0f}", str(each["sent"]), str(each["statuses"]), *_p(each)])
    print(markdown(header, rows))
    print(f"back to normal after {back} s; memory {found['memory_first_mb']} MB at first, "
          f"{found['memory_last_mb']} MB at last, {found['memory_peak_mb']} MB at most")  # fmt: skip
    return found


def _capacity(spec: Spec) -> float:
    """Answers per second under a load that is surely too much."""
    answered = send(replace(spec, rate=600.0, seconds=10.0, seed=6, feedback=0.0))["recommendations"]
    by_second = [count for second, count in answered["answered_by_second"].items() if 2 <= int(second) < 9]
    return max(1.0, float(sum(by_second)) / max(1, len(by_second)))


def _back_within(after: Record, before: Record) -> float | None:
    """Seconds after the overload from which on every second's p99 is at most twice that of normal load, or 50 ms."""
    most = max(50.0, 2 * float(before["p99_ms"]))
    slow = [int(second) for second, p99 in after["p99_ms_by_second"].items() if p99 > most]
    return max(slow) + 1.0 if slow else 0.0


def upload(options: argparse.Namespace) -> Record:
    """How long a large catalogue takes, through the client, and when its last item can be recommended."""
    rows = items(options.items)
    with running(options.store, options.policy, 100, 100) as made:
        begun = time.monotonic()
        changes = made.shop.put_items(rows)
        took = time.monotonic() - begun
        last = rows[-1]["id"]
        seen = wait_for(lambda: made.shop.recommend(eligible=[last], k=1).items == [last], 60.0)
    print(markdown(["items", "seconds", "until recommended"], [[str(changes.rows), f"{took:.1f}", f"{seen:.2f}"]]))
    return {"rows": changes.rows, "seconds": round(took, 2), "until_recommended_s": round(seen, 2)}


# --- the tables -------------------------------------------------------------------------------------------------------


def _learning(samples: Sequence[Record]) -> Record:
    """Lessons per second while the load ran, and the largest lag."""
    known = [each for each in samples if "lag" in each]
    if len(known) < 2:
        return {"lessons_per_second": None, "peak_lag": None}
    first, last = known[0], known[-1]
    rate = (last["lessons"] - first["lessons"]) / (last["at"] - first["at"])
    return {"lessons_per_second": round(rate, 1), "peak_lag": max(each["lag"] for each in known)}


def _memory(samples: Sequence[Record], seconds: float) -> Record:
    """Memory of all processes in the first and the last fifth of the overload, and its peak."""
    inside = [each["memory_mb"] for each in samples if each["at"] <= seconds]
    part = max(1, len(inside) // 5)
    early, late = inside[part : 2 * part] or inside, inside[-part:]
    return {
        "memory_first_mb": round(sum(early) / len(early)), "memory_last_mb": round(sum(late) / len(late)),
        "memory_peak_mb": max(each["memory_mb"] for each in samples),
    }  # fmt: skip


def _latencies(options: argparse.Namespace, found: Record) -> str:
    header = ["policy", "eligible", "per second", "answered", "p50 ms", "p99 ms", "max ms", "errors", "floor ms",
              "floor/s", "feedback p99", "lessons/s", "peak lag"]  # fmt: skip
    each, least = found["recommendations"], found["floor"]
    errors = each["sent"] - each["statuses"].get("200", 0)
    row = [
        options.policy, str(options.eligible or options.items), f"{options.rate:g}",
        str(each["statuses"].get("200", 0)), *_p(each), str(each["max_ms"]), str(errors),
        str(least.get("median_ms", "-")), str(least.get("per_second", "-")), str(found["feedback"]["p99_ms"]),
        str(found["lessons_per_second"]), str(found["peak_lag"]),
    ]  # fmt: skip
    return markdown(header, [row])


def _p(each: Record) -> list[str]:
    return [str(each["p50_ms"]), str(each["p99_ms"])]


def _rate(told: Record) -> str:
    return str(told["lessons_per_second"])


def _s(seconds: float) -> str:
    return f"{seconds:.1f}"


SCENARIOS: dict[str, Callable[[argparse.Namespace], Record]] = {
    "recommend": recommend,
    "feedback": feedback,
    "overload": overload,
    "upload": upload,
}


if __name__ == "__main__":
    main()
