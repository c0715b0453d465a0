"""The exported log is one that the evaluation package reads, with the values of a recommender's own log."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from simulated_service import ITEMS, USERS, stored, visits
from small_shop import Clock

from neuclust.evaluation.candidates import Candidate
from neuclust.evaluation.evaluate import Question, evaluate
from neuclust.evaluation.sources import open_source
from neuclust.experiment.contestants import parse_contestants
from neuclust.recommender.log.rounds import RecommenderLog, logged_decisions
from neuclust.recommender.recommender import Recommender
from neuclust.serve import events
from neuclust.serve.events import choice_of, decode
from neuclust.serve.fold.export import exported
from neuclust.serve.learner.lease import Lease
from neuclust.serve.learner.loop import Loop
from neuclust.serve.learner.publishing import Pace
from neuclust.serve.store.contract import DECISION, FEEDBACK, FREEZE, Head, Store

QUICK = Pace(publish=0.0, share=0.0, state=0.0, progress=0.0, summary=0.0, heartbeat=60.0)
SQLITE = pytest.mark.parametrize("store_address", ["sqlite"], indirect=True)


def learned(store: Store) -> Head:
    loop = Loop(store, Lease(store), QUICK)
    while loop.turn() == 0.0:
        pass
    loop.finish()
    (head,) = store.heads()
    return head


def written(entries: list[dict[str, Any]], path: Path) -> Path:
    path.write_text("".join(json.dumps(entry) + "\n" for entry in entries))
    return path


def seen(log: RecommenderLog) -> list[Any]:
    """Every decision as evaluation gets it."""
    return [
        (each.id, each.slate.tolist(), each.round.arm_ids.tolist(), np.nan_to_num(each.rewards, nan=-1).tolist(),
         None if each.propensities is None else each.propensities.tolist(), each.design, each.sizes)
        for each in log.decisions()
    ]  # fmt: skip


@SQLITE
def test_an_exported_log_has_the_values_of_a_recommenders_own(store: Store, tmp_path: Path) -> None:
    """Fails when slates, rewards, propensities or rounds differ from the log of a Recommender fed the same calls."""
    visits(stored(store), 40)
    head = learned(store)
    served = logged_decisions(written(list(exported(store, head)), tmp_path / "service.jsonl"))
    clock = Clock()
    items = [{"item_id": id, **values} for id, values in ITEMS.items()]
    users = [{"user_id": id, **values} for id, values in USERS.items()]
    shop = Recommender(
        items, "item_id", users=users, user_id="user_id", slate_size=3, policy="linucb", exploration=0.3,
        remember=1_000, clock=clock, log=tmp_path / "own.jsonl",
    )  # fmt: skip
    for row in store.read(head.id, 0, 10_000, [FREEZE, DECISION, FEEDBACK]):
        content, clock.now = decode(row.payload), row.time
        if row.kind == FREEZE:
            shop.schema, shop.learner, shop.stock = shop._frozen(events.row_of(content))
        elif row.kind == DECISION:
            shop.accept(choice_of(content))
        elif "nothing" not in content["items"]:
            details = {name: content[name] for name in ("partial",) if name in content}
            shop.feedback(content["decision"], content["items"], feedback_id=row.key, **details)
    own = logged_decisions(tmp_path / "own.jsonl")
    assert seen(served) == seen(own)
    assert len(seen(served)) == 40


@SQLITE
def test_policies_are_judged_from_an_exported_log(store: Store, tmp_path: Path) -> None:
    """Fails when `neuclust evaluate` cannot read the log, or has no value with an interval for a policy."""
    service = stored(store, exploration=0.8)
    visits(service, 60)
    for number in range(60):
        service.hear(service.made[number], {}, f"end-{number}")  # those that were open, and some repeats
    head = learned(store)
    source = open_source(written(list(exported(store, head)), tmp_path / "log.jsonl"), None, 0, lambda _: None, ())
    (popular,) = parse_contestants(["popular"])
    found = evaluate(source.log, [Candidate(popular)], Question(reward="sum", fit=0.3, unseen="drop"))
    (judged,) = found.policies
    assert judged.policy == "popular"
    low, high = judged.interval
    assert low <= judged.estimate <= high


def test_what_is_removed_refused_or_dropped_is_exported_right(store: Store, tmp_path: Path) -> None:
    """Fails when a log with removals, refusals, a history and an erased beginning cannot be read, or in parts."""
    service = stored(store)
    visits(service, 5)
    service.write([events.items_removed_event(["s1", "s1", "unknown"]), *events.users_removed_events(["u1", "nobody"])])
    service.write([events.items_removed_event(["s1"])])
    rows: list[dict[str, Any]] = [{"decision": "h", "user": "u2", "item": "s2", "slot": 1, "reward": 1.0, "hour": 3.0}]
    service.write([events.history_event(rows, {"context": ["hour"]})])
    head = learned(store)
    whole = list(exported(store, head))
    assert [entry["ids"] for entry in whole if entry["event"] == "removed"] == [["s1"]]
    assert [entry["ids"] for entry in whole if entry["event"] == "users-removed"] == [["u1"]]
    assert logged_decisions(written(whole, tmp_path / "whole.jsonl")).warmed == 1
    cut = whole[len(whole) // 2]["seq"]
    later = list(exported(store, head, cut))
    assert later == [entry for entry in whole if entry["seq"] > cut]
    service.write([events.erasure_event("e", "u3")])
    visits(service, 5, seed=1)
    head = learned(store)
    assert head.base > 0
    log = logged_decisions(written(list(exported(store, head)), tmp_path / "after.jsonl"))
    assert len(seen(log)) == 5
    assert "u3" not in (tmp_path / "after.jsonl").read_text().split('"event": "decision"')[0]
