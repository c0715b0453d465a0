"""What all routes share: the service, the key's scope, the documents of refusals."""

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Path, Request

from neuclust.serve.api.bodies import NAME
from neuclust.serve.api.problems import MEDIA, Problem
from neuclust.serve.api.service import Service
from neuclust.serve.api.strict import StrictRoute

Name = Annotated[str, Path(pattern=NAME, description="the recommender", examples=["shop"])]
Told = {
    400: "the body is no JSON", 401: "a key is needed", 403: "the key may not do this", 404: "it is not there",
    409: "it contradicts what is there", 410: "its user was erased", 413: "the body is too large",
    415: "the body is of another kind", 421: "meant for another host", 422: "a value is refused",
    429: "too many requests", 503: "it cannot be done now",
}  # fmt: skip
ALWAYS = (400, 401, 403, 404, 413, 421, 422, 429, 503)


def refusals(*more: int) -> dict[int | str, dict[str, Any]]:
    """The refusals of a route, for the OpenAPI document."""
    content = {MEDIA: {"schema": {"$ref": f"#/components/schemas/{Problem.__name__}"}}}
    return {status: {"description": Told[status], "content": content} for status in sorted({*ALWAYS, *more})}


def router() -> APIRouter:
    """A router whose routes read their bodies strictly."""
    return APIRouter(route_class=StrictRoute)


async def service_of(request: Request) -> Service:
    """The service of the application; asynchronous, since others are called in threads of their own."""
    found: Service = request.app.state.service
    return found


Serving = Annotated[Service, Depends(service_of)]


def allowed(scope: str) -> Any:
    """A dependency that refuses requests without a key of this scope."""

    async def check(request: Request) -> None:
        service: Service = request.app.state.service
        service.keys.allow(request.headers.get("authorization"), scope, request.path_params.get("name"))

    check.__name__ = f"needs_{scope}"
    return Depends(check)
