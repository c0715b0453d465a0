"""Items and users: put, list, take out, one by one and many at once."""

import asyncio
from collections.abc import Sequence
from itertools import islice
from typing import Annotated, Any

from fastapi import Path, Query, Request, Response

from neuclust.errors import DataError
from neuclust.recommender.tables.values import value_to_json
from neuclust.serve.api.answering.served import Served
from neuclust.serve.api.bodies import Batch, Entity, Features, Items, Put, Users
from neuclust.serve.api.problems import Refused
from neuclust.serve.api.routes.shared import Name, Serving, allowed, refusals, router
from neuclust.serve.api.service import Service
from neuclust.serve.api.uploads import (
    CSV,
    LINES,
    PARQUET,
    Row,
    content_of,
    events_of,
    read_id,
    read_row,
    read_rows,
    removal_of,
)

routes = router()
Id = Annotated[str, Path(min_length=1, max_length=1_000)]
AT_ONCE = 4  # events of a batch that are written and taken in together, so that requests between them wait little
CHECKED = 1_000  # rows that are checked together
MOST = {"items": 1_000_000, "users": 10_000_000}
UPLOAD = {
    "requestBody": {
        "required": True,
        "content": {
            "application/json": {"schema": {"type": "array", "items": {"type": "object"}}},
            LINES: {"schema": {"type": "string"}},
            CSV: {"schema": {"type": "string"}},
            PARQUET: {"schema": {"type": "string", "format": "binary"}},
        },
    }
}


def _table_routes(table: str, one: str, listed: Any) -> None:
    """The routes of one table."""

    @routes.put(
        f"/v1/recommenders/{{name}}/{table}/{{id:path}}", tags=[table], response_model=Put, status_code=201,
        responses={**refusals(409), 200: {"model": Put, "description": "it was there and is replaced"}},
        dependencies=[allowed("admin")], operation_id=f"put_{one}", summary=f"Put a {one}",
        description=f"The body is the {one}'s features. Once acknowledged it counts in the next request.",
    )  # fmt: skip
    async def put(name: Name, id: Id, body: Features, service: Serving, response: Response) -> Any:
        row = read_row(table, id, body)
        added, _ = await put_rows(service, name, table, [row])
        response.status_code = 201 if added else 200
        return {"id": row.id, "created": bool(added)}

    @routes.post(
        f"/v1/recommenders/{{name}}/{table}:batch", tags=[table], response_model=Batch, responses=refusals(409, 415),
        dependencies=[allowed("admin")], operation_id=f"put_{table}", summary=f"Put many {table}",
        description="JSON (a list of objects), JSON lines, CSV or Parquet; refused as a whole where a row is wrong.",
        openapi_extra=UPLOAD,
    )  # fmt: skip
    async def batch(
        name: Name, request: Request, service: Serving,
        id: Annotated[str | None, Query(max_length=200, description="the column with the ids; default: id")] = None,
    ) -> Any:  # fmt: skip
        body, media = await request.body(), request.headers.get("content-type", "")
        rows = await asyncio.to_thread(read_rows, table, body, media, id)
        rows = list({row.id: row for row in rows}.values())  # of rows of one id the last
        added, changed = await put_rows(service, name, table, rows)
        return {"added": added, "changed": changed, "rows": len(rows)}

    @routes.get(
        f"/v1/recommenders/{{name}}/{table}", tags=[table], response_model=listed, responses=refusals(),
        dependencies=[allowed("admin")], operation_id=f"list_{table}", summary=f"List {table}",
    )  # fmt: skip
    async def list_all(
        name: Name, service: Serving, after: Annotated[str | None, Query(max_length=1_000)] = None,
        limit: Annotated[int, Query(ge=1, le=1_000)] = 100,
    ) -> Any:  # fmt: skip
        found, following, total = await service.with_served(name, lambda served: _page(served, table, after, limit))
        return {table: found, "next": following, "total": total}

    @routes.get(
        f"/v1/recommenders/{{name}}/{table}/{{id:path}}", tags=[table], response_model=Entity, responses=refusals(),
        dependencies=[allowed("admin")], operation_id=f"get_{one}", summary=f"Look at a {one}",
    )  # fmt: skip
    async def get(name: Name, id: Id, service: Serving) -> Any:
        def look(served: Served) -> dict[str, Any]:
            known = read_id(id, table)
            return {"id": known, "values": _values(_there(served, table, known), table, known)}

        return await service.with_served(name, look)

    @routes.delete(
        f"/v1/recommenders/{{name}}/{table}/{{id:path}}", tags=[table], status_code=204, responses=refusals(),
        dependencies=[allowed("admin")], operation_id=f"delete_{one}", summary=f"Take a {one} out",
        description="What was learned stays, and so do open decisions.",
    )  # fmt: skip
    async def delete(name: Name, id: Id, service: Serving) -> None:
        served = await service.with_served(name, lambda served: _there(served, table, read_id(id, table)))
        await service.append(served.id, [removal_of(table, id)])
        await service.with_served(name, lambda _: None)


