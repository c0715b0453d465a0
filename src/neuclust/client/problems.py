"""Refusals of the service as errors: the sentence of its problem document, with the field it names."""

import json
from collections.abc import Mapping
from typing import Any

from neuclust.errors import DataError, NeuclustError

LONGEST = 500  # characters of an answer that is no problem document


class ServiceError(NeuclustError):
    """The service refused or failed; `status` is that of HTTP, 0 where it was not reached."""

    def __init__(self, message: str, *, field: str | None = None, group: str | None = None, status: int = 0) -> None:
        super().__init__(message, field=field, group=group)
        self.status = status


class Refused(ServiceError, DataError):
    """The request cannot be meant: a wrong value, an unknown column, a body that is too large."""


class NotFound(ServiceError):
    """There is no such recommender, item, user, decision or version."""


class Conflict(ServiceError):
    """Another body came under the same id before, or the change is not possible any more."""


class NotAllowed(ServiceError):
    """The key is missing, unknown, or has another scope."""


class Unavailable(ServiceError):
    """The service cannot be reached or asks to come later, also after all attempts."""


_KINDS: dict[int, type[ServiceError]] = {
    401: NotAllowed, 403: NotAllowed, 404: NotFound, 409: Conflict, 429: Unavailable, 502: Unavailable,
    503: Unavailable, 504: Unavailable,
}  # fmt: skip


def problem_error(status: int, body: bytes) -> ServiceError:
    """The error of an answer that is no success."""
    try:
        problem = json.loads(body)
    except ValueError:
        problem = None
    if not isinstance(problem, Mapping):
        problem = {"detail": body.decode(errors="replace").strip()[:LONGEST] or "an answer without a body"}
    return error_of(status, problem)


def error_of(status: int, problem: Mapping[str, Any]) -> ServiceError:
    """The error of a problem document."""
    kind = _KINDS.get(status, Refused if 400 <= status < 500 else ServiceError)
    field = problem.get("field")
    sentence = str(problem.get("detail") or problem.get("title") or f"the service answered {status}")
    if not isinstance(field, str):
        return kind(sentence, status=status)
    return kind(sentence.removeprefix(f"{field}: "), field=field, status=status)
