"""Recommenders: make, look at, change, delete."""

import asyncio
from typing import Any

from fastapi import Response

from neuclust.errors import ConfigError
from neuclust.serve.api.answering.columns import columns_of
from neuclust.serve.api.answering.served import Served
from neuclust.serve.api.bodies import Changes, Columns, Configuration, Described, Listed, moment
from neuclust.serve.api.problems import Refused
from neuclust.serve.api.routes.shared import Name, Serving, allowed, refusals, router
from neuclust.serve.api.service import Service
from neuclust.serve.configuration import Configuration as Kept
from neuclust.serve.events import config_event
from neuclust.serve.store.contract import Exists, Head

routes = router()


@routes.put(
    "/v1/recommenders/{name}", tags=["recommenders"], status_code=201, response_model=Described,
    responses={**refusals(409), 200: {"model": Described, "description": "it was there with the same configuration"}},
    dependencies=[allowed("admin")],
)  # fmt: skip
async def put_recommender(name: Name, body: Configuration, service: Serving, response: Response) -> Any:
    """Make a recommender. Items may come before or after; the first request fixes how columns are read."""
    wanted = _kept(body.model_dump())
    try:
        await asyncio.to_thread(service.store.create, name, config_event(wanted).payload)
    except Exists:
        found = await service.with_served(name, lambda served: served.configuration)
        if found != wanted:
            advice = "PATCH what may change, or DELETE it first"
            raise Refused(409, f"expected a new name or the same configuration, got another one; {advice}") from None
        response.status_code = 200
    return await described(service, name)


@routes.get(
    "/v1/recommenders", tags=["recommenders"], response_model=Listed, responses=refusals(),
    dependencies=[allowed("recommend")],
)  # fmt: skip
async def list_recommenders(service: Serving) -> Any:
    """All recommenders."""
    heads = await asyncio.to_thread(service.store.heads)
    found = []
    for head in heads:
        problem = service.follower.problem(head.name)
        if problem and head.name not in service.served:  # the others are told all the same
            found.append(_unopened(head, problem))
            continue
        try:
            found.append(await described(service, head.name))
        except Refused:  # deleted meanwhile
            continue
    return {"recommenders": found}


@routes.get(
    "/v1/recommenders/{name}", tags=["recommenders"], response_model=Described, responses=refusals(),
    dependencies=[allowed("recommend")],
)  # fmt: skip
async def get_recommender(name: Name, service: Serving) -> Any:
    """A recommender as it is now."""
    return await described(service, name)


@routes.get(
    "/v1/recommenders/{name}/features", tags=["recommenders"], response_model=Columns, responses=refusals(),
    dependencies=[allowed("admin")],
)  # fmt: skip
async def get_features(name: Name, service: Serving) -> Any:
    """How every column is read and why, and how users and items meet; a draft before the first request."""
    tell = await service.with_served(name, columns_of)
    return await asyncio.to_thread(tell)


@routes.patch(
    "/v1/recommenders/{name}", tags=["recommenders"], response_model=Described, responses=refusals(409),
    dependencies=[allowed("admin")],
)  # fmt: skip
async def patch_recommender(name: Name, body: Changes, service: Serving) -> Any:
    """Change what may change while it runs; entries that are left out stay."""
    given = body.model_dump(exclude_unset=True)
    served = await service.with_served(name, lambda served: served)
    before = served.configuration.to_json()
    if "holdout" in given:
        given["holdout"] = {**before["holdout"], **given["holdout"]}
    wanted = _kept({**before, **given})
    await service.with_served(name, lambda served: served.tables.check_configuration(wanted))
    await service.append(served.id, [config_event(wanted)])
    return await described(service, name)


@routes.delete(
    "/v1/recommenders/{name}", tags=["recommenders"], status_code=204, responses=refusals(),
    dependencies=[allowed("admin")],
)  # fmt: skip
async def delete_recommender(name: Name, service: Serving) -> None:
    """Delete a recommender with its log and models."""
    if not await asyncio.to_thread(service.store.delete, name):
        raise Refused(404, f"expected a recommender that is there, got {name!r}")
    await asyncio.wrap_future(service.desk.call(lambda: service.drop(name)))


def _kept(content: dict[str, Any]) -> Kept:
    """A configuration as the log keeps it, refused where the front door would refuse it."""
    exploration = content.get("exploration")
    if isinstance(exploration, dict):
        content["exploration"] = {name: value for name, value in exploration.items() if value is not None}
    try:
        return Kept.from_json(content)
    except ConfigError:
        raise
    except (TypeError, ValueError) as error:
        raise ConfigError(f"expected a configuration that works, got {error!s:.200}") from None


async def described(service: Service, name: str) -> dict[str, Any]:
    """What is told of a recommender."""
    progress = service.follower.progress.get(name)

    def look(served: Served) -> dict[str, Any]:
        head = served.head
        return {
            "name": name, "created": moment(head.created), "configuration": served.configuration.to_json(),
            "items": len(served.stock.catalogue), "users": len(served.stock.users), "events": head.seq,
            "learned_events": 0 if progress is None else min(progress.seq, head.seq),
            "lessons": 0 if progress is None else progress.lessons, "model_version": served.version,
            "promoted": head.promoted, "frozen": served.schema is not None, "problem": service.follower.problem(name),
        }  # fmt: skip

    return await service.with_served(name, look)


def _unopened(head: Head, problem: str) -> dict[str, Any]:
    """What the store alone knows of a recommender that cannot be opened."""
    return {
        "name": head.name, "created": moment(head.created), "configuration": {}, "items": 0, "users": 0,
        "events": head.seq, "learned_events": 0, "lessons": 0, "model_version": 0, "promoted": head.promoted,
        "frozen": head.frozen > 0, "problem": problem,
    }  # fmt: skip
