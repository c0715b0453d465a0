"""The routes of a running service: what they answer, and what they refuse."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from running_service import RunningService, eventually, running

from neuclust.serve.api.guards import SMALL
from neuclust.serve.page import page_files


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningService]:
    with running(tmp_path_factory.mktemp("routes")) as found:
        found.make("shop", policy="linucb")
        yield found


def test_a_recommender_is_made_changed_and_deleted(service: RunningService) -> None:
    """Fails when a recommender cannot be made, or a second PUT of another configuration replaces it."""
    made = service.call("PUT", "one", {"slate_size": 2, "policy": "linucb"}, 201)
    assert made["configuration"]["slate_size"] == 2
    assert service.call("PUT", "one", {"slate_size": 2, "policy": "linucb"}, 200)["name"] == "one"
    assert service.call("PUT", "one", {"slate_size": 4}, 409)["status"] == 409
    changed = service.call("PATCH", "one", {"window": 60.0, "exploration": 0.25}, 200)["configuration"]
    assert (changed["window"], changed["exploration"], changed["slate_size"]) == (60.0, 0.25, 2)
    assert "one" in [each["name"] for each in service.call("GET", "", status=200)["recommenders"]]
    service.call("DELETE", "one", status=204)
    assert service.call("GET", "one", status=404)["title"] == "Not Found"
    service.call("DELETE", "one", status=404)


@pytest.mark.parametrize(
    ("body", "field"),
    [({}, "slate_size"), ({"slate_size": 0}, "slate_size"), ({"slate_size": 3, "polcy": "auto"}, "polcy"),
     ({"slate_size": 3, "policy": "nobody"}, "policy"), ({"slate_size": 3, "window": -1.0}, "window"),
     ({"slate_size": 3, "reward_range": [1.0, 0.0]}, "reward_range"),
     ({"slate_size": 3, "features": {"items": {"price": "colour"}}}, "features")],
)  # fmt: skip
def test_a_wrong_configuration_is_refused_with_its_field(service: RunningService, body: object, field: str) -> None:
    """Fails when a wrong configuration makes a recommender, or the answer does not say what is wrong."""
    refused = service.call("PUT", "wrong", body, 422)
    assert refused["field"] == field
    service.call("GET", "wrong", status=404)


def test_an_item_counts_in_the_next_request(service: RunningService) -> None:
    """Fails when an acknowledged item is not eligible at once, or one that was taken out still is."""
    assert service.call("PUT", "shop/items/new", {"price": 3, "kind": "a"}, 201)["created"]
    assert not service.call("PUT", "shop/items/new", {"price": 4, "kind": "a"}, 200)["created"]
    slate = service.call("POST", "shop/recommendations", {"eligible": ["new"]}, 200)["slate"]
    assert [each["item"] for each in slate] == ["new"]
    service.call("DELETE", "shop/items/new", status=204)
    empty = service.call("POST", "shop/recommendations", {"eligible": ["new"]}, 200)
    assert empty["slate"] == []
    assert empty["short"]
    assert empty["reason"]
    service.call("DELETE", "shop/items/new", status=404)


def test_items_are_listed_page_by_page(service: RunningService) -> None:
    """Fails when listing loses or repeats an item."""
    seen: list[str] = []
    after = None
    while True:
        page = service.call("GET", f"shop/items?limit=7{'' if after is None else f'&after={after}'}", status=200)
        seen += [each["id"] for each in page["items"]]
        after = page["next"]
        if after is None:
            break
    assert seen == [f"i{at}" for at in range(30)]
    assert page["total"] == 30


def test_one_row_is_looked_at(service: RunningService) -> None:
    """Fails when an item or a user can be put and listed, but not looked at, or one that is not there has values."""
    service.call("PUT", "shop/users/ann%2Flee", {"age": 30, "since": {"date": "2026-01-02"}}, 201)
    values = {"age": 30, "since": {"date": "2026-01-02"}}
    assert service.call("GET", "shop/users/ann%2Flee", status=200) == {"id": "ann/lee", "values": values}
    listed = service.call("GET", "shop/items?limit=1", status=200)["items"][0]
    assert service.call("GET", f"shop/items/{listed['id']}", status=200) == listed
    assert service.call("GET", "shop/items/nobody", status=404)["field"] == "id"
    service.call("DELETE", "shop/users/ann%2Flee", status=204)
    service.call("GET", "shop/users/ann%2Flee", status=404)


@pytest.mark.parametrize("table", ["items", "users"])
def test_a_body_names_no_other_id_than_its_path(service: RunningService, table: str) -> None:
    """Fails when a row is put under another id than its body says, or the id itself becomes a feature."""
    refused = service.call("PUT", f"shop/{table}/zz", {"id": "other", "price": 1}, 422)
    assert refused["field"] == "id"
    assert "leave it out" in refused["detail"]
    service.call("GET", f"shop/{table}/zz", status=404)
    service.call("PUT", f"shop/{table}/77", {"id": 77, "price": 1}, 201)
    assert service.call("GET", f"shop/{table}/77", status=200)["values"] == {"price": 1}
    service.call("DELETE", f"shop/{table}/77", status=204)


def test_the_same_request_id_gives_the_same_answer(service: RunningService) -> None:
    """Fails when a repeated request is answered anew, or another body under its id is taken."""
    body = {"request_id": "r1", "eligible": [f"i{at}" for at in range(10)], "k": 2}
    first = service.call("POST", "shop/recommendations", body, 200)
    assert service.call("POST", "shop/recommendations", body, 200) == first
    refused = service.call("POST", "shop/recommendations", {**body, "k": 1}, 409)
    assert refused["field"] == "request_id"
    assert service.call("GET", f"shop/decisions/{first['decision_id']}", status=200)["slate"] == first["slate"]


@pytest.mark.parametrize(
    ("body", "status", "field"),
    [({"k": 9}, 422, "k"), ({"k": 0}, 422, "k"), ({"required": ["nobody"]}, 422, "required"),
     ({"at_most": {"kind": 0}}, 422, "at_most"), ({"context": {"price": {"a": 1}}}, 422, "context"),
     ({"nonsense": 1}, 422, "nonsense"), ({"user_features": {"age": "old", "x": [[1]]}}, 422, "user_features")],
)  # fmt: skip
def test_a_wrong_request_is_refused_with_its_field(
    service: RunningService, body: dict[str, object], status: int, field: str
) -> None:
    """Fails when a wrong request is answered, or its field is not named."""
    assert service.call("POST", "shop/recommendations", body, status)["field"] == field


def test_feedback_is_taken_once(service: RunningService) -> None:
    """Fails when a repeat is not told from a new message, or what cannot be learned is acknowledged."""
    choice = service.call("POST", "shop/recommendations", {"user": "u1"}, 200)
    item = choice["slate"][0]["item"]
    body = {"feedback_id": "f1", "decision_id": choice["decision_id"], "items": {item: 1.0}}
    assert not service.call("POST", "shop/feedback", body, 202)["duplicate"]
    assert service.call("POST", "shop/feedback", body, 200)["duplicate"]
    assert service.call("POST", "shop/feedback", {**body, "items": {item: 0.0}}, 409)["field"] == "feedback_id"
    assert service.call("POST", "shop/feedback", {**body, "decision_id": "none"}, 404)["field"] == "decision_id"
    service.call("POST", "shop/feedback", {**body, "feedback_id": "f2", "items": {"other": 1.0}}, 422)
    service.call("POST", "shop/feedback", {**body, "feedback_id": "f3", "items": {item: 7.0}}, 422)


def test_a_decision_tells_its_feedback(service: RunningService) -> None:
    """Fails when feedback is not told with its decision, in its order and as it was sent, or that of another one is."""
    choice, other = (service.call("POST", "shop/recommendations", {"user": "u7"}, 200) for _ in range(2))
    first, second = (slot["item"] for slot in choice["slate"][:2])
    path = f"shop/decisions/{choice['decision_id']}"
    assert service.call("GET", path, status=200)["feedback"] == []
    for id, items in (("late-1", {first: 1.0}), ("late-2", {second: 0.0})):
        body = {"feedback_id": id, "decision_id": choice["decision_id"], "items": items, "partial": True}
        service.call("POST", "shop/feedback", body, 202)
    service.call("POST", "shop/feedback", {"decision_id": other["decision_id"], "items": {}}, 202)
    came = service.call("GET", path, status=200)["feedback"]
    assert [(each["feedback_id"], each["items"], each["partial"], each["slate"]) for each in came] == [
        ("late-1", {first: 1.0}, True, None), ("late-2", {second: 0.0}, True, None),
    ]  # fmt: skip
    assert came[0]["seq"] < came[1]["seq"]


def test_batches_answer_each_part(service: RunningService) -> None:
    """Fails when one wrong part of a batch spoils the others, or results come in another order."""
    found = service.call("POST", "shop/recommendations:batch", {"requests": [{"k": 1}, {"k": 99}, {"k": 2}]}, 200)
    assert [len(each.get("slate", "")) for each in found["results"]] == [1, 0, 2]
    assert found["results"][1]["status"] == 422
    first, third = found["results"][0]["decision_id"], found["results"][2]["decision_id"]
    messages: list[object] = [{"decision_id": each, "items": {}} for each in (first, "none", third, first)]
    results = service.call("POST", "shop/feedback:batch", {"feedback": messages}, 202)["results"]
    assert [each.get("duplicate", each.get("status")) for each in results] == [False, 404, False, True]


def test_feedback_is_learned_and_served(service: RunningService) -> None:
    """Fails when feedback does not reach the model that is served."""
    service.make("learning", policy="popular", exploration=0.5)
    for _ in range(30):
        choice = service.call("POST", "learning/recommendations", {}, 200)
        clicks = {each["item"]: 1.0 for each in choice["slate"] if each["item"] in ("i4", "i5")}
        service.call("POST", "learning/feedback", {"decision_id": choice["decision_id"], "items": clicks}, 202)
    service.learned("learning")

    def served() -> bool:
        found = service.call("GET", "learning", status=200)
        return bool(
            found["lessons"] == 30
            and found["model_version"] == service.call("GET", "learning/versions")["versions"][0]["version"]
        )

    eventually(served, "the newest model is served")


@pytest.mark.parametrize("media", ["text/csv", "application/x-ndjson", "application/vnd.apache.parquet"])
def test_tables_of_every_kind_are_taken(service: RunningService, media: str, tmp_path: Path) -> None:
    """Fails when a kind of upload loses rows or values, or numbers as ids are not texts."""
    import polars as pl

    name = f"table-{media.rsplit('.', 1)[-1].rsplit('/', 1)[-1]}"[:30]
    service.make(name, items=0)
    frame = pl.DataFrame({"sku": list(range(250)), "price": [at / 2 for at in range(250)], "kind": ["a", "b"] * 125})
    path = tmp_path / "table"
    if media == "text/csv":
        frame.write_csv(path)
    elif media == "application/x-ndjson":
        frame.write_ndjson(path)
    else:
        frame.write_parquet(path)
    answer = service.client.post(
        f"/v1/recommenders/{name}/items:batch?id=sku", content=path.read_bytes(), headers={"content-type": media}
    )
    assert answer.json() == {"added": 250, "changed": 0, "rows": 250}
    assert service.call("GET", f"{name}/items?limit=2&after=6")["items"] == [
        {"id": "7", "values": {"price": 3.5, "kind": "b"}}, {"id": "8", "values": {"price": 4.0, "kind": "a"}},
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("content", "media", "status"),
    [(b'[{"id": "a", "price": NaN}]', "application/json", 400), (b'[{"id": "a"}, 5]', "application/json", 422),
     (b'[{"price": 1}]', "application/json", 422), (b"a,b\n1", "text/csv", 422), 
     (b"nonsense", "application/vnd.apache.parquet", 422),
     (b'[{"id": "a", "price": 1e999}]', "application/json", 400), (b"<x/>", "text/xml", 415),
     (b'[{"id": "a", "id": "b"}]', "application/json", 400), (b"[" * 100 + b"]" * 100, "application/json", 400)],
)  # fmt: skip
def test_a_wrong_table_changes_nothing(service: RunningService, content: bytes, media: str, status: int) -> None:
    """Fails when part of a wrong upload is kept, or the refusal is no problem document."""
    before = service.call("GET", "shop/items?limit=1")["total"]
    url = "/v1/recommenders/shop/items:batch"
    answer = service.client.post(url, content=content, headers={"content-type": media})
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    assert service.call("GET", "shop/items?limit=1")["total"] == before


def test_errors_are_problem_documents(service: RunningService) -> None:
    """Fails when a refusal of the framework itself is not a problem document."""
    for method, path, status in (("GET", "/nowhere", 404), ("POST", "/v1/recommenders/shop", 405)):
        answer = service.client.request(method, path)
        assert (answer.status_code, answer.json()["status"]) == (status, status)
        assert answer.headers["content-type"] == "application/problem+json"
    answer = service.client.post(
        "/v1/recommenders/shop/recommendations", content=b"{", headers={"content-type": "application/json"}
    )
    assert answer.status_code == 400
    assert "JSON" in answer.json()["detail"]


def test_the_page_and_metrics_are_there(service: RunningService) -> None:
    """Fails when the page, the OpenAPI document or the metrics are missing."""
    page = service.client.get("/")
    assert page.status_code == 200
    assert "default-src 'self'" in page.headers["content-security-policy"]
    assert service.client.get("/openapi.json").json()["openapi"].startswith("3.1")
    assert "neuclust_requests_total" in service.client.get("/metrics").text
    assert service.call("GET", "shop/overview", status=200)["name"] == "shop"


def test_every_file_of_the_page_is_served_as_it_is(service: RunningService) -> None:
    """Fails when a script or style of the page is missing, or what is asked for changes what is served."""
    for name, (content, media) in page_files().items():
        answer = service.client.get("/" if name == "index.html" else f"/{name}", params={"content": "x", "media": "y"})
        assert (answer.status_code, answer.content, answer.headers["content-type"]) == (200, content, media)
    assert service.client.get("/__init__.py").status_code == 404


def test_the_page_finds_what_it_reads(service: RunningService) -> None:
    """Fails when the routes behind the page give other entries than its scripts read."""
    id = service.call("POST", "shop/recommendations", {"user": "u1"}, 200)["decision_id"]
    found = service.call("GET", f"shop/decisions/{id}", status=200)
    assert {"item", "slot", "mean", "bonus", "propensity", "explored"} <= found["slate"][0].keys()
    assert {"slot", "contributions", "counted"} <= found["why"]["items"][0].keys()
    service.learned("shop")

    def counted() -> bool:
        return bool(service.call("GET", "shop/overview", status=200)["totals"]["decisions"] >= 1)

    eventually(counted, "the decision is counted")  # what is told of it is made every two seconds
    told = service.call("GET", "shop/overview", status=200)
    assert {point["item"] for point in told["map"]["points"]} >= {"i0", "i29"}
    assert told["decisions"][0]["decision_id"]
    service.call("POST", "shop/versions/latest:promote", status=200)


def test_another_host_is_turned_away(service: RunningService) -> None:
    """Fails when a page of another name that resolves to loopback may speak to the service."""
    assert service.client.get("/health/live", headers={"host": "evil.example"}).status_code == 421


def test_the_log_can_be_exported(service: RunningService) -> None:
    """Fails when the export has no start line or misses decisions."""
    id = service.call("POST", "shop/recommendations", {"user": "u1"}, 200)["decision_id"]
    service.call("POST", "shop/feedback", {"decision_id": id, "items": {}}, 202)

    def exported() -> list[dict[str, object]]:
        return [json.loads(line) for line in service.client.get("/v1/recommenders/shop/log").text.splitlines()]

    wanted = {"items", "decision", "feedback"}  # feedback is exported once the learner has told what became of it
    eventually(lambda: wanted <= {str(line["event"]) for line in exported()}, "all events are exported")
    assert exported()[0]["event"] == "start"


def test_large_bodies_are_turned_away(service: RunningService) -> None:
    """Fails when a body beyond its limit is read, with or without a length."""
    url, kind = "/v1/recommenders/shop/recommendations", {"content-type": "application/json"}
    large = json.dumps({"eligible": ["x" * 100] * (SMALL // 100)}).encode()
    assert service.client.post(url, content=large, headers=kind).status_code == 413
    pieces = (large[start : start + 65536] for start in range(0, len(large), 65536))
    assert service.client.post(url, content=pieces, headers=kind).status_code == 413
