"""Spans of OpenTelemetry around requests, where its API is installed; whoever runs the service says where they go."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

try:
    from opentelemetry import propagate, trace
except ImportError:  # an extra: nothing is traced without it
    _TRACING = False
else:
    _TRACING = True


@contextmanager
def span(method: str, headers: Mapping[str, str]) -> Iterator[dict[str, Any]]:
    """A span of a request, a part of the caller's trace; entries that are put into the result become its attributes."""
    told: dict[str, Any] = {}
    if not _TRACING:
        yield told
        return
    tracer, parent = trace.get_tracer("neuclust.serve"), propagate.extract(headers)
    with tracer.start_as_current_span(method, parent, trace.SpanKind.SERVER) as made:
        yield told
        made.set_attributes({"http.request.method": method, **told})
        if "http.route" in told:
            made.update_name(f"{method} {told['http.route']}")
