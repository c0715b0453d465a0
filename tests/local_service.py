"""A service and its learner in this process, asked through the application itself: quick, and nothing to wait for."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fastapi.testclient import TestClient

from neuclust.serve.api.app import make_app
from neuclust.serve.api.auth import Keys
from neuclust.serve.api.options import ServeOptions
from neuclust.serve.api.service import Service
from neuclust.serve.learner.lease import Lease
from neuclust.serve.learner.loop import Loop
from neuclust.serve.learner.publishing import Pace
from neuclust.serve.store.contract import Store
from neuclust.serve.store.opening import open_store

AT_ONCE = Pace(publish=0.0, share=0.0, state=0.0, progress=0.0, drained=0.0, summary=0.0, heartbeat=0.0)


@dataclass
class LocalService:
    """The application of a service, and a learner that works when it is told to."""

    store: Store
    client: TestClient
    service: Service
    loop: Loop = field(init=False)

    def __post_init__(self) -> None:
        self.loop = Loop(self.store, Lease(self.store), AT_ONCE)

    def call(self, method: str, path: str, body: Any = None, status: int | None = None, **more: Any) -> Any:
        """The JSON of an answer, whose status is checked."""
        answer = self.client.request(method, f"/v1/recommenders/{path}".rstrip("/"), json=body, **more)
        assert status is None or answer.status_code == status, answer.text
        return answer.json() if answer.content else None

    def make(self, name: str, items: int = 12, **configuration: Any) -> None:
        """A recommender of slates of three with so many items."""
        self.call("PUT", name, {"slate_size": 3, **configuration}, 201)
        rows = [{"id": f"i{at}", "price": at % 7, "kind": "abc"[at % 3]} for at in range(items)]
        self.call("POST", f"{name}/items:batch", rows, 200)

    def learn(self) -> None:
        """Have the whole log learned, told and served."""
        while self.loop.turn() == 0.0:
            pass
        self.service.follower.look()


@contextmanager
def local_service(folder: Path) -> Iterator[LocalService]:
    """A service on a new file."""
    with closing(open_store(f"sqlite:{folder / 'service.db'}")) as store:
        service = Service(store, ServeOptions(), Keys(store, required=False))
        service.follower.close()  # its turns are taken by `learn`
        with TestClient(make_app(service)) as client:
            yield LocalService(store, client, service)
