"""Rewards that are money or grades: told in their own units over HTTP, kept on the policy's scale in the log."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from local_service import LocalService, local_service

from neuclust.serve.events import decode
from neuclust.serve.store.contract import DECISION

RANGES = [(0.0, 200.0), (-10.0, 10.0), (1.0, 5.0)]


@pytest.fixture
def local(tmp_path: Path) -> Iterator[LocalService]:
    with local_service(tmp_path) as found:
        yield found


def _earned(local: LocalService, span: tuple[float, float], requests: int = 40) -> list[list[float]]:
    """What was paid for the slots of so many slates, by request."""
    local.make("shop", policy="popular", reward_range=list(span), exploration=0.3)
    paid = []
    for at in range(requests):
        choice = local.call("POST", "shop/recommendations", {"user": f"u{at}"}, 200)
        values = [span[0] + (span[1] - span[0]) * ((at + slot) % 5) / 8 for slot in range(3)]
        items = {slot["item"]: value for slot, value in zip(choice["slate"], values, strict=True)}
        told = {"decision_id": choice["decision_id"], "items": items}
        local.call("POST", "shop/feedback", told, 202)
        paid.append(values)
    local.learn()
    return paid


@pytest.mark.parametrize("span", RANGES)
def test_the_overview_is_in_the_units_of_rewards(local: LocalService, span: tuple[float, float]) -> None:
    """Fails when what a request, a slot or an item earned is a share of the range, or is called clicks."""
    paid = _earned(local, span)
    found = local.call("GET", "shop/overview", status=200)
    per_request = sum(map(sum, paid)) / len(paid)
    (live,) = [row for row in found["comparison"] if row["arm"] == "live"]
    assert live["clicks"]["mean"] == pytest.approx(per_request)
    assert live["clicks"]["low"] < per_request < live["clicks"]["high"]
    assert live["reward"]["mean"] == pytest.approx(per_request / 3)
    digits = 1 if span[1] - span[0] > 10 else 2
    assert live["sentence"].startswith(f"live earns {per_request:.{digits}f} per request (".replace("-", "−"))
    assert found["series"]["live"][0]["mean"] == pytest.approx(per_request)
    slots = [sum(values[slot] for values in paid) / len(paid) for slot in range(3)]
    assert [slot["mean"] for slot in found["slots"]] == pytest.approx(slots)
    assert sum(item["clicks"] for item in found["items"]) == pytest.approx(sum(map(sum, paid)))
    assert sum(point["clicks"] for point in found["map"]["points"]) == pytest.approx(sum(map(sum, paid)))
    kept = {"low": span[0], "high": span[1], "slots": 3, "reward": "sum"}
    assert found["reward"] == {**kept, "clicks": False, "digits": digits}


@pytest.mark.parametrize("span", RANGES)
def test_answers_are_in_the_units_of_rewards_and_the_log_is_not(local: LocalService, span: tuple[float, float]) -> None:
    """Fails when a slot's mean is a share of the range in an answer, or money in the log, which learning reads."""
    _earned(local, span)
    low, width = span[0], span[1] - span[0]
    answer = local.call("POST", "shop/recommendations", {"user": "u1", "request_id": "r1"}, 200)
    assert local.call("POST", "shop/recommendations", {"user": "u1", "request_id": "r1"}, 200) == answer
    (row,) = local.store.latest(1, DECISION, 1)
    logged: dict[str, Any] = decode(row.payload)["choice"]
    assert all(0 <= mean <= 1 for mean in logged["means"])
    shown = [slot["mean"] for slot in answer["slate"]]
    assert shown == pytest.approx([low + width * mean for mean in logged["means"]])
    assert [slot["bonus"] for slot in answer["slate"]] == pytest.approx([width * each for each in logged["bonuses"]])
    found = local.call("GET", f"shop/decisions/{answer['decision_id']}", status=200)
    assert [slot["mean"] for slot in found["slate"]] == shown
    assert [reason["mean"] for reason in found["why"]["items"]] == pytest.approx(shown)
    local.learn()
    events = [json.loads(line) for line in local.client.get("/v1/recommenders/shop/log").text.splitlines()]
    exported = {event["id"]: event for event in events if event["event"] == "decision"}
    assert exported[answer["decision_id"]]["means"] == logged["means"]


def test_clicks_stay_clicks(local: LocalService) -> None:
    """Fails when the words or numbers of a shop with clicks are others than they were."""
    _earned(local, (0.0, 1.0))
    found = local.call("GET", "shop/overview", status=200)
    (live,) = [row for row in found["comparison"] if row["arm"] == "live"]
    assert live["sentence"].startswith(f"live earns {live['clicks']['mean']:.2f} clicks per request (")
    assert (found["reward"]["clicks"], found["reward"]["digits"]) == (True, 2)
