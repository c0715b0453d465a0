"""The client repeats what may be repeated, with the same ids, and raises the rest with the field's name."""

from __future__ import annotations

import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest
from scripted_server import DROP, Scripted, scripted

from neuclust.client import Client, Conflict, NotAllowed, NotFound, Refused, Retry, ServiceError, Unavailable
from neuclust.client.retrying import retry_after
from neuclust.errors import ConfigError, DataError

QUICK = Retry(times=4, first=0.001, longest=0.01)
SLATE = {
    "decision_id": "d1",
    "slate": [{"item": "a", "slot": 1, "mean": 0.5, "bonus": 0.1, "propensity": None, "explored": False, "new": 1}],
    "short": False, "reason": "", "policy": "auto", "model_version": 3, "exploration": None,
    "expires_at": "2026-01-02T03:04:05+00:00", "mode": "live", "stale": False, "ignored": ["x"], "later": "unknown",
}  # fmt: skip
BUSY = Scripted(503, {"title": "busy", "status": 503})


def test_importing_the_client_loads_nothing_heavy() -> None:
    """Fails when `import neuclust.client` loads torch, numpy or polars."""
    program = "import sys, neuclust.client; print([m for m in ('torch', 'numpy', 'polars') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_a_recommendation_is_repeated_with_the_same_request_id() -> None:
    """Fails when an attempt after a busy or broken one asks for another decision."""
    with scripted([BUSY, DROP, Scripted(429, {}, {"Retry-After": "0"}), Scripted(200, SLATE)]) as seen:
        client = Client(seen.address, key="nk_secret", retries=QUICK)
        answer = client.recommender("shop").recommend("u1", context={"device": "phone"}, k=1)
    assert len(seen.calls) == 4
    assert len({body["request_id"] for body in seen.bodies()}) == 1
    assert seen.bodies()[0].items() >= {"user": "u1", "context": {"device": "phone"}, "k": 1}.items()
    assert all(headers["Authorization"] == "Bearer nk_secret" for _, _, headers, _ in seen.calls)
    assert (answer.items, answer.decision_id, answer.ignored) == (["a"], "d1", ("x",))
    assert answer.request_id == seen.bodies()[0]["request_id"]
    assert answer.expires_at == datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def test_feedback_keeps_its_id_over_a_broken_connection() -> None:
    """Fails when a click whose answer was lost is sent under another id."""
    with scripted([DROP, Scripted(200, {"duplicate": True})]) as seen:
        accepted = Client(seen.address, retries=QUICK).recommender("shop").feedback("d1", {7: 1.0}, partial=True)
    first, second = seen.bodies()
    assert first == second
    assert first == {"decision_id": "d1", "items": {"7": 1.0}, "partial": True, "feedback_id": accepted.feedback_id}
    assert accepted.duplicate


def test_the_ids_of_the_caller_are_sent() -> None:
    """Fails when an id that was given is replaced."""
    with scripted([Scripted(200, SLATE), Scripted(202, {})]) as seen:
        shop = Client(seen.address, retries=QUICK).recommender("shop")
        shop.recommend(request_id="mine")
        shop.feedback("d1", {}, feedback_id="clicks")
    assert [body.get("request_id") or body.get("feedback_id") for body in seen.bodies()] == ["mine", "clicks"]


def test_the_service_says_how_long_to_wait() -> None:
    """Fails when Retry-After is not waited for."""
    with scripted([Scripted(429, {}, {"Retry-After": "1"}), Scripted(200, SLATE)]) as seen:
        begun = time.monotonic()
        Client(seen.address, retries=QUICK).recommender("shop").recommend()
        assert time.monotonic() - begun >= 1.0
    with scripted([Scripted(503, {"detail": "closed"}, {"Retry-After": "3600"})]) as seen:
        with pytest.raises(Unavailable, match="closed"):
            Client(seen.address, retries=QUICK).recommender("shop").recommend()
        assert len(seen.calls) == 1


def test_retry_after_is_a_number_or_a_date() -> None:
    """Fails when a form of the header is misread."""
    later = format_datetime(datetime.now(UTC) + timedelta(seconds=30), usegmt=True)
    assert [retry_after(text) for text in (None, "7", "soon", "Wed, 21 Oct 2015 07:28:00 GMT")] == [0, 7, 0, 0]
    assert 25 < retry_after(later) <= 30


def test_pauses_grow_and_are_drawn_from_zero() -> None:
    """Fails when all clients come back at the same time, or without a limit."""
    retry = Retry(times=9, first=0.5, longest=4.0)
    for attempt, most in ((1, 0.5), (2, 1.0), (3, 2.0), (4, 4.0), (9, 4.0)):
        pauses = [retry.pause(attempt) for _ in range(300)]
        assert 0 <= min(pauses) < 0.2 * most
        assert 0.8 * most < max(pauses) <= most
    assert retry.pause(1, after=7.0) >= 7.0
    with pytest.raises(ConfigError, match="retries: expected"):
        Retry(times=-1)


