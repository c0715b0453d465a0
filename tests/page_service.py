"""The page behind a small service: real overviews of simulated shops, real server-sent events, and nothing else."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, cast

import uvicorn
from fastapi import FastAPI, Request, Response
from fastapi.responses import JSONResponse, StreamingResponse
from simulated_log import Shop

from neuclust.recommender.choices import Choice
from neuclust.recommender.explaining.explain import explain
from neuclust.serve.api.answering.columns import columns_of
from neuclust.serve.api.answering.served import Served
from neuclust.serve.page import POLICY, page_files
from neuclust.serve.statistics.clusters import item_map, sampled
from neuclust.serve.statistics.overview import KEY, overview
from neuclust.serve.statistics.statistics import Statistics
from neuclust.serve.statistics.units import KEY as UNITS
from neuclust.serve.statistics.units import Units
from neuclust.serve.store.contract import DECISION, Head, Progress, Version


@dataclass
class Watched:
    """A shop with its statistics; `None` for a recommender without items."""

    name: str
    shop: Shop | None = None
    statistics: Statistics = field(default_factory=Statistics)
    promoted: int | None = None
    units: Units = field(default_factory=Units)
    lost: list[dict[str, Any]] = field(default_factory=list)  # messages of every decision that learning refused
    drawn: dict[str, Any] | None = None  # the map, which changes with the items alone

    def play(self, decisions: int) -> None:
        assert self.shop is not None
        for row, told in self.shop.play(decisions):
            self.statistics.apply(row, told)

    def answers(self) -> list[dict[str, Any]]:
        """The latest decisions as the service answers them, newest first."""
        rows = [] if self.shop is None else [row for row, _ in self.shop.rows if row.kind == DECISION][-20:]
        return [answer(row.key or "", json.loads(row.payload or b"")) for row in reversed(rows)]

    def overview(self) -> dict[str, Any]:
        seq, now = (1, 1e6) if self.shop is None else (len(self.shop.rows), self.shop.clock.now)
        head = Head(1, self.name, seq, now, b"", 1, 1, self.promoted, 0, b"", 1e6)
        progress = Progress(
            seq,
            seq // 2,
            now,
            {KEY: self.statistics.view(), UNITS: self.units.to_json(), "counts": {"refused": len(self.lost)}},
        )
        versions = [Version(number, number, now, 10 * number, True, number > 1) for number in (3, 2, 1)]
        if self.drawn is None and self.shop is not None and self.shop.live.learner is not None:
            self.drawn = item_map(sampled(self.shop.live.stock.catalogue), self.shop.live.learner.policy)
        shown = versions if self.shop else []
        return overview(head, progress, shown, self.answers(), {"status": "ready", "store": "writable"}, self.drawn)

    def decision(self, id: str) -> dict[str, Any] | None:
        """A decision with its reasons and what came back."""
        rows = [] if self.shop is None else self.shop.rows
        found = next((json.loads(row.payload or b"") for row, _ in rows if row.key == id), None)
        if found is None or self.shop is None:
            return None
        said = [json.loads(row.payload or b"") for row, _ in rows if row.key == f"f-{id}"]
        shop = self.shop.live if found["arm"] == "live" else self.shop.baseline
        why = explain(shop, Choice.from_json(found["choice"])).to_json()["items"]
        return {**answer(id, found), "why": why, "feedback": [*said, *self.lost]}


def answer(id: str, content: dict[str, Any]) -> dict[str, Any]:
    choice = content["choice"]
    chances = choice["propensities"] or [None] * len(choice["items"])
    slate = [
        {"item": item, "slot": slot, "mean": mean, "bonus": bonus, "propensity": chance, "explored": explored}
        for slot, (item, mean, bonus, chance, explored) in enumerate(
            zip(choice["items"], choice["means"], choice["bonuses"], chances, choice["explored"], strict=True), 1
        )
    ]
    others = {"mode": content["arm"], "policy": choice["policy"], "model_version": 3, "reason": choice["reason"]}
    share = (choice["design"] or {}).get("share")
    return {"decision_id": id, "slate": slate, "exploration": share, **others}


def application(shops: dict[str, Watched], key: str | None = None) -> FastAPI:
    """The routes that the page uses; with a key, all under /v1 need it."""
    app, files = FastAPI(), page_files()

    @app.middleware("http")
    async def guarded(request: Request, call_next: Any) -> Any:
        if key and request.url.path.startswith("/v1") and request.headers.get("authorization") != f"Bearer {key}":
            return JSONResponse({"status": 401, "title": "no key", "detail": "expected an API key."}, 401)
        return await call_next(request)

    @app.get("/v1/recommenders")
    def listed() -> Any:
        return {
            "recommenders": [
                {"name": name, "items": len(each.shop.stock) if each.shop else 0} for name, each in shops.items()
            ]
        }

    @app.get("/v1/recommenders/{name}/overview")
    def shown(name: str) -> Any:
        return shops[name].overview()

    @app.get("/v1/recommenders/{name}/stream")
    async def streamed(name: str) -> StreamingResponse:
        async def events() -> AsyncIterator[str]:
            before = ""
            while True:
                text = json.dumps(shops[name].overview())
                if text != before:
                    yield f"event: overview\ndata: {text}\n\n"
                before = text
                await asyncio.sleep(0.2)

        return StreamingResponse(events(), media_type="text/event-stream")

    @app.get("/v1/recommenders/{name}/decisions/{id}")
    def decided(name: str, id: str) -> Any:
        found = shops[name].decision(id)
        return found if found is not None else JSONResponse({"detail": "expected a decision that is there"}, 404)

    @app.get("/v1/recommenders/{name}/features")
    def columns(name: str) -> Any:
        shop = shops[name].shop
        if shop is None:
            return {"frozen": False, "settled": False, "columns": [], "crossed": []}
        return columns_of(cast("Served", shop.live))()

    @app.post("/v1/recommenders/{name}/versions/{version}:promote")
    def promote(name: str, version: str) -> Any:
        shops[name].promoted = None if version == "latest" else int(version)
        return {"promoted": shops[name].promoted}

    @app.get("/{file}")
    @app.get("/")
    def page(file: str = "index.html") -> Response:
        if file not in files:
            return Response(status_code=404)
        content, kind = files[file]
        return Response(content, media_type=kind, headers={"Content-Security-Policy": POLICY})

    return app


@contextmanager
def serving(shops: dict[str, Watched], key: str | None = None, port: int = 0) -> Iterator[int]:
    """Serve on a port of this machine, of its own choice where none is given, until the end of the block."""
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(("127.0.0.1", port))
    config = uvicorn.Config(application(shops, key), log_level="critical", timeout_graceful_shutdown=0, lifespan="off")
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    try:
        yield listener.getsockname()[1]
    finally:
        server.should_exit = True
        thread.join(30)
        listener.close()
