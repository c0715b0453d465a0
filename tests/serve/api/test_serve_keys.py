"""Who may do what: every route with every scope, keys for one recommender, keys that are revoked."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from command_line import completed
from running_service import RunningService, eventually, running

from neuclust.errors import ConfigError
from neuclust.serve.api.auth import SCOPES, Keys, digest_of, new_key
from neuclust.serve.api.options import ServeOptions
from neuclust.serve.api.problems import Refused
from neuclust.serve.api.running import serve
from neuclust.serve.store.contract import Key
from neuclust.serve.store.opening import open_store

# every route and the scope that opens it; admin opens all
ROUTES = {
    ("GET", "/v1/recommenders"): "recommend", ("PUT", "/v1/recommenders/{name}"): "admin",
    ("GET", "/v1/recommenders/{name}"): "recommend", ("PATCH", "/v1/recommenders/{name}"): "admin",
    ("DELETE", "/v1/recommenders/{name}"): "admin",
    ("PUT", "/v1/recommenders/{name}/items/{id}"): "admin", ("DELETE", "/v1/recommenders/{name}/items/{id}"): "admin",
    ("GET", "/v1/recommenders/{name}/items/{id}"): "admin", ("GET", "/v1/recommenders/{name}/users/{id}"): "admin",
    ("GET", "/v1/recommenders/{name}/features"): "admin",
    ("GET", "/v1/recommenders/{name}/items"): "admin", ("POST", "/v1/recommenders/{name}/items:batch"): "admin",
    ("PUT", "/v1/recommenders/{name}/users/{id}"): "admin", ("DELETE", "/v1/recommenders/{name}/users/{id}"): "admin",
    ("GET", "/v1/recommenders/{name}/users"): "admin", ("POST", "/v1/recommenders/{name}/users:batch"): "admin",
    ("DELETE", "/v1/recommenders/{name}/users/{id}/history"): "admin",
    ("GET", "/v1/recommenders/{name}/erasures/{id}"): "admin",
    ("POST", "/v1/recommenders/{name}/history:batch"): "admin",
    ("POST", "/v1/recommenders/{name}/recommendations"): "recommend",
    ("POST", "/v1/recommenders/{name}/recommendations:batch"): "recommend",
    ("POST", "/v1/recommenders/{name}/feedback"): "feedback",
    ("POST", "/v1/recommenders/{name}/feedback:batch"): "feedback",
    ("GET", "/v1/recommenders/{name}/decisions"): "admin", ("GET", "/v1/recommenders/{name}/decisions/{id}"): "admin",
    ("GET", "/v1/recommenders/{name}/log"): "admin", ("GET", "/v1/recommenders/{name}/versions"): "admin",
    ("POST", "/v1/recommenders/{name}/versions/{version}:promote"): "admin",
    ("GET", "/v1/recommenders/{name}/overview"): "admin", ("GET", "/v1/recommenders/{name}/stream"): "admin",
    ("GET", "/metrics"): "metrics", ("GET", "/health/live"): "", ("GET", "/health/ready"): "",
}  # fmt: skip


@pytest.fixture(scope="module")
def keyed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[RunningService, dict[str, str]]]:
    """A service with a key for each scope, one for another recommender, and an admin's."""
    folder = tmp_path_factory.mktemp("keys")
    store = open_store(f"sqlite:{folder / 'service.db'}")
    secrets: dict[str, str] = {}
    for name, scopes, recommender in [*((s, [s], None) for s in SCOPES), ("other", ["admin"], "other")]:
        secrets[name], key = new_key(scopes, recommender)
        store.add_key(key)
    store.close()
    with running(folder) as service:
        service.client.headers["Authorization"] = f"Bearer {secrets['admin']}"
        service.make("shop", policy="linucb")
        yield service, secrets


def _filled(path: str) -> str:
    return path.replace("{name}", "shop").replace("{version}", "1").replace("{id}", "0123456789abcdef")


def test_every_route_is_in_the_table(keyed: tuple[RunningService, dict[str, str]]) -> None:
    """Fails when a route is added without saying which scope opens it."""
    document = keyed[0].client.get("/openapi.json").json()
    found = {(method.upper(), path) for path, routes in document["paths"].items() for method in routes}
    assert found == set(ROUTES)


@pytest.mark.parametrize(
    ("last", "body"),
    [("recommendations", {}), ("recommendations:batch", {"requests": [{}]}),
     ("feedback", {"decision_id": "a", "items": {}}),
     ("feedback:batch", {"feedback": [{"decision_id": "a", "items": {}}]})],
)  # fmt: skip
def test_requests_in_order_need_the_scope_too(
    keyed: tuple[RunningService, dict[str, str]], last: str, body: object
) -> None:
    """Fails when a busy route, which is answered past the framework, opens for another scope or without a key."""
    service, secrets = keyed
    allowed = {"feedback" if "feedback" in last else "recommend", "admin"}
    for name, secret in secrets.items():
        headers = {"Authorization": f"Bearer {secret}"}
        status = service.client.post(f"/v1/recommenders/shop/{last}", json=body, headers=headers).status_code
        assert (status == 403) == (name not in allowed), (name, status)
    assert httpx.post(f"{service.address}/v1/recommenders/shop/{last}", json=body).status_code == 401


