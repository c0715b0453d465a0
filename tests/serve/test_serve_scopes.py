"""Every route with every key: what a key may not do is refused, and the refusal tells nothing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from running_service import RunningService, running

from neuclust.serve.api.auth import SCOPES, new_key
from neuclust.serve.store.opening import open_store

R = "/v1/recommenders"
NEEDED: dict[tuple[str, str], str | None] = {  # the scope of every operation; None: open
    ("GET", "/health/live"): None, ("GET", "/health/ready"): None, ("GET", "/metrics"): "metrics",
    ("GET", R): "recommend", ("GET", f"{R}/{{name}}"): "recommend",
    ("PUT", f"{R}/{{name}}"): "admin", ("PATCH", f"{R}/{{name}}"): "admin", ("DELETE", f"{R}/{{name}}"): "admin",
    ("POST", f"{R}/{{name}}/recommendations"): "recommend",
    ("POST", f"{R}/{{name}}/recommendations:batch"): "recommend",
    ("POST", f"{R}/{{name}}/feedback"): "feedback", ("POST", f"{R}/{{name}}/feedback:batch"): "feedback",
}  # fmt: skip
FILLED = {"{name}": "shop", "{id}": "i1", "{id:path}": "i1", "{version}": "1"}
ADMINS_OWN = "admin"  # what every other operation needs


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[RunningService, dict[str, str]]]:
    """A service whose keys have one scope each, for all recommenders, for shop, and for another one."""
    folder = tmp_path_factory.mktemp("scopes")
    address = f"sqlite:{folder / 'service.db'}"
    with running(folder, db=address) as service:
        service.make("shop", policy="linucb")
        service.make("other", policy="linucb")
    store = open_store(address)
    secrets = {}
    for scope in SCOPES:
        for place in (None, "shop", "other"):
            secret, key = new_key([scope], place)
            store.add_key(key)
            secrets[f"{scope} {place}"] = secret
    store.close()
    with running(folder, db=address) as service:
        yield service, secrets


def operations(service: RunningService, secret: str) -> list[tuple[str, str]]:
    """Every method and path of the OpenAPI document."""
    found = service.client.get("/openapi.json", headers={"Authorization": f"Bearer {secret}"}).json()["paths"]
    return [(method.upper(), path) for path, methods in found.items() for method in methods]


def send(service: RunningService, method: str, path: str, secret: str | None) -> httpx.Response:
    """A request with an empty body, so that one that is allowed is refused for its content, or does no harm."""
    for name, value in FILLED.items():
        path = path.replace(name, value)
    headers = {} if secret is None else {"Authorization": f"Bearer {secret}"}
    body: Any = {"content": b"[]", "headers": {**headers, "Content-Type": "text/none"}}
    with service.client.stream(
        method, path, **(body if method in ("PUT", "POST", "PATCH") else {"headers": headers})
    ) as answer:
        if answer.status_code != 200 or not path.endswith(("stream", "log")):
            answer.read()
        return answer


def test_every_route_with_every_scope(keys: tuple[RunningService, dict[str, str]]) -> None:
    """Fails when a key reaches a route of another scope or another recommender, or one is refused what it may."""
    service, secrets = keys
    known = operations(service, secrets["admin None"])
    assert set(NEEDED) <= set(known)
    for method, path in known:
        needed = NEEDED.get((method, path), ADMINS_OWN)
        if (method, path) == ("DELETE", f"{R}/{{name}}"):
            continue  # below: it would end the others
        for name, secret in secrets.items():
            scope, place = name.split()
            fits = place in ("None", "shop") if "{name}" in path else place == "None"
            may = needed is None or (scope in (needed, "admin") and fits)
            status = send(service, method, path, secret).status_code
            assert (status not in (401, 403)) == may, (method, path, name, status)
            assert status < 500, (method, path, name)


def test_without_a_key_only_health_answers(keys: tuple[RunningService, dict[str, str]]) -> None:
    """Fails when a route answers somebody without a key, or tells whether a recommender is there."""
    service, secrets = keys
    for method, path in operations(service, secrets["admin None"]):
        for secret in (None, "nk_00000000_wrong", secrets["admin None"][:-1] + "!"):
            answer = send(service, method, path, secret)
            if NEEDED.get((method, path), ADMINS_OWN) is None:
                assert answer.status_code == 200
                continue
            assert answer.status_code == 401, (method, path)
            assert answer.headers["www-authenticate"] == "Bearer"
            assert "shop" not in answer.text
    there, gone = (send(service, "GET", f"{R}/{name}", secrets["feedback other"]) for name in ("shop", "nowhere"))
    assert (there.status_code, there.json()["detail"]) == (gone.status_code, gone.json()["detail"])


def test_deleting_needs_a_key_of_an_administrator(keys: tuple[RunningService, dict[str, str]]) -> None:
    """Fails when another key deletes a recommender."""
    service, secrets = keys
    for name, secret in secrets.items():
        if not name.startswith("admin") or name.endswith("other"):
            assert send(service, "DELETE", f"{R}/{{name}}", secret).status_code == 403
    assert send(service, "DELETE", f"{R}/{{name}}", secrets["admin shop"]).status_code == 204
