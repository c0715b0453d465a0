"""How fast a learner catches up: events of a log folded per second, and what states and models cost.

    python -m benchmarks.fold_speed [--policy linucb] [--decisions 2000] [--items 10000]

A log of decisions (300 eligible items, slates of 3) with one feedback each is written first, by a model that has
learned nothing; then it is folded, and state and model are written once.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np

from neuclust.randomness import stream
from neuclust.recommender.chooser import Chooser, Place, offer
from neuclust.recommender.requests import read_request
from neuclust.serve import events
from neuclust.serve.configuration import Configuration
from neuclust.serve.fold.fold import Fold
from neuclust.serve.fold.tables import Tables
from neuclust.serve.store.chain import START, chained
from neuclust.serve.store.contract import Event, Row

ELIGIBLE, WINDOW = 300, 3600.0


def written(given: list[Event]) -> list[Row]:
    """Rows as a store gives them, half a millisecond apart."""
    rows, before = [], START
    for seq, event in enumerate(given, start=1):
        now = 1e9 + seq / 2_000
        hashed = chained(before, seq, event.kind, now, event.key, b"")
        told = (event.payload, event.key, event.request, event.digest, event.user)
        rows.append(Row(seq, event.kind, now, *told, hashed))
        before = hashed
    return rows


def stocked(policy: str, items: int) -> list[Event]:
    """The configuration, items of four columns and 1,000 users of three."""
    rng = stream(1, "fold speed")
    goods: dict[str, Any] = {
        f"i{at}": {"price": float(rng.gamma(2.0, 20.0)), "category": f"c{rng.integers(12)}",
                   "brand": f"b{rng.integers(30)}", "stars": float(rng.uniform(1, 5))}
        for at in range(items)
    }  # fmt: skip
    people: dict[str, Any] = {
        f"u{at}": {"age": int(rng.integers(18, 80)), "segment": f"s{rng.integers(5)}", "city": f"t{rng.integers(20)}"}
        for at in range(1_000)
    }
    configuration = Configuration.from_json({"slate_size": 3, "policy": policy, "window": WINDOW, "exploration": 0.1})
    return [
        events.config_event(configuration), *events.items_events(goods), *events.users_events(people),
        events.freeze_event({"hour": 12.0, "device": "phone"}),
    ]  # fmt: skip


def decided(tables: Tables, decisions: int) -> list[Event]:
    """Decisions, each followed by what came back."""
    assert tables.frozen is not None
    frozen, rng, made = tables.frozen, stream(2, "fold speed"), []
    chooser = Chooser(frozen.schema, frozen.stock.catalogue, frozen.stock.users, frozen.learner)
    ids = frozen.stock.catalogue.ids()
    for at in range(decisions):
        eligible = [ids[place] for place in rng.choice(len(ids), min(ELIGIBLE, len(ids)), replace=False).tolist()]
        context = {"hour": float(rng.integers(24)), "device": ["phone", "desk"][at % 2]}
        request = read_request(f"u{rng.integers(1_000)}", {"context": context, "eligible": eligible}, 3)
        found = offer(request, frozen.stock.catalogue)
        (chosen,) = chooser.choose([request], [found], [chooser.user_row(request)], [Place(1, at)])
        choice = chosen.choice(f"d{at}", request, 0.0, "p", 0)
        entries = {"arm": "live", "version": 1, "expires_at": 2e9}
        made.append(events.decision_event(choice, events.Asked(), **entries))
        clicks = {str(item): 1.0 for item in choice.items if rng.random() < 0.2}
        made.append(events.feedback_event(f"f{at}", choice.id, clicks, {}, str(request.user), b""))
    return made


def measured(policy: str, items: int, decisions: int) -> dict[str, Any]:
    """Events per second of tables and of decisions with feedback; seconds and bytes of a state and a model."""
    stock = stocked(policy, items)
    tables = Tables.begin()
    for row in written(stock):
        tables.apply(row)
    rows = written([*stock, *decided(tables, decisions)])
    fold, parts, seconds = Fold.begin(), (rows[: len(stock)], rows[len(stock) :]), []
    for part in parts:
        start = time.perf_counter()
        for row in part:
            fold.apply(row)
        seconds.append(time.perf_counter() - start)
    found: dict[str, Any] = {
        "policy": policy, "items": items, "decisions": decisions, "stock seconds": round(seconds[0], 2),
        "events per second": round(len(parts[1]) / seconds[1]), "lessons per second": round(decisions / seconds[1]),
    }  # fmt: skip
    for name, make in (("state", fold.state), ("model", fold.model)):
        start = time.perf_counter()
        size = len(make())
        found |= {f"{name} seconds": round(time.perf_counter() - start, 3), f"{name} bytes": size}
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--policy", action="append")
    parser.add_argument("--decisions", type=int, default=2_000)
    parser.add_argument("--items", type=int, default=10_000)
    given = parser.parse_args()
    np.seterr(all="raise", under="ignore")
    for policy in given.policy or ["linucb", "auto"]:
        for name, value in measured(policy, given.items, given.decisions).items():
            print(f"{name}: {value}")


if __name__ == "__main__":
    main()
