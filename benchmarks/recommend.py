"""How long does a recommendation take, where does the time go, and what do many at once save?

    python -m benchmarks.recommend [--policies linucb auto ...] [--quick] [--json FILE]

A simulated shop (`benchmarks.shops`, linear): 1,000 items, 300 of them eligible in each request, slates of 5, features
as inferred (128). After `warm_up()` and some requests with feedback, blocks of 64 requests are answered twice in turn,
one after another and by one call of `recommend_many`; the ratio is the median over blocks of one time by the other.
Times are milliseconds of processor time per request, and of the clock where named so: on a busy machine only the
former means something. The split is by the clock, as shares. The first request is timed in two processes of their own,
without and with `warm_up()`; it includes fixing the schema.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

from benchmarks.shop import ITEM_ID, SLATE_SIZE, USER_ID, Shop
from benchmarks.shops import SHOPS
from benchmarks.tables import described, machine, markdown, one_thread, write_record
from neuclust import Recommender
from neuclust.recommender import recommender
from neuclust.recommender.chooser import Chooser
from neuclust.recommender.learner import Learner

POLICIES = ("linucb", "auto:linear", "auto", "popular", "uniform")
BLOCK = 64
PARTS = ("request", "features", "select", "books")  # of a recommendation

Arguments = dict[str, Any]


@dataclass(frozen=True)
class Figures:
    """Milliseconds per request of a policy, shares of the time, and milliseconds of the first calls."""

    policy: str
    recommend: float
    recommend_clock: float
    many: float
    ratio: float
    feedback: float
    shares: dict[str, float]
    first: dict[str, float]


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure every policy and print one table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--policies", nargs="+", default=POLICIES)
    parser.add_argument("--learn", type=int, default=200, help="requests with feedback before the clock starts")
    parser.add_argument("--blocks", type=int, default=12, help=f"of {BLOCK} requests")
    parser.add_argument("--quick", action="store_true", help="few requests, and no processes of their own")
    parser.add_argument("--first", choices=("cold", "warm"), help=argparse.SUPPRESS)  # what a child measures
    parser.add_argument("--json", type=Path, default=None, help="where the figures go")
    options = parser.parse_args(arguments)
    one_thread()
    if options.first is not None:
        print(json.dumps(first_calls(options.policies[0], warm=options.first == "warm")))
        return
    learn, blocks = (20, 2) if options.quick else (options.learn, options.blocks)
    about = machine("numba")
    print(described(about), flush=True)
    found = []
    for policy in options.policies:
        found.append(measured(policy, learn, blocks, first={} if options.quick else firsts(policy)))
        print(f"{policy}: {found[-1].recommend:.2f} ms", file=sys.stderr, flush=True)
    print(table(found))
    record = {"machine": about, "policies": [asdict(each) for each in found]}
    write_record(options.json, {"command": "python -m benchmarks.recommend", **record})


def measured(policy: str, learn: int, blocks: int, first: dict[str, float]) -> Figures:
    """The figures of one policy, from one recommender."""
    shop = SHOPS["linear"](0)
    made = opened(shop, policy)
    made.warm_up()
    heard = []
    for t in range(1, learn + 1):
        choice = made.recommend(**asked(shop, t))
        heard.append(_spent(lambda: made.feedback(choice.id, {choice.items[0]: 1.0}))[0])  # noqa: B023 (at once)
    requests = [asked(shop, learn + t) for t in range(1, BLOCK * blocks + 1)]
    single, clock, many, ratios = [], [], [], []
    for start in range(0, len(requests), BLOCK):
        block = requests[start : start + BLOCK]
        times = [_spent(lambda: made.recommend(**request)) for request in block]  # noqa: B023 (at once)
        together = _spent(lambda: made.recommend_many(block))[0] / BLOCK  # noqa: B023 (at once)
        single += [processor for processor, _ in times]
        clock += [wall for _, wall in times]
        many.append(together)
        ratios.append(statistics.mean(processor for processor, _ in times) / together)
    with split() as spent:
        for request in requests[:BLOCK]:
            made.recommend(**request)
    median = statistics.median
    return Figures(policy, median(single), median(clock), median(many), median(ratios), median(heard), spent, first)


def opened(shop: Shop, policy: str) -> Recommender:
    """A recommender of the shop's raw tables, told nothing."""
    return Recommender(shop.items, ITEM_ID, users=shop.users, user_id=USER_ID, slate_size=SLATE_SIZE, policy=policy)