@pytest.mark.parametrize(
    ("status", "kind"),
    [(400, Refused), (401, NotAllowed), (403, NotAllowed), (404, NotFound), (409, Conflict), (413, Refused),
     (422, Refused), (500, ServiceError)],
)  # fmt: skip
def test_refusals_are_raised_at_once(status: int, kind: type[ServiceError]) -> None:
    """Fails when a refusal is repeated, or loses its sentence, status or field."""
    problem = {"title": "refused", "status": status, "detail": "k: expected at most 3, got 9", "field": "k"}
    with scripted([Scripted(status, problem)]) as seen:
        with pytest.raises(kind) as caught:
            Client(seen.address, retries=QUICK).recommender("shop").recommend(k=9)
        assert len(seen.calls) == 1
    assert str(caught.value) == "k: expected at most 3, got 9"
    assert (caught.value.field, caught.value.status) == ("k", status)
    assert isinstance(caught.value, DataError) == (kind is Refused)


def test_it_gives_up_with_the_last_reason() -> None:
    """Fails when attempts do not end."""
    with scripted([BUSY]) as seen:
        with pytest.raises(Unavailable, match="busy"):
            Client(seen.address, retries=QUICK).recommender("shop").versions()
        assert len(seen.calls) == QUICK.times + 1
        address = seen.address
    with pytest.raises(Unavailable, match=f"expected a service at {address}"):
        Client(address, retries=Retry(times=1, first=0.001)).recommenders()
    assert not Client(address).ready()


def test_a_deletion_whose_answer_was_lost_is_done() -> None:
    """Fails when the repeat of a deletion is taken for a refusal, or a first one for done."""
    with scripted([DROP, Scripted(404, {})]) as seen:
        Client(seen.address, retries=QUICK).recommender("shop").remove_item("a")
    with scripted([Scripted(404, {"detail": "no item"})]) as seen, pytest.raises(NotFound, match="no item"):
        Client(seen.address, retries=QUICK).recommender("shop").remove_item("a")


def test_entries_of_a_batch_are_answered_one_by_one() -> None:
    """Fails when one refused entry hides the others."""
    refused = {"status": 404, "problem": {"detail": "expected a decision", "field": "decision_id"}}
    results: dict[str, Any] = {"results": [{"feedback_id": "1", "duplicate": True}, refused]}
    with scripted([Scripted(200, results), Scripted(200, {"results": [SLATE, {**refused, "status": 422}]})]) as seen:
        shop = Client(seen.address, retries=QUICK).recommender("shop")
        first, second = shop.feedback_many([{"decision_id": "d", "items": {}}] * 2)
        slate, error = shop.recommend_many([{"user": "u1"}, {"user": "u2", "k": 99}])
        assert shop.feedback_many([]) == []
    assert not isinstance(first, ServiceError)
    assert first.duplicate
    assert isinstance(second, NotFound)
    assert second.field == "decision_id"
    assert not isinstance(slate, ServiceError)
    assert slate.items == ["a"]
    assert isinstance(error, Refused)
    assert len({each["feedback_id"] for each in seen.bodies()[0]["feedback"]}) == 2


def test_foreign_answers_are_told() -> None:
    """Fails when something that is no service of ours leads to a traceback of the standard library."""
    with scripted([Scripted(200, b"<html>")]) as seen, pytest.raises(ServiceError, match="is it another service"):
        Client(seen.address, retries=QUICK).recommenders()
    with scripted([Scripted(200, {"slate": 3})]) as seen, pytest.raises(ServiceError, match="expected the answer"):
        Client(seen.address, retries=QUICK).recommender("shop").recommend()
    with scripted([Scripted(418, b"short and stout")]) as seen, pytest.raises(Refused, match="short and stout"):
        Client(seen.address, retries=QUICK).recommenders()
    with pytest.raises(ConfigError, match="address: expected"):
        Client("127.0.0.1:8000")


def test_the_log_is_read_as_it_comes() -> None:
    """Fails when lines are lost, or a busy service is not asked again."""
    lines = b"".join(b'{"kind": "decision", "n": %d}\n' % n for n in range(1000))
    with scripted([BUSY, Scripted(200, lines)]) as seen:
        found = list(Client(seen.address, retries=QUICK).recommender("shop").log(start=5))
    assert [each["n"] for each in found] == list(range(1000))
    assert seen.calls[-1][1].endswith("/log?from=5")
    with scripted([Scripted(404, {"detail": "no shop"})]) as seen, pytest.raises(NotFound, match="no shop"):
        next(Client(seen.address, retries=QUICK).recommender("shop").log())
