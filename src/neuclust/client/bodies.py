"""Paths and JSON bodies of calls and answers."""

import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote
from uuid import uuid4

from neuclust.client.arguments import Id, Values
from neuclust.client.problems import ServiceError, error_of
from neuclust.client.retrying import Body
from neuclust.errors import DataError


def segment(id: Id) -> str:
    """A name or id as one part of a path; "." and ".." would be taken for folders."""
    text = quote(str(id), safe="")
    if not text:
        raise DataError("expected an id of at least one character, got none", field="id")
    return text.replace(".", "%2E") if set(text) == {"."} else text


def as_body(content: Mapping[str, Any]) -> Body:
    """A JSON body; NaN and infinities are refused here already."""
    try:
        return Body(json.dumps(content, separators=(",", ":"), allow_nan=False, default=_plain).encode())
    except (TypeError, ValueError) as error:
        raise DataError(f"expected values that JSON can write, got others ({error!s:.200})") from None


def as_object(body: bytes | str) -> dict[str, Any]:
    """A JSON object the service answered."""
    try:
        told = json.loads(body)
    except ValueError:
        told = None
    if not isinstance(told, dict):
        raise ServiceError(f"expected a JSON object of the service, got {body!r:.200}; is it another service?")
    return told


def _plain(value: Any) -> Any:
    """Dates, and numbers and lists of other libraries, as JSON values."""
    from neuclust.recommender.tables.values import NotPlain, plain, value_to_json

    try:
        return value_to_json(plain(value))
    except NotPlain as error:
        raise TypeError(str(error)) from None


def request_body(asked: Values) -> dict[str, Any]:
    """A request without its empty parts, with an id under which it may be repeated."""
    body = {name: value for name, value in asked.items() if value is not None}
    return body | {"request_id": str(body.get("request_id") or uuid4().hex)}


def feedback_body(came: Values) -> dict[str, Any]:
    """A feedback without its empty parts, with an id under which it is taken once."""
    body = {name: value for name, value in came.items() if value is not None}
    items = {str(item): value for item, value in dict(body.get("items") or {}).items()}
    return body | {"items": items, "feedback_id": str(body.get("feedback_id") or uuid4().hex)}


def refusal(told: Values) -> ServiceError | None:
    """The error of an entry of a batch that was refused; None: it was not."""
    problem = told.get("problem")
    return error_of(int(told.get("status", 400)), problem) if isinstance(problem, Mapping) else None
