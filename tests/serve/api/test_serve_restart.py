"""A service that is started again answers at once with what it had learned, also where models were damaged."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

from running_service import RunningService, running
from stores import damage_blob

from neuclust.serve.store.opening import open_store


def _ask(service: RunningService, **body: Any) -> Any:
    return service.call("POST", "shop/recommendations", body, 200)


def _damage_models(address: str) -> None:
    with closing(open_store(address)) as store:
        head = store.head("shop")
        assert head is not None
        for version in store.versions(head.id):
            damage_blob(store, head.id, version.version, "model")


def test_a_start_answers_with_what_was_learned(tmp_path: Path) -> None:
    """Fails when the first answers after a start are errors or of an untrained policy, or when models that cannot be
    read stop a recommender whose state is whole."""
    with running(tmp_path) as service:
        service.make("shop", policy="linucb")
        for at in range(5):
            choice = _ask(service, user=f"u{at}", request_id=f"r{at}")
            told = {"decision_id": choice["decision_id"], "items": {choice["slate"][0]["item"]: 1.0}}
            service.call("POST", "shop/feedback", told, 202)
        service.learned("shop")
        first = _ask(service, request_id="r0", user="u0")
        service.stop()
        service.start()
        assert _ask(service, user="u9")["model_version"] > 0
        assert _ask(service, request_id="r0", user="u0") == first
        service.stop()
        _damage_models(service.db)
        service.start()
        assert _ask(service, user="u9")["model_version"] > 0
