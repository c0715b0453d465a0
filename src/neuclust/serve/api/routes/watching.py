"""What a person looks at: the page, the overview it shows, and the stream that keeps it fresh."""

import asyncio
import json
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

from fastapi import Request
from fastapi.responses import Response, StreamingResponse

from neuclust.errors import NeuclustError
from neuclust.serve.api.answering.served import Served
from neuclust.serve.api.problems import Refused
from neuclust.serve.api.routes.decisions import told
from neuclust.serve.api.routes.shared import Name, Serving, allowed, refusals, router
from neuclust.serve.api.service import Service
from neuclust.serve.page import page_files
from neuclust.serve.statistics.clusters import item_map, sampled
from neuclust.serve.statistics.overview import chosen_lately, overview
from neuclust.serve.store.contract import DECISION

routes = router()
FILES = {"/" if name == "index.html" else f"/{name}": file for name, file in page_files().items()}
EVERY = 1.0  # seconds between overviews
LATEST = 20  # decisions on the page
MAP_EVERY = 15.0  # seconds after which a map of other items, or of another model, is made
MOST_MAPS = 64
MOST_WATCHERS = 32
_watchers = asyncio.Semaphore(MOST_WATCHERS)


async def page(request: Request) -> Response:
    """The page and its parts."""
    content, media = FILES[request.url.path]
    return Response(content, media_type=media)


for path in FILES:  # a route for each: what is asked for never becomes the name of a file
    routes.add_api_route(path, page, include_in_schema=False)


@routes.get(
    "/v1/recommenders/{name}/overview", tags=["watching"], responses=refusals(), dependencies=[allowed("admin")],
    response_model=dict[str, Any],
)  # fmt: skip
async def get_overview(name: Name, service: Serving) -> Any:
    """What the page shows."""
    served = await service.with_served(name, lambda served: served)
    return await _overview(service, served)


async def _overview(service: Service, served: Served) -> dict[str, Any]:
    drawn = await _map(service, served)
    return await asyncio.to_thread(_told, service, served, drawn)


@dataclass(frozen=True, slots=True)
class _Map:
    """A map, what it was made of, and when."""

    mark: tuple[int, int]
    made: float
    map: dict[str, Any]


_maps: dict[int, _Map] = {}  # by recommender; the oldest are dropped


async def _map(service: Service, served: Served) -> dict[str, Any] | None:
    """The map of a recommender's items, None before a first request fixed how they are read."""
    kept, mark, now = _maps.get(served.id), (served.head.tables, served.version), time.monotonic()
    if kept is not None and (kept.mark == mark or now - kept.made < MAP_EVERY):
        return kept.map
    model = served.model
    if model is None:
        return None
    chosen = chosen_lately(service.follower.progress.get(served.name))
    sample = await service.with_served(served.name, lambda served: sampled(served.stock.catalogue, chosen))
    drawn = await asyncio.to_thread(item_map, sample, model.learner.policy)
    _maps.pop(served.id, None)
    _maps[served.id] = _Map(mark, now, drawn)
    while len(_maps) > MOST_MAPS:
        del _maps[next(iter(_maps))]
    return drawn


def _told(service: Service, served: Served, drawn: dict[str, Any] | None) -> dict[str, Any]:
    store = service.store
    head = store.head(served.name)
    if head is None:
        raise Refused(404, f"expected a recommender that is there, got {served.name!r}")
    latest = [row for row in store.latest(head.id, DECISION, LATEST) if row.payload is not None]
    health = {
        "problem": service.follower.problem(served.name), "stale": served.stale,
        "writing": service.writer.failing, "waiting": service.desk.waiting,
        "version": served.version, "items": len(served.stock.catalogue), "users": len(served.stock.users),
        "mode": served.configuration.mode, "policy": served.settings.policy.name,
    }  # fmt: skip
    return overview(
        head,
        store.progress(head.id),
        store.versions(head.id, LATEST),
        [told(row, served.span) for row in latest],
        health,
        drawn,
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
                    found = await _overview(service, served)
                except NeuclustError as error:
                    yield f"event: problem\ndata: {json.dumps(str(error))}\n\n"
                    return
                text = json.dumps(found, separators=(",", ":"))
                yield f"event: overview\ndata: {text}\n\n" if text != last else ": nothing new\n\n"
                last = text
                await asyncio.sleep(EVERY)

    return StreamingResponse(events(), media_type="text/event-stream", headers={"x-accel-buffering": "no"})
