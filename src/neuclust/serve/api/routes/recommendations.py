"""Slates and what came back for them."""

from typing import Any

from fastapi.responses import JSONResponse
from fastapi.routing import APIRoute
from pydantic import BaseModel

from neuclust.serve.api.bodies import Feedback, Feedbacks, Many, Recommend, Recommendation, Recommendations, Taken
from neuclust.serve.api.direct import Busy
from neuclust.serve.api.problems import problem
from neuclust.serve.api.routes.shared import Name, Serving, allowed, refusals, router

routes = router()
TAGS: list[Any] = ["recommendations"]


@routes.post(
    "/v1/recommenders/{name}/recommendations", tags=TAGS, response_model=Recommendation,
    responses=refusals(409, 410), dependencies=[allowed("recommend")],
)  # fmt: skip
async def recommend(name: Name, body: Recommend, service: Serving) -> Any:
    """A slate. The same `request_id` gives the same answer, whichever process is asked."""
    (found,) = await service.recommend(name, [body])
    if isinstance(found, Exception):
        raise found
    return JSONResponse(found)  # as it was logged: to check it against the schema again would cost more than to make it


@routes.post(
    "/v1/recommenders/{name}/recommendations:batch", tags=TAGS, response_model=Many, responses=refusals(),
    dependencies=[allowed("recommend")],
)  # fmt: skip
async def recommend_many(name: Name, body: Recommendations, service: Serving) -> Any:
    """Slates for many requests; each has its answer or its refusal."""
    await service.known(name)
    return JSONResponse({"results": [_result(found) for found in await service.recommend(name, body.requests)]})


@routes.post(
    "/v1/recommenders/{name}/feedback", tags=TAGS, response_model=Taken, status_code=202,
    responses={**refusals(409, 410), 200: {"model": Taken, "description": "it was there before"}},
    dependencies=[allowed("feedback")],
)  # fmt: skip
async def feedback(name: Name, body: Feedback, service: Serving) -> Any:
    """Clicks, durable when this answers; the learner takes them from the log."""
    (found,) = await service.feedback(name, [body])
    if isinstance(found, Exception):
        raise found
    id, duplicate = found
    made = {"feedback_id": id, "decision_id": body.decision_id, "duplicate": duplicate}
    return JSONResponse(made, 200 if duplicate else 202)


@routes.post(
    "/v1/recommenders/{name}/feedback:batch", tags=TAGS, response_model=Many, status_code=202, responses=refusals(),
    dependencies=[allowed("feedback")],
)  # fmt: skip
async def feedback_many(name: Name, body: Feedbacks, service: Serving) -> Any:
    """Many messages, durable when this answers; each has its result."""
    results = await service.feedback(name, body.feedback)
    taken = [_taken(each, found) for each, found in zip(body.feedback, results, strict=True)]
    return JSONResponse({"results": taken}, 202)


def _taken(body: Feedback, found: tuple[str, bool] | Exception) -> dict[str, Any]:
    if isinstance(found, Exception):
        return _result(found)
    return {"feedback_id": found[0], "decision_id": body.decision_id, "duplicate": found[1]}


def _result(found: dict[str, Any] | Exception) -> dict[str, Any]:
    if not isinstance(found, Exception):
        return found
    status, document, _ = problem(found)
    return {"status": status, "problem": document}


def busy_routes() -> dict[str, Busy]:
    """What is asked many times per second, by the last part of its path."""
    bodies: dict[Any, type[BaseModel]] = {
        recommend: Recommend, recommend_many: Recommendations, feedback: Feedback, feedback_many: Feedbacks,
    }  # fmt: skip
    found = [
        Busy(route, bodies[route.endpoint], "feedback" if "feedback" in route.path else "recommend")
        for route in routes.routes
        if isinstance(route, APIRoute)
    ]
    return {each.last: each for each in found}
