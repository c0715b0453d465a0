"""Whole services killed under load, on both kinds of store; and that the harness would see what went wrong."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from running_service import launched_warm

from benchmarks import serve_ledger
from benchmarks.serve_kills import ANSWERS, NAME, drain, measured
from benchmarks.serve_ledger import Ledger, faults
from neuclust.serve.store.contract import Row, Store
from tools.own_service import OwnService

STORES = ("sqlite", "postgres")


def check(found: dict[str, Any], kills: int) -> None:
    assert found["faults"] == []
    assert sum(found["killed"].values()) == kills
    assert found["acknowledged_decisions"] + found["acknowledged_feedback"] >= ANSWERS[0] * kills  # kills under load
    assert found["lessons"] >= 0.9 * found["acknowledged_feedback"]


@pytest.mark.parametrize("store", STORES)
def test_killed_services_lose_nothing_and_learn_nothing_twice(store: str) -> None:
    """Fails when an acknowledged event is lost, one is learned twice, or replay makes another model."""
    check(measured(store, 5, launch=launched_warm), 5)


@pytest.mark.soak
@pytest.mark.parametrize("store", STORES)
def test_many_killed_services_lose_nothing(store: str, report_counts: Callable[..., None]) -> None:
    """Fails when one of 60 kills loses an acknowledged event, or has one learned twice."""
    found = measured(store, 60)
    check(found, 60)
    kept = found["acknowledged_decisions"] + found["acknowledged_feedback"]
    report_counts(f"kills of the whole service on {store}", kills=60, acknowledged=kept, lost=0)


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Ledger]:
    """The database of a service that ended in order, and what its client was told."""
    from neuclust.client import Client

    db, ledger = f"sqlite:{tmp_path_factory.mktemp('ledger') / 'shop.db'}", Ledger()
    service = OwnService(db, launch=launched_warm)
    try:
        service.start()
        shop = Client(service.address).create(NAME, slate_size=2, policy="linucb")
        shop.put_items([{"id": f"i{at}", "price": at} for at in range(6)])
        ledger.stocked("i5")
        for at in range(8):
            answer = shop.recommend(f"u{at}", request_id=f"r{at}")
            ledger.decided(f"r{at}", answer.decision_id, answer.items)
            ledger.heard(shop.feedback(answer.decision_id, {answer.items[0]: 1.0}).feedback_id, answer.decision_id)
        drain(shop)
    finally:
        service.stop()
    return db, ledger


def copied(ledger: Ledger) -> Ledger:
    return Ledger(dict(ledger.decisions), dict(ledger.feedback), set(ledger.items))


def test_what_was_told_is_kept(played: tuple[str, Ledger]) -> None:
    """Fails when the harness finds a fault where there is none."""
    found, told = faults(played[0], NAME, played[1])
    assert found == []
    assert told["lessons"] == 8


def test_what_is_lost_is_found(played: tuple[str, Ledger]) -> None:
    """Fails when an acknowledged event could be lost unseen."""
    db, ledger = played
    spoils: list[tuple[Callable[[Ledger], object], str]] = [
        (lambda told: told.decided("r99", "d99", ["i1"]), "decision d99 of request r99 was acknowledged and is lost"),
        (lambda told: told.decisions.update(r1=("d1", ("i1", "i2"))), "request r1 was answered by d1"),
        (lambda told: told.heard("f99", "d1"), "feedback f99 was acknowledged and is lost"),
        (lambda told: told.stocked("i99"), "item i99 was acknowledged and is lost"),
        (lambda told: told.decided("r1", "other", ["i1"]), "request r1 got"),
    ]
    for spoil, sentence in spoils:
        told = copied(ledger)
        spoil(told)
        (found,) = faults(db, NAME, told)[0]
        assert found.startswith(sentence)
    assert faults(db, "nobody", ledger)[0] == ["the recommender nobody is gone"]


def test_what_is_there_twice_or_out_of_order_is_found(
    played: tuple[str, Ledger], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fails when a log with gaps or repeats, or lessons learned twice, passes."""
    real = serve_ledger.events

    def spoiled(change: Callable[[list[Row]], list[Row]]) -> str:
        with monkeypatch.context() as patch:
            patch.setattr(serve_ledger, "events", lambda store, id: iter(change(list(real(store, id)))))
            return "\n".join(faults(played[0], NAME, played[1])[0])

    assert "is in the log 2 times" in spoiled(lambda rows: [*rows, replace(rows[-1], seq=len(rows) + 1)])
    assert "stands where" in spoiled(lambda rows: [rows[0], *rows[2:]])
    assert "goes back" in spoiled(lambda rows: [*rows[:-1], replace(rows[-1], time=0.0)])

    told = serve_ledger.told_of

    def again(store: Store, id: int) -> dict[int, Any]:
        found = told(store, id)
        return found | {10**9: next(content for content in found.values() if content.get("lessons"))}

    with monkeypatch.context() as patch:
        patch.setattr(serve_ledger, "told_of", again)
        assert "was learned 2 times" in "\n".join(faults(played[0], NAME, played[1])[0])
    with monkeypatch.context() as patch:
        patch.setattr(serve_ledger, "told_of", lambda store, id: {})
        assert "has told nothing of feedback" in "\n".join(faults(played[0], NAME, played[1])[0])
