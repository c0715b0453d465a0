"""Requests nobody thought of, made from the OpenAPI document: no 5xx, and no answer that it does not allow."""

from __future__ import annotations

import importlib
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from running_service import RunningService, running
from schemathesis import GenerationMode

checks: Any = importlib.import_module("schemathesis.specs.openapi.checks")
server_errors: Any = importlib.import_module("schemathesis.checks")
CHECKS = [
    server_errors.not_a_server_error, checks.status_code_conformance, checks.content_type_conformance,
    checks.response_headers_conformance, checks.response_schema_conformance,
]  # fmt: skip
ENDLESS = ("/v1/recommenders/{name}/stream",)  # an answer without an end
KNOWN = {"name": "shop", "id": "i1"}
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


def attack(service: RunningService, operation: Any, cases: int, mode: GenerationMode, key: int) -> Counter[int]:
    """So many cases for one operation; the statuses of their answers."""
    statuses: Counter[int] = Counter()
    deletes = operation.method.upper() == "DELETE" and operation.path == "/v1/recommenders/{name}"

    @seed(key)
    @settings(
        max_examples=cases, database=None, deadline=None, suppress_health_check=list(HealthCheck),
        phases=[Phase.generate, Phase.shrink],
    )  # fmt: skip
    @given(case=operation.as_strategy(generation_mode=mode), known=st.integers(0, 3))
    def send(case: Any, known: int) -> None:
        if known and not deletes:  # most requests are for something that is there
            for name, value in KNOWN.items():
                if case.path_parameters and name in case.path_parameters:
                    case.path_parameters[name] = value
        response = case.call(base_url=service.address, timeout=SECONDS)
        statuses[response.status_code] += 1
        case.validate_response(response, checks=CHECKS)

    send()
    return statuses


def attacked(service: RunningService, cases: int, report: Callable[..., None]) -> Counter[int]:
    """Cases for every operation, half of them what the document allows, half what it does not."""
    found: Counter[int] = Counter()
    known = operations(service)
    for at, operation in enumerate(known):
        for mode in (GenerationMode.POSITIVE, GenerationMode.NEGATIVE):
            try:
                found += attack(service, operation, -(-cases // (2 * len(known))), mode, at)
            except Exception as error:
                if "Unsatisfiable" in type(error).__name__ or "no negative" in str(error).lower():
                    continue  # a route without anything that could be wrong
                raise
    refused = sum(count for status, count in found.items() if 400 <= status < 500)
    report("requests made from the OpenAPI document", tried=found.total(), refused=refused, failed=0)
    return found


def test_no_request_breaks_the_service(service: RunningService, report_counts: Callable[..., None]) -> None:
    """Fails when a request made from the OpenAPI document gets a 5xx, or an answer that the document does not allow."""
    found = attacked(service, 1_200, report_counts)
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