async def put_rows(service: Service, name: str, table: str, rows: Sequence[Row]) -> tuple[int, int]:
    """Rows that are durable and taken in: how many are new, and how many were there."""
    if not rows:
        await service.known(name)
        return 0, 0
    served, added = await service.with_served(name, lambda served: (served, _checked(served, table, rows)))
    events = events_of(table, rows)
    many = AT_ONCE if table == "items" else 1_000
    while part := await asyncio.to_thread(lambda: list(islice(events, many))):
        written = await service.append(served.id, part)
        await service.with_served(name, lambda _: None)
        refused = [served.refused[each.seq] for each in written if each.seq in served.refused]
        if refused:  # the columns were fixed between the check and the write
            raise DataError(f"{table}: {refused[0]}")
    return added, len(rows) - added


def _checked(served: Served, table: str, rows: Sequence[Row]) -> int:
    """How many rows are new; refused where one could not be taken in, or where there are too many."""
    for start in range(0, len(rows), CHECKED):
        served.tables.check_rows(table, content_of(rows[start : start + CHECKED]))
    ids = [row.id for row in rows]
    new = sum(not _has(served, table, id) for id in ids)
    known = len(served.stock.catalogue if table == "items" else served.stock.users)
    if known + new > MOST[table]:
        raise DataError(f"{table}: expected at most {MOST[table]:,}, got {known + new:,}; take some out")
    return new


def _has(served: Served, table: str, id: str) -> bool:
    if table == "users":
        return served.stock.users.raw(id) is not None
    return not served.stock.catalogue.codes_of([id])[1]


def _there(served: Served, table: str, id: str) -> Served:
    if not _has(served, table, id):
        raise Refused(404, f"expected one of the {table} that are there, got {id!r:.100}", field="id")
    return served


def _page(served: Served, table: str, after: str | None, limit: int) -> tuple[list[dict[str, Any]], str | None, int]:
    """A part of a table in the order in which its rows came."""
    stock = served.stock
    ids = stock.catalogue.ids() if table == "items" else stock.users.ids()
    start = 0
    if after is not None:
        if not _has(served, table, after):
            raise Refused(404, f"expected one of the {table} that are there, got {after!r:.100}", field="after")
        start = ids.index(after) + 1
    found = [{"id": id, "values": _values(served, table, str(id))} for id in ids[start : start + limit]]
    return found, str(ids[start + limit - 1]) if start + limit < len(ids) else None, len(ids)


def _values(served: Served, table: str, id: str) -> dict[str, Any]:
    stock = served.stock
    raw = stock.users.raw(id) or {} if table == "users" else stock.catalogue.raw(stock.catalogue.rows.codes[id])
    return {name: value_to_json(value) for name, value in raw.items() if value is not None}


_table_routes("items", "item", Items)
_table_routes("users", "user", Users)
