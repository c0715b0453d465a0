"""Spans of requests, and requests without OpenTelemetry."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from neuclust.serve.api import telemetry
from neuclust.serve.api.app import Measured
from neuclust.serve.api.metrics import Metrics

TRACE = "0af7651916cd43dd8448eb211c80319c"


async def _asked(app: Measured, sent: list[Any]) -> None:
    headers = [(b"traceparent", f"00-{TRACE}-b7ad6b7169203331-01".encode())]
    scope = {"type": "http", "method": "GET", "path": "/x", "headers": headers}

    async def receive() -> Any:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Any) -> None:
        sent.append(message)

    await app(scope, receive, send)


async def _answers(scope: Any, receive: Any, send: Any) -> None:
    await send({"type": "http.response.start", "status": 204, "headers": []})


def test_a_request_is_a_span_of_the_callers_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fails when a request makes no span, loses the caller's trace, or does not tell its status."""
    kept, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(kept))
    monkeypatch.setattr(trace, "get_tracer", provider.get_tracer)
    asyncio.run(_asked(Measured(_answers, Metrics()), []))
    (span,) = kept.get_finished_spans()
    assert span.context is not None
    assert f"{span.context.trace_id:032x}" == TRACE
    assert span.attributes is not None
    assert span.attributes["http.response.status_code"] == 204


def test_requests_are_answered_without_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fails when the service needs OpenTelemetry."""
    monkeypatch.setattr(telemetry, "_TRACING", False)
    sent: list[Any] = []
    asyncio.run(_asked(Measured(_answers, Metrics()), sent))
    assert sent[0]["status"] == 204
