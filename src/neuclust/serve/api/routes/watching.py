"""What a person looks at: the page, the overview it shows, and the stream that keeps it fresh."""

import asyncio
import json
from collections.abc import AsyncIterator
from importlib.resources import files
from typing import Any

from fastapi import Request
from fastapi.responses import Response, StreamingResponse

from neuclust.errors import NeuclustError
from neuclust.serve.api.problems import Refused
from neuclust.serve.api.routes.decisions import told
from neuclust.serve.api.routes.shared import Name, Serving, allowed, refusals, router
from neuclust.serve.api.served import Served
from neuclust.serve.api.service import Service
from neuclust.serve.statistics.overview import overview
from neuclust.serve.store.contract import DECISION

routes = router()
PAGE = {
    "": ("index.html", "text/html; charset=utf-8"), "page.css": ("page.css", "text/css; charset=utf-8"),
    "page.js": ("page.js", "text/javascript; charset=utf-8"),
}  # fmt: skip
EVERY = 1.0  # seconds between overviews
LATEST = 20  # decisions on the page
MOST_WATCHERS = 32
_watchers = asyncio.Semaphore(MOST_WATCHERS)


@routes.get("/", include_in_schema=False)
@routes.get("/page.css", include_in_schema=False)
@routes.get("/page.js", include_in_schema=False)
async def page(request: Request) -> Response:
    """The page and its parts."""
    name, media = PAGE[request.url.path.strip("/")]
    return Response(files("neuclust.serve").joinpath("page", name).read_bytes(), media_type=media)


@routes.get(
    "/v1/recommenders/{name}/overview", tags=["watching"], responses=refusals(), dependencies=[allowed("admin")],
    response_model=dict[str, Any],
)  # fmt: skip
async def get_overview(name: Name, service: Serving) -> Any:
    """What the page shows."""
    served = await service.with_served(name, lambda served: served)
    return await asyncio.to_thread(_overview, service, served)


def _overview(service: Service, served: Served) -> dict[str, Any]:
    store = service.store
    head = store.head(served.name)
    if head is None:
        raise Refused(404, f"expected a recommender that is there, got {served.name!r}")
    latest = [row for row in store.latest(head.id, DECISION, LATEST) if row.payload is not None]
    health = {
        "stale": served.stale, "writing": service.writer.failing, "waiting": service.desk.waiting,
        "version": served.version, "items": len(served.stock.catalogue), "users": len(served.stock.users),
        "mode": served.configuration.mode, "policy": served.settings.policy.name,
    }  # fmt: skip
    return overview(
        head, store.progress(head.id), store.versions(head.id, LATEST), [told(row) for row in latest], health
    )


@routes.get(
    "/v1/recommenders/{name}/stream", tags=["watching"], response_class=StreamingResponse,
    responses={**refusals(), 200: {"content": {"text/event-stream": {}}, "description": "an overview per second"}},
    dependencies=[allowed("admin")],
)  # fmt: skip
async def stream(name: Name, service: Serving, request: Request) -> StreamingResponse:
    """Server-sent events: `overview`, once per second while something changed."""
    served = await service.with_served(name, lambda served: served)
    if _watchers.locked():
        raise Refused(503, f"expected at most {MOST_WATCHERS} streams at once, got more", after=5.0)

    async def events() -> AsyncIterator[str]:
        last = ""
        async with _watchers:
            while not await request.is_disconnected():
                try:
                    found = await asyncio.to_thread(_overview, service, served)
                except NeuclustError as error:
                    yield f"event: problem\ndata: {json.dumps(str(error))}\n\n"
                    return
                text = json.dumps(found, separators=(",", ":"))
                yield f"event: overview\ndata: {text}\n\n" if text != last else ": nothing new\n\n"
                last = text
                await asyncio.sleep(EVERY)

    return StreamingResponse(events(), media_type="text/event-stream", headers={"x-accel-buffering": "no"})
