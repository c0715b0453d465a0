"""What was decided and why, and the whole log."""

import asyncio
import json
from collections.abc import Iterator
from typing import Annotated, Any

from fastapi import Path, Query
from fastapi.responses import StreamingResponse

from neuclust.errors import NeuclustError
from neuclust.recommender.choices import Choice
from neuclust.recommender.explaining.explain import explain
from neuclust.serve.api.answering.answers import Span, answer_of
from neuclust.serve.api.answering.messages import messages_of
from neuclust.serve.api.answering.served import Served
from neuclust.serve.api.bodies import Decisions, Found, moment
from neuclust.serve.api.problems import Refused
from neuclust.serve.api.routes.shared import Name, Serving, allowed, refusals, router
from neuclust.serve.events import decode
from neuclust.serve.fold.export import exported
from neuclust.serve.store.contract import DECISION, Row

routes = router()
MOST_FEEDBACK = 1_000  # messages that are told of one decision, the first ones
_explaining = asyncio.Semaphore(1)  # it computes much, and requests are more urgent


@routes.get(
    "/v1/recommenders/{name}/decisions", tags=["decisions"], response_model=Decisions, responses=refusals(),
    dependencies=[allowed("admin")],
)  # fmt: skip
async def list_decisions(
    name: Name, service: Serving, limit: Annotated[int, Query(ge=1, le=200)] = 20,
    before: Annotated[int | None, Query(ge=1, lt=2**63, description="events before this place in the log")] = None,
) -> Any:  # fmt: skip
    """The latest decisions, newest first."""
    served = await service.known(name)
    rows = await asyncio.to_thread(service.store.latest, served.id, DECISION, limit, before)
    kept = [row for row in rows if row.payload is not None]
    return {
        "decisions": [told(row, served.span) for row in kept],
        "next": str(rows[-1].seq) if len(rows) == limit else None,
    }


@routes.get(
    "/v1/recommenders/{name}/decisions/{id}", tags=["decisions"], response_model=Found, responses=refusals(410),
    dependencies=[allowed("admin")],
)  # fmt: skip
async def get_decision(
    name: Name, id: Annotated[str, Path(min_length=1, max_length=200)], service: Serving
) -> Any:  # fmt: skip
    """A decision as it was answered, why each item, by the model that serves now, and what became of its feedback."""
    served = await service.with_served(name, lambda served: served)
    row = (await asyncio.to_thread(service.store.find, served.id, DECISION, [id])).get(id)
    if row is None:
        raise Refused(404, f"expected a decision that was made, got {id!r:.100}", field="id")
    if row.payload is None:
        raise Refused(410, "expected a decision that is kept, but its user was erased", field="id")
    came = await asyncio.to_thread(service.store.find_about, served.id, id, MOST_FEEDBACK)
    expires = float(decode(row.payload)["expires_at"])
    messages = await asyncio.to_thread(messages_of, service.store, served.head, came, expires)
    async with _explaining:
        why = await asyncio.to_thread(_why, served, row)
    return {
        **told(row, served.span),
        "why": why,
        "feedback": messages,
    }


def told(row: Row, span: Span) -> dict[str, Any]:
    """A decision of the log, with its time and user."""
    assert row.payload is not None
    return {**answer_of(decode(row.payload), span), "user": row.user, "time": moment(row.time), "seq": row.seq}


def _why(served: Served, row: Row) -> Any:
    """What each column of user and item adds, or why that cannot be said."""
    assert row.payload is not None
    model = served.model
    if model is None:
        return {"note": "no model yet"}
    try:
        choice = Choice.from_json(decode(row.payload)["choice"])
        return explain(_Explained(model.schema, model.learner, served), choice).to_json()
    except NeuclustError as error:
        return {"note": str(error)}


class _Explained:
    """A model with the items of now."""

    def __init__(self, schema: Any, learner: Any, served: Served) -> None:
        self.schema, self.learner, self.stock = schema, learner, served.stock


@routes.get(
    "/v1/recommenders/{name}/log", tags=["decisions"], response_class=StreamingResponse,
    responses={**refusals(), 200: {"content": {"application/x-ndjson": {}}, "description": "one event per line"}},
    dependencies=[allowed("admin")],
)  # fmt: skip
async def export_log(
    name: Name, service: Serving,
    after: Annotated[int, Query(alias="from", ge=0, lt=2**63, description="events after this place")] = 0,
) -> StreamingResponse:  # fmt: skip
    """The log as JSON lines, to be judged by `neuclust evaluate`."""
    served = await service.with_served(name, lambda served: served)

    def lines() -> Iterator[str]:
        for event in exported(service.store, served.head, after):
            yield json.dumps(event, separators=(",", ":")) + "\n"

    return StreamingResponse(lines(), media_type="application/x-ndjson")
