"""What became of every message of a decision: those that are acknowledged and do not count say so."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from local_service import LocalService, local_service


@pytest.fixture
def local(tmp_path: Path) -> Iterator[LocalService]:
    with local_service(tmp_path) as found:
        found.make("shop", policy="linucb", window=3600.0, remember=2)
        yield found


def _slate(local: LocalService, user: str = "u1") -> tuple[str, str]:
    choice = local.call("POST", "shop/recommendations", {"user": user}, 200)
    return choice["decision_id"], choice["slate"][0]["item"]


def _say(local: LocalService, decision: str, items: dict[str, float], **more: Any) -> None:
    local.call("POST", "shop/feedback", {"decision_id": decision, "items": items, **more}, 202)


def _fates(local: LocalService, decision: str) -> list[tuple[str, str | None]]:
    found = local.call("GET", f"shop/decisions/{decision}", status=200)["feedback"]
    return [(each["status"], each["reason"]) for each in found]


def test_a_message_after_the_last_one_is_told_as_refused(local: LocalService) -> None:
    """Fails when a message that changed nothing looks like one that was learned, or nobody counts it."""
    decision, item = _slate(local)
    _say(local, decision, {item: 1.0})
    assert _fates(local, decision) == [("waiting", "the learner has not come to it yet")]
    local.learn()
    _say(local, decision, {item: 0.0})
    _say(local, decision, {item: 1.0}, feedback_id="again")
    local.learn()
    (first, second, third) = _fates(local, decision)
    assert first == ("learned", None)
    assert second[0] == "refused"
    assert "expected no other values, as it was closed with slot 1: 1" in str(second[1])
    assert third[0] == "duplicate"
    learner = local.call("GET", "shop/overview", status=200)["learner"]
    assert (learner["refused"], learner["late"]) == (1, 0)


def test_partial_messages_wait_until_their_decision_is_learned(local: LocalService) -> None:
    """Fails when a message that may still be added to is told as learned, or as waiting for ever."""
    decision, item = _slate(local)
    _say(local, decision, {item: 1.0}, partial=True)
    local.learn()
    ((status, reason),) = _fates(local, decision)
    assert status == "waiting"
    assert "until the decision's window ends" in str(reason)
    _say(local, decision, {item: 1.0}, feedback_id="last")
    local.learn()
    assert [status for status, _ in _fates(local, decision)] == ["learned", "learned"]


def test_a_window_that_ended_has_learned_what_was_said(local: LocalService) -> None:
    """Fails when a partial message waits though its decision was learned at the end of its window."""
    local.call("PATCH", "shop", {"window": 0.05}, 200)
    decision, item = _slate(local)
    _say(local, decision, {item: 1.0}, partial=True)
    local.learn()
    while _fates(local, decision)[0][0] != "learned":  # the learner writes the end of the window into the log
        local.learn()
    _say(local, decision, {item: 0.0})
    local.learn()
    _, (status, reason) = _fates(local, decision)
    assert status == "late"
    assert "give a longer `window`" in str(reason)
    assert local.call("GET", "shop/overview", status=200)["learner"]["late"] == 1


def test_a_message_of_a_forgotten_decision_is_told_as_refused(local: LocalService) -> None:
    """Fails when learning refused what the service had acknowledged, and neither says so."""
    decision, item = _slate(local)
    _say(local, decision, {item: 1.0})
    for at in range(3):  # two closed decisions are remembered
        other, shown = _slate(local, f"v{at}")
        _say(local, other, {shown: 1.0})
    _say(local, decision, {item: 0.0})
    local.learn()
    (first, (status, reason)) = _fates(local, decision)
    assert first == ("learned", None)
    assert status == "refused"
    assert "among the last 2 closed ones" in str(reason)
    assert local.call("GET", "shop/overview", status=200)["learner"]["refused"] == 1