def asked(shop: Shop, t: int) -> Arguments:
    request = shop.request(t)
    return {"user": request.user, "eligible": request.eligible, "context": request.context}


def _spent(call: Callable[[], object]) -> tuple[float, float]:
    """Milliseconds of the processor and of the clock."""
    processor, clock = time.process_time(), time.perf_counter()
    call()
    return 1e3 * (time.process_time() - processor), 1e3 * (time.perf_counter() - clock)


@contextmanager
def split() -> Iterator[dict[str, float]]:
    """Shares of the time of `recommend` by part, filled in at the end."""
    spent: dict[str, float] = defaultdict(float)
    shares: dict[str, float] = {}
    places = [
        (recommender, "read_request", "request"),
        (recommender, "offer", "request"),
        (Chooser, "user_row", "features"),
        (Chooser, "_rows", "features"),
        (Learner, "select", "select"),
        (Recommender, "recommend", "all"),
    ]
    patches = [patch.object(owner, name, _timed(getattr(owner, name), part, spent)) for owner, name, part in places]
    for each in patches:
        each.start()
    try:
        yield shares
    finally:
        for each in patches:
            each.stop()
    spent["books"] = spent["all"] - sum(spent[part] for part in PARTS[:-1])
    shares.update({part: spent[part] / spent["all"] for part in PARTS})


def _timed(function: Callable[..., Any], part: str, spent: dict[str, float]) -> Callable[..., Any]:
    def timed(*args: Any, **kwargs: Any) -> Any:
        start = time.perf_counter()
        result = function(*args, **kwargs)
        spent[part] += time.perf_counter() - start
        return result

    return timed


# --- first calls ------------------------------------------------------------------------------------------------------


def first_calls(policy: str, warm: bool) -> dict[str, float]:
    """Milliseconds of the clock of `warm_up`, of the first and the third recommendation, and of the first feedback."""
    shop = SHOPS["linear"](0)
    made = opened(shop, policy)
    found = {"warm_up": _spent(made.warm_up)[1]} if warm else {}
    for t, name in ((1, "first"), (2, "second"), (3, "third")):
        request = asked(shop, t)
        start = time.perf_counter()
        choice = made.recommend(**request)
        found[name] = 1e3 * (time.perf_counter() - start)
        found[f"{name} feedback"] = _spent(lambda: made.feedback(choice.id, {choice.items[0]: 1.0}))[1]  # noqa: B023
    return found


def firsts(policy: str) -> dict[str, float]:
    """The same from two fresh processes, without and with `warm_up`."""
    found: dict[str, float] = {}
    for way in ("cold", "warm"):
        words = [sys.executable, "-m", "benchmarks.recommend", "--policies", policy, "--first", way]
        done = subprocess.run(words, capture_output=True, text=True, check=True)
        figures: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
        found |= {f"{name}, {way}": value for name, value in figures.items()}
    return found


# --- the table --------------------------------------------------------------------------------------------------------


def table(found: Sequence[Figures]) -> str:
    """All policies, a row each."""
    header = ["policy", "recommend", "clock", f"of {BLOCK} at once", "ratio", "feedback", *PARTS]
    rows = [
        [
            each.policy, *(f"{value:.2f}" for value in (each.recommend, each.recommend_clock, each.many)),
            f"{each.ratio:.1f}", f"{each.feedback:.2f}", *(f"{each.shares[part]:.0%}" for part in PARTS),
        ]
        for each in found
    ]  # fmt: skip
    text = markdown(header, rows)
    if not all(each.first for each in found):
        return text
    names = (
        "first, cold",
        "first feedback, cold",
        "warm_up, warm",
        "first, warm",
        "second, warm",
        "first feedback, warm",
    )
    first = [[each.policy, *(f"{each.first[name]:.0f}" for name in names)] for each in found]
    return f"{text}\n\n{markdown(['policy', *names], first)}"


if __name__ == "__main__":
    main()