@pytest.mark.parametrize(("method", "path"), sorted(ROUTES))
def test_a_route_opens_for_its_scope_alone(
    keyed: tuple[RunningService, dict[str, str]], method: str, path: str
) -> None:
    """Fails when a route answers without a key, with a key of another scope, or one for another recommender."""
    service, secrets = keyed
    scope = ROUTES[method, path]
    with httpx.Client(base_url=service.address, timeout=60) as client:
        if not scope:
            assert client.request(method, path).status_code == 200
            return
        assert client.request(method, _filled(path)).status_code == 401
        wrong = {"Authorization": f"Bearer {secrets['admin'][:-1]}x"}
        assert client.request(method, _filled(path), headers=wrong).status_code == 401
        for name in ("recommend", "feedback", "metrics", "other"):
            if name == scope:
                continue
            header = {"Authorization": f"Bearer {secrets[name]}"}
            answer = client.request(method, _filled(path), headers=header)
            assert answer.status_code == 403, (name, answer.text)
            assert "shop" not in answer.text


@pytest.mark.parametrize(("method", "path"), [("POST", "/v1/recommenders/shop/recommendations"), ("GET", "/metrics")])
def test_the_right_key_opens(keyed: tuple[RunningService, dict[str, str]], method: str, path: str) -> None:
    """Fails when a key of the right scope is refused."""
    service, secrets = keyed
    scope = "metrics" if path == "/metrics" else "recommend"
    body: dict[str, str] | None = {} if method == "POST" else None
    answer = httpx.request(
        method, service.address + path, json=body, headers={"Authorization": f"Bearer {secrets[scope]}"}, timeout=60
    )
    assert answer.status_code == 200, answer.text


def test_a_revoked_key_ends(keyed: tuple[RunningService, dict[str, str]], tmp_path: Path) -> None:
    """Fails when a revoked key still opens after the time for which keys are kept in memory."""
    service, _ = keyed
    store = open_store(service.db)
    secret, key = new_key(["recommend"], "shop")
    store.add_key(key)
    header = {"Authorization": f"Bearer {secret}"}

    def status() -> int:
        return httpx.get(f"{service.address}/v1/recommenders/shop", headers=header, timeout=60).status_code

    eventually(lambda: status() == 200, "a new key opens")
    store.revoke_key(key.id)
    eventually(lambda: status() == 401, "a revoked key ends")
    store.close()


def test_others_are_served_with_keys_alone(tmp_path: Path) -> None:
    """Fails when the service listens on an address that others can reach without any key."""
    with pytest.raises(ConfigError, match="expected API keys"):
        serve(ServeOptions(f"sqlite:{tmp_path / 'a.db'}", host="0.0.0.0", port=0))


def test_two_services_do_not_share_a_file(tmp_path: Path) -> None:
    """Fails when a second service opens a SQLite file that another one serves."""
    with running(tmp_path) as service, pytest.raises(ConfigError, match="another service"):
        serve(ServeOptions(service.db, port=0))


def test_secrets_are_not_kept() -> None:
    """Fails when what is stored of a key tells its secret."""
    secret, key = new_key(["feedback", "recommend"], "shop", "note")
    assert secret not in repr(key)
    assert key.scopes == ("recommend", "feedback")
    assert key.digest == digest_of(secret)
    with pytest.raises(ConfigError, match="scope"):
        new_key(["everything"], None)


class _One:
    def __init__(self, key: Key) -> None:
        self.key = key

    def keys(self) -> list[Key]:
        return [self.key]


@pytest.mark.parametrize("header", [None, "", "Bearer", "Bearer nk_", "Basic nk_a_b", "Bearer nk_zzzzzzzz_x"])
def test_other_headers_are_no_keys(header: str | None) -> None:
    """Fails when a header that is no key of the store is taken for one."""
    _, key = new_key(["admin"], None)
    with pytest.raises(Refused) as refused:
        Keys(_One(key), required=False).allow(header, "recommend", "shop")
    assert refused.value.status == 401


def test_the_command_makes_and_lists_keys(tmp_path: Path) -> None:
    """Fails when `neuclust keys` shows a secret again, or its key is not in the store."""
    db = f"sqlite:{tmp_path / 'a.db'}"
    made = completed("keys", "add", "--db", db, "--scope", "recommend")
    secret = next(word for word in made.stdout.split() if word.startswith("nk_"))
    listed = completed("keys", "list", "--db", db).stdout
    assert secret.split("_")[1] in listed
    assert secret not in listed
    Keys(open_store(db), required=True).allow(f"Bearer {secret}", "recommend", "any")
