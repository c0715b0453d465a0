"""Requests nobody thought of, made from the OpenAPI document: no 5xx, and no answer that it does not allow."""

from __future__ import annotations

import importlib
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from hypothesis.errors import Unsatisfiable
from running_service import RunningService, running
from schemathesis import GenerationMode

checks: Any = importlib.import_module("schemathesis.specs.openapi.checks")
server_errors: Any = importlib.import_module("schemathesis.checks")
CHECKS = [
    server_errors.not_a_server_error, checks.status_code_conformance, checks.content_type_conformance,
    checks.response_headers_conformance, checks.response_schema_conformance,
]  # fmt: skip
ENDLESS = ("/v1/recommenders/{name}/stream",)  # an answer without an end
FOR_THE_POLICY = ("slate", "required", "at_most", "k")  # parts of a request that seldom fit what is there
SECONDS = 60.0  # for one answer


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningService]:
    with running(tmp_path_factory.mktemp("schemathesis")) as found:
        prepare(found)
        yield found


def prepare(service: RunningService) -> None:
    """A recommender with items, users, decisions and a model, so that requests get further than 404."""
    service.make("shop", policy="linucb")
    for at in range(5):
        service.call("PUT", f"shop/users/u{at}", {"age": 20 + at}, 201)
        answer = service.call("POST", "shop/recommendations", {"user": f"u{at}"}, 200)
        told = {"decision_id": answer["decision_id"], "items": {answer["slate"][0]["item"]: 1.0}}
        service.call("POST", "shop/feedback", told, 202)
    service.learned("shop")


def operations(service: RunningService) -> list[Any]:
    """Every operation of the OpenAPI document that ends."""
    schema: Any = schemathesis.openapi.from_url(f"{service.address}/openapi.json")
    found = [each.ok() for each in schema.get_all_operations()]
    return [each for each in found if each.path not in ENDLESS]


@dataclass(frozen=True)
class Known:
    """What is there, to be put into some of the requests: most that are made up are for nothing that is."""

    decision: str
    item: str

    @classmethod
    def of(cls, service: RunningService) -> Known:
        service.call("PATCH", "shop", {"mode": "live", "window": 3600.0}, 200)  # requests may have changed it
        answer = service.call("POST", "shop/recommendations", {"user": "u1"}, 200)
        return cls(answer["decision_id"], answer["slate"][0]["item"])

    def fill(self, case: Any, how: int) -> None:
        """Name what is there in the path, and in the body (`how` 2 and 3)."""
        path = case.path_parameters or {}
        if "name" in path:
            path["name"] = "shop"
        if "id" in path:
            ids = {"/items/": "i1", "/users/": "u1", "/decisions/": self.decision}
            path["id"] = next((id for part, id in ids.items() if part in case.operation.path), path["id"])
        if how == 1 or not isinstance(case.body, dict):
            return
        for body in (case.body, *_entries(case.body)):
            if isinstance(body.get("decision_id"), str):
                body |= {"decision_id": self.decision, "items": {self.item: 1.0}}
            for name in FOR_THE_POLICY if "recommendations" in case.operation.path and how == 3 else ():
                body.pop(name, None)


def _entries(body: dict[str, Any]) -> list[dict[str, Any]]:
    """The parts of a batch."""
    listed = [each for each in body.values() if isinstance(each, list)]
    return [entry for each in listed for entry in each if isinstance(entry, dict)]


def attack(service: RunningService, operation: Any, cases: int, mode: GenerationMode, key: int) -> Counter[int]:
    """So many cases for one operation; the statuses of their answers."""
    statuses: Counter[int] = Counter()
    deletes = operation.method.upper() == "DELETE" and operation.path == "/v1/recommenders/{name}"
    there = Known.of(service)

    @seed(key)
    @settings(
        max_examples=cases, database=None, deadline=None, suppress_health_check=list(HealthCheck),
        phases=[Phase.generate, Phase.shrink],
    )  # fmt: skip
    @given(case=operation.as_strategy(generation_mode=mode), how=st.integers(0, 3))
    def send(case: Any, how: int) -> None:
        if deletes and case.path_parameters["name"] == "shop":
            case.path_parameters["name"] = "nobody"
        elif how and not deletes:
            there.fill(case, how)
        response = case.call(base_url=service.address, timeout=SECONDS)
        statuses[response.status_code] += 1
        case.validate_response(response, checks=CHECKS)

    send()
    return statuses


def attacked(service: RunningService, cases: int, report: Callable[..., None]) -> Counter[int]:
    """Cases for every operation, half of them what the document allows, half what it does not."""
    found: Counter[int] = Counter()
    known = operations(service)
    each = -(-cases // (2 * len(known)))
    for at, operation in enumerate(known):
        count = each // 8 if operation.path.endswith("/history") else each  # each waits for the learner
        for mode in (GenerationMode.POSITIVE, GenerationMode.NEGATIVE):
            try:
                found += attack(service, operation, count, mode, at)
            except Unsatisfiable:  # nothing of this route could be wrong
                continue
    refused = sum(count for status, count in found.items() if 400 <= status < 500)
    report("requests made from the OpenAPI document", tried=found.total(), refused=refused, failed=0)
    return found


def test_no_request_breaks_the_service(service: RunningService, report_counts: Callable[..., None]) -> None:
    """Fails when a request made from the OpenAPI document gets a 5xx, or an answer that the document does not allow."""
    found = attacked(service, 1_300, report_counts)
    assert found.total() >= 1_000
    assert found[200] > 100
    assert {404, 422} <= set(found)
    assert service.client.get("/health/ready").status_code == 200


@pytest.mark.soak
def test_no_request_of_many_breaks_the_service(service: RunningService, report_counts: Callable[..., None]) -> None:
    """Fails when one of 100,000 requests made from the OpenAPI document gets a 5xx, or an answer it does not allow."""
    found = attacked(service, 105_000, report_counts)
    assert found.total() >= 100_000
    assert service.client.get("/health/ready").status_code == 200
