"""Errors as RFC 9457 problem documents: what was expected, what came, what to do, and the field it is about."""

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from fastapi import Request
from fastapi.responses import JSONResponse
from pydantic import BaseModel, Field
from starlette.exceptions import HTTPException

from neuclust.errors import ConfigError, DataError, NeuclustError
from neuclust.serve.store.contract import Damaged, Exists, StoreError

MEDIA = "application/problem+json"
LONGEST = 1_000  # characters of a detail


class Problem(BaseModel):
    """A problem document (RFC 9457)."""

    type: str = Field(examples=["about:blank"])
    title: str = Field(examples=["Unprocessable Content"])
    status: int = Field(examples=[422])
    detail: str = Field(examples=["k: expected a whole number from 1 to 5, the slate size, got 9"])
    field: str | None = Field(None, description="the part of the request that was refused")
    errors: list[dict[str, str]] | None = Field(
        None, description="every fault of a body that does not fit: `field` and `detail`; the first is told above"
    )


class Refused(NeuclustError):
    """A request that is answered with a problem document of this status."""

    def __init__(self, status: int, message: str, *, field: str | None = None, after: float | None = None) -> None:
        super().__init__(message, field=field)
        self.status, self.after = status, after  # `after`: seconds after which to try again


class Overloaded(Refused):
    """More is asked for than can be answered in time; nothing was done."""

    def __init__(self, message: str, after: float = 1.0) -> None:
        super().__init__(503, message, after=after)


def problem(error: Exception) -> tuple[int, dict[str, Any], Mapping[str, str]]:
    """Status, document and headers of an error."""
    status, headers = _status(error), {}
    if isinstance(error, Refused) and error.after is not None:
        headers["Retry-After"] = str(max(1, round(error.after)))
    if status == HTTPStatus.UNAUTHORIZED:
        headers["WWW-Authenticate"] = "Bearer"
    if status >= 500 and not isinstance(error, NeuclustError):
        detail = "an unexpected error, which is in the service's log; nothing was acknowledged"
    else:
        detail = str(error)
    return status, document(status, detail, getattr(error, "field", None) or _named(error)), headers


def document(status: int, detail: str, field: str | None = None) -> dict[str, Any]:
    """The document itself."""
    title = HTTPStatus(status).phrase
    found = {"type": "about:blank", "title": title, "status": status, "detail": detail[:LONGEST]}
    return found if field is None else {**found, "field": field}


def _status(error: Exception) -> int:
    if isinstance(error, Refused):
        return error.status
    if isinstance(error, Exists):
        return 409
    if isinstance(error, StoreError | Damaged):
        return 503
    return 422 if isinstance(error, DataError | ConfigError) else 500


def _named(error: Exception) -> str | None:
    """The field of an error whose sentence begins with it, as those of requests and feedback do."""
    if not isinstance(error, DataError):
        return None
    head, colon, _ = str(error).partition(":")
    return head if colon and len(head) <= 60 and " " not in head else None


def respond(error: Exception) -> JSONResponse:
    """The response to an error."""
    status, content, headers = problem(error)
    return JSONResponse(content, status, dict(headers), MEDIA)


async def on_error(_: Request, error: Exception) -> JSONResponse:
    """Errors of neuclust."""
    return respond(error)


async def on_http(_: Request, error: Exception) -> JSONResponse:
    """Errors of the framework: unknown routes and methods."""
    assert isinstance(error, HTTPException)
    return http_problem(error)


def http_problem(error: HTTPException) -> JSONResponse:
    """The response to an error of the framework."""
    made = document(error.status_code, str(error.detail))
    return JSONResponse(made, error.status_code, dict(error.headers or {}), MEDIA)
