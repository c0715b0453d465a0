"""Requests nobody thought of, made from the OpenAPI document: no 5xx, and no answer that it does not allow."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from running_service import RunningService, running

from benchmarks import serve_schemathesis
from benchmarks.serve_schemathesis import Attack, measured, prepare


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningService]:
    with running(tmp_path_factory.mktemp("schemathesis")) as found:
        yield found


@pytest.fixture(scope="module")
def attack(service: RunningService) -> Attack:
    return Attack(service.address, prepare(service.address))


def test_no_request_breaks_the_service(
    service: RunningService, attack: Attack, report_counts: Callable[..., None]
) -> None:
    """Fails when a request made from the OpenAPI document gets a 5xx, or an answer that the document does not allow."""
    attack.run(1_300, 0)
    found = attack.statuses
    assert attack.faults == []
    assert found.total() >= 1_000
    assert found[200] > 100
    assert {404, 422} <= set(found)
    assert service.client.get("/health/ready").status_code == 200
    refused = sum(count for status, count in found.items() if 400 <= status < 500)
    report_counts("requests made from the OpenAPI document", tried=found.total(), refused=refused, failed=0)


def test_an_answer_that_the_document_does_not_allow_is_told(service: RunningService, attack: Attack) -> None:
    """Fails when a wrong answer passes, or ends the cases of other operations."""
    document = service.client.get("/openapi.json").json()
    document["paths"] = {path: document["paths"][path] for path in ("/health/ready", "/health/live")}
    document["paths"]["/health/ready"]["get"]["responses"] = {"204": {"description": "never so"}}
    strict = Attack(service.address, attack.shop, document)
    strict.run(4, 0)
    assert strict.statuses[200] >= 2
    assert "/health/ready" in strict.faults[0]
    assert all("/health/live" not in fault for fault in strict.faults)


def test_a_record_is_gone_on_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fails when a run that was ended begins anew, repeats its seeds, or forgets a fault."""
    pieces: list[int] = []

    def played(piece: int, cases: int) -> Any:
        pieces.append(piece)
        return Counter({200: cases - 1, 422: 1}), ["wrong"] if piece == 1 else []

    monkeypatch.setattr(serve_schemathesis, "played", played)
    record = tmp_path / "record.json"
    clock = iter([0.0, 1.0, 2.0, 3.0, *[4.0] * 20])
    monkeypatch.setattr(serve_schemathesis, "time", SimpleNamespace(monotonic=lambda: next(clock)))
    assert measured(20_000, seconds=2.5, record=record).cases == 10_000
    told = measured(20_000, record=record)
    assert pieces == [0, 1, 2, 3]
    assert (told.cases, told.refused, told.faults) == (20_000, 4, ["wrong"])
    assert json.loads(record.read_text())["cases"] == 20_000


@pytest.mark.soak
def test_no_request_of_many_breaks_the_service(report_counts: Callable[..., None]) -> None:
    """Fails when one of 100,000 requests made from the OpenAPI document gets a 5xx, or an answer it does not allow."""
    told = measured(100_000)
    assert told.faults == []
    report_counts("requests made from the OpenAPI document", tried=told.cases, refused=told.refused, failed=0)
