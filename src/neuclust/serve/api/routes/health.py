"""Whether the process lives, whether it can serve, and what it measures."""

import asyncio
import time
from typing import Any

from fastapi import Response

from neuclust.errors import NeuclustError
from neuclust.serve.api.bodies import Health
from neuclust.serve.api.routes.shared import Serving, allowed, refusals, router

routes = router()
STUCK = 30.0  # seconds after which one job of the desk counts as stuck


@routes.get("/health/live", tags=["health"], response_model=Health, responses=refusals())
async def live() -> Any:
    """The process answers."""
    return {"status": "ok"}


@routes.get("/health/ready", tags=["health"], response_model=Health, responses=refusals())
async def ready(service: Serving, response: Response) -> Any:
    """The database can be written and slates can be chosen; whether learners keep up and which
    recommender has a problem of its own is told beside it."""
    problem = ""
    try:
        await asyncio.to_thread(service.store.check)
    except NeuclustError as error:
        problem = str(error)
    if not problem and not service.follower.begun:
        problem = "expected recommenders and their models to be read, but the process has just started"
    since = service.desk.busy_since
    if not problem and since is not None and time.monotonic() - since > STUCK:
        problem = "expected slates to be chosen in time, but one job takes very long"
    found = {
        name: {"events": head.seq, "learned": progress.seq if (progress := service.follower.progress.get(name)) else 0,
               "stale": served.stale if (served := service.served.get(name)) else "",
               "problem": service.follower.problem(name)}
        for name, head in service.follower.heads.items()
    }  # fmt: skip
    response.status_code = 503 if problem else 200
    return {"status": "unavailable" if problem else "ok", "detail": problem, "recommenders": found}


@routes.get(
    "/metrics", tags=["health"], response_class=Response, dependencies=[allowed("metrics")],
    responses={**refusals(), 200: {"content": {"text/plain": {}}, "description": "for Prometheus"}},
)  # fmt: skip
async def metrics(service: Serving) -> Response:
    """Prometheus's exposition format."""
    return Response(service.metrics.text(), media_type="text/plain; version=0.0.4; charset=utf-8")
