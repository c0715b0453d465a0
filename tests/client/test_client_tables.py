"""Tables of every kind arrive as the same JSON lines, in parts; ids stay one part of a path."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pytest
from scripted_server import Scripted, Seen, scripted

from neuclust.client import Client, Retry, parts
from neuclust.errors import DataError

ROWS: list[dict[str, Any]] = [
    {"sku": 17, "price": 9.5, "category": "toys", "sale": True, "added": date(2026, 1, 2)},
    {"sku": 18, "price": None, "category": "books", "sale": False, "added": date(2026, 3, 4)},
]
LINES = [
    {"id": "17", "price": 9.5, "category": "toys", "sale": True, "added": {"date": "2026-01-02"}},
    {"id": "18", "price": None, "category": "books", "sale": False, "added": {"date": "2026-03-04"}},
]
DONE = Scripted(200, {"added": 1, "changed": 1, "rows": 2})


def sent(seen: Seen) -> list[Any]:
    return [json.loads(line) for *_, body in seen.calls for line in body.splitlines()]


@pytest.mark.parametrize("kind", ["rows", "polars", "csv", "parquet"])
def test_every_table_of_the_front_door_is_sent(kind: str, tmp_path: Path) -> None:
    """Fails when a kind of table loses a value or its type."""
    frame = pl.DataFrame(ROWS)
    frame.write_csv(tmp_path / "items.csv")
    frame.write_parquet(tmp_path / "items.parquet")
    table = {"rows": ROWS, "polars": frame}.get(kind, tmp_path / f"items.{kind}")
    with scripted([DONE]) as seen:
        changes = Client(seen.address).recommender("shop").put_items(table, id="sku")
    assert sent(seen) == LINES
    assert (changes.added, changes.changed, changes.rows) == (1, 1, 2)
    method, path, headers, _ = seen.calls[0]
    assert (method, path) == ("POST", "/v1/recommenders/shop/items:batch")
    assert headers["Content-Type"] == "application/x-ndjson"


def test_pandas_and_users(tmp_path: Path) -> None:
    """Fails when a pandas table or the table of users is not sent."""
    with scripted([DONE]) as seen:
        Client(seen.address).recommender("shop").put_users(pd.DataFrame({"id": ["a", "b"], "age": [19, 34]}))
    assert sent(seen) == [{"id": "a", "age": 19}, {"id": "b", "age": 34}]
    assert seen.calls[0][1] == "/v1/recommenders/shop/users:batch"


def test_large_tables_go_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fails when one body holds a whole catalogue, or a row is lost between two."""
    rows = [{"id": n, "name": "x" * 100} for n in range(12_001)]
    with scripted([DONE]) as seen:
        changes = Client(seen.address).recommender("shop").put_items(rows)
    assert len(seen.calls) == 3
    assert [row["id"] for row in sent(seen)] == [str(n) for n in range(12_001)]
    assert changes.rows == 6
    monkeypatch.setattr(parts, "MOST_BYTES", 1_000)
    assert max(len(part) for part in parts.parts(rows[:100], "items", "id")) <= 1_000


def test_what_json_cannot_write_is_refused_here() -> None:
    """Fails when NaN, an object or an ambiguous id column reaches the service."""
    with scripted([DONE]) as seen:
        shop = Client(seen.address, retries=Retry(times=0)).recommender("shop")
        with pytest.raises(DataError, match="JSON"):
            shop.put_item("a", {"price": float("nan")})
        with pytest.raises(DataError, match="JSON"):
            shop.put_item("a", {"price": object()})
        with pytest.raises(DataError, match="expected the column 'sku'"):
            shop.put_items([{"id": 1}], id="sku")
        with pytest.raises(DataError, match="no other column named id"):
            shop.put_items([{"id": 1, "sku": 2}], id="sku")
        with pytest.raises(DataError, match="at least one character"):
            shop.put_item("", {})
        assert seen.calls == []
        shop.put_item("a", {"added": date(2026, 1, 2)})
    assert sent(seen) == [{"added": {"date": "2026-01-02"}}]


@pytest.mark.parametrize(
    ("id", "path"), [("a/b", "a%2Fb"), ("..", "%2E%2E"), ("ä ?#", "%C3%A4%20%3F%23"), (7, "7"), ("a.b", "a.b")]
)
def test_ids_are_one_part_of_the_path(id: str | int, path: str) -> None:
    """Fails when an id leads to another route."""
    with scripted([Scripted(200, {"created": True})]) as seen:
        assert Client(seen.address).recommender("shop").put_item(id, {"price": 1})
    assert seen.calls[0][:2] == ("PUT", f"/v1/recommenders/shop/items/{path}")


def test_items_are_listed_page_by_page() -> None:
    """Fails when the pages of a listing are not followed."""
    rows = [{"id": "a", "values": {"n": 1}}, {"id": "b", "values": {"n": 2}}]
    pages = [{"items": rows, "next": "b", "total": 3}, {"items": rows[:1], "next": None, "total": 3}]
    with scripted([Scripted(200, page) for page in pages]) as seen:
        found = list(Client(seen.address).recommender("shop").items())
    assert found == [("a", {"n": 1}), ("b", {"n": 2}), ("a", {"n": 1})]
    assert seen.calls[1][1].endswith("items?limit=1000&after=b")
