"""Versions of the model, warm starts, and the erasure of users."""

import asyncio
import json
import secrets
import time
from typing import Annotated, Any

from fastapi import Path, Query, Request, Response

from neuclust.errors import DataError
from neuclust.serve.api.bodies import Erasure, Versions, moment
from neuclust.serve.api.problems import Refused
from neuclust.serve.api.routes.shared import Name, Serving, allowed, refusals, router
from neuclust.serve.api.service import Service
from neuclust.serve.api.uploads import read_history, read_id
from neuclust.serve.events import erasure_event
from neuclust.serve.store.contract import ERASURE

routes = router()
PATIENCE = 5.0  # seconds an erasure is waited for


@routes.get(
    "/v1/recommenders/{name}/versions", tags=["versions"], response_model=Versions, responses=refusals(),
    dependencies=[allowed("admin")],
)  # fmt: skip
async def list_versions(name: Name, service: Serving) -> Any:
    """Models that were published, newest first."""
    served = await service.with_served(name, lambda served: served)
    found = await asyncio.to_thread(service.store.versions, served.id)
    listed = [
        {
            "version": each.version, "events": each.seq, "lessons": each.lessons, "created": moment(each.time),
            "available": each.model, "state": each.state, "served": each.version == served.version,
        }
        for each in found
    ]  # fmt: skip
    return {"versions": listed, "promoted": served.head.promoted}


@routes.post(
    "/v1/recommenders/{name}/versions/{version}:promote", tags=["versions"], response_model=Versions,
    responses=refusals(), dependencies=[allowed("admin")],
)  # fmt: skip
async def promote(
    name: Name, version: Annotated[str, Path(pattern=r"^(latest|[1-9][0-9]{0,17})$")], service: Serving
) -> Any:  # fmt: skip
    """Pin the version that is served, or `latest`; learning goes on."""
    served = await service.with_served(name, lambda served: served)
    if version == "latest":
        await asyncio.to_thread(service.store.promote, served.id, None)
    else:
        known = await asyncio.to_thread(service.store.versions, served.id)
        if not any(each.version == int(version) and each.model for each in known):
            kept = ", ".join(str(each.version) for each in known if each.model) or "none yet"
            raise Refused(404, f"expected a version that is kept ({kept}), got {version}", field="version")
        await asyncio.to_thread(service.store.promote, served.id, int(version))
    return await list_versions(name, service)


@routes.delete(
    "/v1/recommenders/{name}/users/{id:path}/history", tags=["users"], response_model=Erasure, status_code=202,
    responses={**refusals(), 200: {"model": Erasure, "description": "it is done"}}, dependencies=[allowed("admin")],
)  # fmt: skip
async def erase(
    name: Name, id: Annotated[str, Path(min_length=1, max_length=1_000)], service: Serving, response: Response
) -> Any:  # fmt: skip
    """Erase what is known of a user: decisions, feedback and features. The hashes of the log stay valid."""
    user = read_id(id, "users")
    served = await service.with_served(name, lambda served: served)
    key = secrets.token_hex(8)
    await service.append(served.id, [erasure_event(key, user)])
    service.recent.forget(served.id, user)
    done = await _erased(service, served.id, key)
    response.status_code = 200 if done else 202
    return {"erasure_id": key, "done": done}


@routes.get(
    "/v1/recommenders/{name}/erasures/{id}", tags=["users"], response_model=Erasure, responses=refusals(),
    dependencies=[allowed("admin")],
)  # fmt: skip
async def get_erasure(
    name: Name, id: Annotated[str, Path(pattern=r"^[0-9a-f]{16}$")], service: Serving
) -> Any:  # fmt: skip
    """Whether an erasure is done."""
    served = await service.known(name)
    row = (await asyncio.to_thread(service.store.find, served.id, ERASURE, [id])).get(id)
    if row is None:
        raise Refused(404, f"expected an erasure that was asked for, got {id!r}", field="id")
    return {"erasure_id": id, "done": row.payload is None}


async def _erased(service: Service, id: int, key: str) -> bool:
    """Wait a moment for the learner."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        row = (await asyncio.to_thread(service.store.find, id, ERASURE, [key])).get(key)
        if row is None or row.payload is None:
            return True
        await asyncio.sleep(0.1)
    return False


@routes.post(
    "/v1/recommenders/{name}/history:batch", tags=["recommenders"], status_code=202,
    responses={
        **refusals(409, 415),
        202: {"description": "logged; the learner takes it from there", "content": {"application/json": {
            "schema": {"type": "object", "properties": {"decisions": {"type": "integer"}}}
        }}},
    },
    dependencies=[allowed("admin")],
    openapi_extra={"requestBody": {"required": True, "content": {
        "application/json": {"schema": {"type": "array", "items": {"type": "object"}}},
        "application/x-ndjson": {"schema": {"type": "string"}}, "text/csv": {"schema": {"type": "string"}},
        "application/vnd.apache.parquet": {"schema": {"type": "string", "format": "binary"}},
    }}},
)  # fmt: skip
async def put_history(
    name: Name, request: Request, service: Serving,
    columns: Annotated[str, Query(max_length=4_000, description="JSON: the columns' names by their part")] = "{}",
) -> Any:  # fmt: skip
    """Warm start: slates of another system, one row per decision and item, to learn from before the first request."""
    body, media = await request.body(), request.headers.get("content-type", "")
    served = await service.with_served(name, lambda served: served)
    try:
        names = json.loads(columns)
        if not isinstance(names, dict):
            raise ValueError("no object")
    except ValueError as error:
        raise DataError(f"columns: expected a JSON object of parts and columns, got {error!s:.100}") from None
    found = await asyncio.to_thread(read_history, body, media, names, served.settings)
    if found.events:
        await service.with_served(name, lambda served: service.fix_schema(served, found.context, None))
        await service.append(served.id, found.events)
    return {"decisions": found.slates}
