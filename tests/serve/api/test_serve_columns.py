"""How columns are read, through the service: the same as the front door prints, before and after the first request."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from local_service import LocalService, local_service

from neuclust import Features, Recommender
from neuclust.client.retrying import Retry, Transport
from neuclust.client.tables import RemoteTables

ITEMS: list[dict[str, Any]] = [
    {"id": f"i{at}", "price": 1.5 * at, "kind": "abc"[at % 3], "title": f"t {at}"} for at in range(12)
]


@pytest.fixture
def local(tmp_path: Path) -> Any:
    with local_service(tmp_path) as found:
        found.call(
            "PUT", "shop", {"slate_size": 3, "policy": "linucb", "features": {"items": {"price": "number"}}}, 201
        )
        found.call("POST", "shop/items:batch", ITEMS, 200)
        yield found


def _printed(shop: Recommender) -> list[tuple[Any, ...]]:
    return sorted((row.table, row.column, row.kind, row.width, row.detail, row.reason) for row in shop.features)


def _told(found: dict[str, Any]) -> list[tuple[Any, ...]]:
    return sorted(
        tuple(row[name] for name in ("table", "column", "kind", "width", "how", "why")) for row in found["columns"]
    )


def test_columns_are_told_as_the_front_door_prints_them(local: LocalService) -> None:
    """Fails when a column, its kind, what it became or the reason differs, or a draft is told as fixed."""
    shop = Recommender(ITEMS, "id", slate_size=3, policy="linucb", features=Features(items={"price": "number"}))
    draft = local.call("GET", "shop/features", status=200)
    assert (draft["frozen"], draft["settled"]) == (False, False)
    assert _told(draft) == _printed(shop)
    assert draft["crossed"] == list(shop.features.crosses)
    local.call("POST", "shop/recommendations", {"context": {"device": "phone"}}, 200)
    shop.recommend(context={"device": "phone"})
    fixed = local.call("GET", "shop/features", status=200)
    assert fixed["frozen"]
    assert _told(fixed) == _printed(shop)
    settled = {row["column"]: row["settled"] for row in fixed["columns"]}
    assert settled == {"price": False, "kind": True, "title": True, "device": False}  # twelve prices, one device
    assert not fixed["settled"]


def test_a_draft_of_nothing_and_of_crosses_with_context_is_told(local: LocalService) -> None:
    """Fails when columns cannot be looked at before there are items, or before a request brings what is crossed."""
    local.call("PUT", "empty", {"slate_size": 2}, 201)
    assert local.call("GET", "empty/features", status=200)["columns"] == []
    local.call("PUT", "crossed", {"slate_size": 2, "cross": [["kind", "device"]]}, 201)
    local.call("POST", "crossed/items:batch", ITEMS, 200)
    assert len(local.call("GET", "crossed/features", status=200)["columns"]) == 3
    local.call("GET", "nobody/features", status=404)


def test_the_client_asks_for_columns(local: LocalService) -> None:
    """Fails when the client has no way to see how columns are read."""
    found = RemoteTables(Transport(local.client, Retry()), "shop").features()
    assert [row["column"] for row in found["columns"]] == ["kind", "price", "title"]
