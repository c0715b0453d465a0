"""The busy routes are answered past the framework as they are through it.

A content type with a parameter goes through the framework, the plain one past it where the request is in order.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import anyio
import httpx
import pytest
from running_service import RunningService, running
from starlette.types import Message, Receive, Scope, Send

from neuclust.serve.api.direct import Direct
from neuclust.serve.api.routes.recommendations import busy_routes

PLAIN, THROUGH = "application/json", "application/json; charset=utf-8"
SHOP = "/v1/recommenders/shop"


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningService]:
    with running(tmp_path_factory.mktemp("direct")) as found:
        found.make("shop", policy="linucb")
        yield found


def post(service: RunningService, path: str, body: object, media: str) -> httpx.Response:
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    return service.client.post(path, content=content, headers={"content-type": media})


def told(answer: httpx.Response) -> tuple[int, str, Any, dict[str, str]]:
    """All of an answer but when it was given."""
    headers = {name: value for name, value in answer.headers.items() if name != "date"}
    return answer.status_code, answer.headers["content-type"], answer.json(), headers


REQUESTS: list[tuple[str, object]] = [
    ("recommendations", {"user": "u1", "request_id": "same", "context": {"device": "phone"}}),
    ("recommendations", {"request_id": 17, "k": 2, "exclude": ["i0", 1]}),
    ("recommendations", {"k": 9}),
    ("recommendations", {"k": "two"}),
    ("recommendations", {"colour": "red"}),
    ("recommendations", {"required": ["nothing"]}),
    ("recommendations", {"request_id": "same", "user": "u2"}),
    ("recommendations", b'{"user": NaN}'),
    ("recommendations", b'{"user": "a", "user": "b"}'),
    ("recommendations", b"[" * 40),
    ("recommendations", b""),
    ("recommendations", []),
    ("recommendations:batch", {"requests": [{"request_id": "one"}, {"request_id": "two", "k": 9}]}),
    ("recommendations:batch", {"requests": []}),
    ("feedback", {"decision_id": "nobody", "items": {}}),
    ("feedback", {"decision_id": "nobody"}),
    ("feedback:batch", {"feedback": [{"decision_id": "nobody", "items": {}}]}),
    ("feedback:batch", {"feedback": {}}),
]


@pytest.mark.parametrize(("last", "body"), REQUESTS)
def test_both_ways_give_one_answer(service: RunningService, last: str, body: object) -> None:
    """Fails when a request is answered, refused or labelled otherwise past the framework."""
    service.call("POST", "shop/recommendations", {"user": "u1", "request_id": "same", "context": {"device": "phone"}})
    past, through = (post(service, f"{SHOP}/{last}", body, media) for media in (PLAIN, THROUGH))
    assert told(past) == told(through)


def test_other_recommenders_methods_and_names_are_refused_alike(service: RunningService) -> None:
    """Fails when what is not in order is answered past the framework."""
    for path in ("/v1/recommenders/nobody/recommendations", "/v1/recommenders/UPPER/recommendations"):
        assert told(post(service, path, {}, PLAIN)) == told(post(service, path, {}, THROUGH))
    assert service.client.get(f"{SHOP}/recommendations").status_code == 405


def test_both_ways_count_as_one_route(service: RunningService) -> None:
    """Fails when requests past the framework are missing among the metrics."""

    def counted() -> float:
        named = f'neuclust_requests_total{{method="POST",route="{SHOP.replace("shop", "{name}")}/recommendations"'
        lines = [line for line in service.client.get("/metrics").text.splitlines() if line.startswith(named)]
        return sum(float(line.rpartition(" ")[2]) for line in lines if 'status="200"' in line)

    before = counted()
    for media in (PLAIN, THROUGH):
        assert post(service, f"{SHOP}/recommendations", {}, media).status_code == 200
    assert counted() == before + 2


def test_feedback_is_taken_once_whichever_way_it_comes(service: RunningService) -> None:
    """Fails when a repeat that comes the other way counts twice."""
    id = post(service, f"{SHOP}/recommendations", {"user": "u1"}, PLAIN).json()["decision_id"]
    body = {"feedback_id": "once", "decision_id": id, "items": {}}
    assert [post(service, f"{SHOP}/feedback", body, media).status_code for media in (PLAIN, THROUGH)] == [202, 200]


def test_a_body_in_parts_is_joined_and_one_that_ends_early_is_left(service: RunningService) -> None:
    """Fails when parts are lost, or half a body is answered."""
    pieces = iter([b'{"user": ', b'"u1"}'])
    answer = service.client.post(f"{SHOP}/recommendations", content=pieces, headers={"content-type": PLAIN})
    assert answer.status_code == 200
    sent: list[Message] = []

    async def gone() -> Message:
        return {"type": "http.disconnect"}

    async def send(message: Message) -> None:
        sent.append(message)

    async def framework(scope: Scope, receive: Receive, send: Send) -> None:
        raise AssertionError("the framework was asked")

    headers = [(b"content-type", PLAIN.encode())]
    scope = {"type": "http", "method": "POST", "path": f"{SHOP}/feedback", "headers": headers}
    anyio.run(Direct(framework, None, busy_routes()), scope, gone, send)  # type: ignore[arg-type]
    assert sent == []
