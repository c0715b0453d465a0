"""JSON as it is taken in: finite numbers, moderate depth, every name once."""

import json
import re
from collections.abc import Callable, Coroutine
from typing import Any

from fastapi import Request, Response
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException

from neuclust.serve.api.problems import Refused

DEEPEST = 32  # arrays and objects inside each other
_TEXTS = re.compile(rb'"(?:[^"\\]|\\.)*"', re.DOTALL)
_BRACKETS = re.compile(rb"[\[\]{}]")


def parsed(body: bytes) -> Any:
    """A JSON text, refused where it has NaN, infinities, deep nesting or a name twice in one object."""
    if too_deep(body):
        raise Refused(400, f"body: expected at most {DEEPEST} arrays and objects inside each other, got more")
    try:
        return json.loads(body, parse_constant=_no_number, parse_float=_finite, object_pairs_hook=_once)
    except (ValueError, RecursionError) as error:
        raise Refused(400, f"body: expected JSON, got other text ({error!s:.200})") from None


def too_deep(body: bytes) -> bool:
    """Whether brackets are nested deeper than is allowed; those inside of texts are passed over."""
    if body.count(b"[") + body.count(b"{") <= DEEPEST:  # as nearly always
        return False
    depth = 0
    for bracket in _BRACKETS.finditer(_TEXTS.sub(b"", body)):
        depth += 1 if bracket[0] in (b"[", b"{") else -1
        if depth > DEEPEST:
            return True
    return False


def _no_number(text: str) -> float:
    raise ValueError(f"{text}, which is no JSON number")


def _finite(text: str) -> float:
    value = float(text)
    if value in (float("inf"), float("-inf")):
        raise ValueError(f"{text[:50]}, which is beyond the range of numbers")
    return value


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"{twice!r:.100} twice in one object")
    return found


class StrictRequest(Request):
    """A request whose JSON is read strictly."""

    async def json(self) -> Any:
        if not hasattr(self, "_strict"):
            try:
                self._strict = parsed(await self.body())
            except Refused as error:  # the framework hides errors that are not its own
                raise HTTPException(error.status, str(error)) from None
        return self._strict


class StrictRoute(APIRoute):
    """A route that reads its body strictly."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handler = super().get_route_handler()

        async def strict(request: Request) -> Response:
            return await handler(StrictRequest(request.scope, request.receive))

        return strict
