"""Going live safely: shadow, holdout, live and the fallback where the learner is down; warm start; erasure."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from running_service import RunningService, eventually, running
from stores import stop_outside_transactions

from neuclust.serve.store.opening import open_store


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningService]:
    with running(tmp_path_factory.mktemp("modes")) as found:
        yield found


def _ask(service: RunningService, name: str, **body: Any) -> Any:
    return service.call("POST", f"{name}/recommendations", body, 200)


def test_shadow_learns_from_the_callers_slate(service: RunningService) -> None:
    """Fails when shadow mode shows another slate than the caller's, or does not learn from it."""
    service.make("shadow", policy="linucb", mode="shadow")
    refused = service.call("POST", "shadow/recommendations", {"user": "u"}, 422)
    assert refused["field"] == "slate"
    choice = _ask(service, "shadow", user="u", slate=["i3", "i1"])
    assert [each["item"] for each in choice["slate"]] == ["i3", "i1"]
    assert choice["mode"] == "shadow"
    assert choice["policy"] == "caller"
    assert len(choice["suggested"]) == 3
    assert choice["slate"][0]["mean"] is None
    assert choice["slate"][0]["propensity"] is None
    service.call("POST", "shadow/feedback", {"decision_id": choice["decision_id"], "items": {"i3": 1.0}}, 202)
    eventually(lambda: service.call("GET", "shadow")["lessons"] == 1, "the caller's slate is learned")
    service.call("POST", "shadow/recommendations", {"slate": ["nobody"]}, 422)
    service.call("PATCH", "shadow", {"mode": "live"}, 200)
    live = _ask(service, "shadow", user="u")
    assert live["mode"] == "live"
    service.call("POST", "shadow/recommendations", {"slate": ["i1"]}, 422)


def test_a_holdout_keeps_its_users(service: RunningService) -> None:
    """Fails when a user changes sides, or the share of users that are held out is not the one declared."""
    service.make("held", policy="linucb", mode="holdout", holdout={"share": 0.3, "baseline": "random"})
    requests = [{"user": f"u{at % 60}"} for at in range(120)]
    results = service.call("POST", "held/recommendations:batch", {"requests": requests}, 200)["results"]
    modes = [each["mode"] for each in results]
    assert modes[:60] == modes[60:]
    assert 6 <= modes[:60].count("holdout") <= 32
    drawn = next(each for each in results if each["mode"] == "holdout")
    assert drawn["policy"] == "random"
    assert drawn["slate"][0]["propensity"] == pytest.approx(1 / 30)


def test_the_fallback_serves_where_the_learner_is_down(tmp_path: Path) -> None:
    """Fails when a model that is too old is served as if it were not, or the answer does not say so."""
    with running(tmp_path) as service:
        service.make("old", policy="linucb", fallback="random", max_age=0.5)
        assert _ask(service, "old")["mode"] == "live"
        found = subprocess.run(["pgrep", "-g", str(service.pid)], capture_output=True, text=True).stdout.split()
        children = [each for each in found if int(each) != service.pid]
        assert len(children) == 1, "no learner runs"
        with closing(open_store(service.db)) as store:
            stop_outside_transactions(int(children[0]), store)

        def fallen() -> bool:
            found = _ask(service, "old")
            return bool(found["mode"] == "fallback" and found["stale"] and found["policy"] == "random")

        eventually(fallen, "the fallback serves")
        os.kill(int(children[0]), signal.SIGCONT)
        eventually(lambda: _ask(service, "old")["mode"] == "live", "the model serves again")


def test_a_warm_start_is_learned(service: RunningService) -> None:
    """Fails when slates of another system are not learned, or wrong ones are taken."""
    service.make("warm", policy="popular")
    rows = [
        {"decision": at, "user": at % 3, "item": f"i{(at + slot) % 30}", "slot": slot, "reward": float(slot == 0)}
        for at in range(40)
        for slot in range(3)
    ]
    assert service.call("POST", "warm/history:batch", rows, 202)["decisions"] == 40
    eventually(lambda: service.call("GET", "warm")["lessons"] == 40, "the history is learned")
    service.call("POST", "warm/history:batch", [{**rows[0], "reward": 7.0}], 422)


def test_a_user_is_erased(service: RunningService) -> None:
    """Fails when an erased user's decisions can be read, or another user's cannot."""
    service.make("erasing", policy="linucb")
    service.call("PUT", "erasing/users/ann", {"age": 30}, 201)
    service.call("PUT", "erasing/users/bob", {"age": 40}, 201)
    hers, his = _ask(service, "erasing", user="ann", request_id="r-ann"), _ask(service, "erasing", user="bob")
    service.call("POST", "erasing/feedback", {"decision_id": hers["decision_id"], "items": {}}, 202)
    answer = service.call("DELETE", "erasing/users/ann/history")
    eventually(lambda: service.call("GET", f"erasing/erasures/{answer['erasure_id']}")["done"], "the erasure is done")
    assert service.call("GET", f"erasing/decisions/{hers['decision_id']}", status=410)["status"] == 410
    service.call("GET", f"erasing/decisions/{his['decision_id']}", status=200)
    assert [each["id"] for each in service.call("GET", "erasing/users")["users"]] == ["bob"]
    assert "ann" not in service.client.get("/v1/recommenders/erasing/log").text
    service.call("POST", "erasing/feedback", {"decision_id": hers["decision_id"], "items": {}, "feedback_id": "x"}, 410)


def test_a_version_is_pinned(service: RunningService) -> None:
    """Fails when a promoted version is not the one that is served, or learning stops."""
    service.make("pinned", policy="linucb")

    def learn() -> None:
        choice = _ask(service, "pinned")
        body = {"decision_id": choice["decision_id"], "items": {choice["slate"][0]["item"]: 1.0}}
        service.call("POST", "pinned/feedback", body, 202)
        service.learned("pinned")

    learn()
    eventually(lambda: service.call("GET", "pinned")["model_version"] > 0, "a first version is served")
    first = service.call("GET", "pinned")["model_version"]
    assert service.call("POST", f"pinned/versions/{first}:promote", status=200)["promoted"] == first
    service.call("POST", "pinned/versions/999:promote", status=404)
    for _ in range(3):
        learn()
    eventually(lambda: service.call("GET", "pinned/versions")["versions"][0]["version"] > first, "it goes on learning")
    assert _ask(service, "pinned")["model_version"] == first
    service.call("POST", "pinned/versions/latest:promote", status=200)
    eventually(lambda: _ask(service, "pinned")["model_version"] > first, "the latest version is served")


def test_everything_is_there_after_a_restart(tmp_path: Path) -> None:
    """Fails when a restart loses items, answers, feedback or what was learned."""
    with running(tmp_path) as service:
        service.make("kept", policy="linucb")
        service.call("PUT", "kept/users/u1", {"age": 3}, 201)
        body = {"user": "u1", "request_id": "r1"}
        choice = _ask(service, "kept", **body)
        said = {"decision_id": choice["decision_id"], "items": {}, "feedback_id": "f1"}
        service.call("POST", "kept/feedback", said, 202)
        service.learned("kept")
        before = service.call("GET", "kept")
        service.kill()
        service.start()
        assert _ask(service, "kept", **body) == choice
        assert service.call("POST", "kept/feedback", said, 200)["duplicate"]
        after = service.call("GET", "kept")
        assert (after["items"], after["users"], after["events"]) == (30, 1, before["events"])
        eventually(lambda: service.call("GET", "kept")["lessons"] == 1, "the lesson is there, once")
