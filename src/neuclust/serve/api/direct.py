"""The busiest routes without the framework's way to them: matching, dependencies and nested contexts cost it more than
the answer does.

Only what is in order is answered here, by the very functions of the routes. All else goes to the framework, which says
what is wrong with it: bodies that are no JSON or do not fit, other names, methods and kinds of content.
"""

import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from fastapi.routing import APIRoute
from pydantic import BaseModel, ValidationError
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from neuclust.errors import NeuclustError
from neuclust.serve.api.bodies import NAME
from neuclust.serve.api.problems import Refused, http_problem, respond
from neuclust.serve.api.service import Service
from neuclust.serve.api.strict import parsed

JSON = "application/json"
PATH = re.compile(rf"/v1/recommenders/(?P<name>{NAME.strip('^$')})/(?P<last>[a-z:]+)")


@dataclass(frozen=True, slots=True)
class Busy:
    """A route whose function takes a recommender's name, a body and the service; and the scope of its key."""

    route: APIRoute
    body: type[BaseModel]
    scope: str

    @property
    def last(self) -> str:
        """The part of its path behind the recommender's name."""
        return self.route.path.rpartition("/")[2]


class Direct:
    """Answers requests of busy routes that are in order, and hands all others on."""

    def __init__(self, app: ASGIApp, service: Service, busy: Mapping[str, Busy]) -> None:
        self.app, self.service, self.busy = app, service, busy

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        found = PATH.fullmatch(scope["path"]) if scope["type"] == "http" and scope["method"] == "POST" else None
        busy = None if found is None else self.busy.get(found["last"])
        headers = Headers(raw=[] if busy is None else scope["headers"])  # starting and ending have none
        if found is None or busy is None or headers.get("content-type") != JSON:
            await self.app(scope, receive, send)
            return
        try:
            content = await _content(receive)
        except HTTPException as error:  # it is too large
            await http_problem(error)(scope, receive, send)
            return
        if content is None:
            return  # whoever asked is gone
        try:
            body = busy.body.model_validate(parsed(content))
        except (Refused, ValidationError):
            await self.app(scope, _again(content, receive), send)
            return
        scope["route"] = busy.route  # what requests are counted by
        response = await self._answer(busy, found["name"], body, headers.get("authorization"))
        await response(scope, receive, send)

    async def _answer(self, busy: Busy, name: str, body: BaseModel, key: str | None) -> Response:
        function: Callable[[str, Any, Service], Awaitable[Response]] = busy.route.endpoint
        try:
            self.service.keys.allow(key, busy.scope, name)
            return await function(name, body, self.service)
        except NeuclustError as error:
            return respond(error)


async def _content(receive: Receive) -> bytes | None:
    """The whole body; None where the connection ended before."""
    message = await receive()
    if message["type"] == "http.request" and not message.get("more_body"):  # as nearly always
        return bytes(message.get("body", b""))
    parts = []
    while message["type"] == "http.request":
        parts.append(message.get("body", b""))
        if not message.get("more_body"):
            return b"".join(parts)
        message = await receive()
    return None


def _again(content: bytes, receive: Receive) -> Receive:
    """Receives a body that was read already, then what follows it."""
    left = [content]

    async def received() -> Message:
        return {"type": "http.request", "body": left.pop(), "more_body": False} if left else await receive()

    return received
