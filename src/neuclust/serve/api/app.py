"""The application: routes, guards, refusals, and the OpenAPI document."""

import logging
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from importlib.metadata import version
from typing import Any

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from fastapi.openapi.utils import get_openapi
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from neuclust.errors import NeuclustError
from neuclust.serve.api.direct import Direct
from neuclust.serve.api.faults import on_invalid
from neuclust.serve.api.guards import Guards, Rates
from neuclust.serve.api.metrics import Metrics
from neuclust.serve.api.problems import Problem, on_error, on_http, respond
from neuclust.serve.api.routes import decisions, health, recommendations, recommenders, tables, versions, watching
from neuclust.serve.api.service import Service
from neuclust.serve.api.telemetry import span

LOG = logging.getLogger("neuclust.serve")
ROUTES = (recommendations, health, recommenders, versions, tables, decisions, watching)  # what is asked most first


def make_app(service: Service, hosts: Sequence[str] | None = None) -> FastAPI:
    """The application of a service; `hosts`: names it answers to, None: any."""

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        yield
        service.close()

    app = FastAPI(
        title="neuclust", version=version("neuclust"), openapi_url="/openapi.json", docs_url=None, redoc_url=None,
        summary="Choose K of many, again and again, and learn.", lifespan=lifespan, redirect_slashes=False,
        separate_input_output_schemas=False,
    )  # fmt: skip
    app.state.service = service
    for each in ROUTES:  # as they are: routers that are included are looked through for every request
        app.router.routes.extend(each.routes.routes)
    app.add_exception_handler(NeuclustError, on_error)
    app.add_exception_handler(HTTPException, on_http)
    app.add_exception_handler(RequestValidationError, on_invalid)
    app.openapi = lambda: _document(app)  # type: ignore[method-assign]
    app.add_middleware(Direct, service=service, busy=recommendations.busy_routes())
    app.add_middleware(Measured, metrics=service.metrics)
    app.add_middleware(Guards, rates=Rates(service.options.rate), hosts=hosts, full=lambda: service.desk.full)
    return app


def _document(app: FastAPI) -> dict[str, Any]:
    """OpenAPI 3.1, with problem documents and the key."""
    if app.openapi_schema is None:
        made = get_openapi(title=app.title, version=app.version, summary=app.summary, routes=app.routes)
        parts = made.setdefault("components", {})
        parts.setdefault("schemas", {})[Problem.__name__] = Problem.model_json_schema()
        parts["securitySchemes"] = {"key": {"type": "http", "scheme": "bearer"}}
        made["security"] = [{"key": []}, {}]
        app.openapi_schema = made
    return app.openapi_schema


class Measured:
    """Counts and times requests by route; turns what nobody expected into a problem document, and logs it."""

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self.app, self.metrics = app, metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        start, status = time.perf_counter(), 0

        async def noted(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        with span(scope["method"], Headers(scope=scope)) as told:
            try:
                await self.app(scope, receive, noted)
            except NeuclustError:
                raise
            except Exception as error:
                LOG.exception("unexpected error in %s %s", scope["method"], scope["path"])
                if status:  # the answer has begun: the connection must break
                    raise
                await respond(error)(scope, receive, noted)
            finally:
                route = getattr(scope.get("route"), "path", "none")
                told.update({"http.route": route, "http.response.status_code": status})
                self.metrics.observe(route, scope["method"], status, time.perf_counter() - start)
