"""How every column is read and why: the table of the front door's `features` as JSON."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from neuclust.errors import ConfigError
from neuclust.recommender.encoders.feature_table import FeatureRow
from neuclust.recommender.items.stock import Stock
from neuclust.recommender.schema import Schema
from neuclust.serve.api.answering.served import Served

Told = dict[str, Any]


def columns_of(served: Served) -> Callable[[], Told]:
    """What is to be told, looked up in the desk's thread; the call itself may take long and needs none of that."""
    schema, stock = served.schema, served.stock
    if schema is not None:
        found = _told(schema, stock, frozen=True)
        return lambda: found
    copy = stock.copy()
    return lambda: _told(_draft(copy), copy, frozen=False)


def _draft(stock: Stock) -> Schema:
    """The schema as a first request without values would fix it."""
    features, items, users = stock.settings.features, stock.item_table(), stock.user_table()
    try:
        return Schema.fit(features, items, users, {})
    except ConfigError:  # crosses of request context, which comes with the first request
        return Schema.fit(replace(features, cross=None, match=None), items, users, {})


def _told(schema: Schema, stock: Stock, frozen: bool) -> Told:
    table = schema.table(stock.unlearned)
    settled = {
        (side.name, name): encoder.settled
        for side in (schema.items, schema.user)
        for name, encoder in zip(side.names, side.encoders, strict=True)
    }

    def row(each: FeatureRow) -> Told:
        side = schema.items.name if each.table == schema.items.name else schema.user.name
        return {
            "table": each.table, "column": each.column, "kind": each.kind, "width": each.width, "how": each.detail,
            "why": each.reason, "settled": frozen and settled.get((side, each.column), True),
        }  # fmt: skip

    columns = [row(each) for each in table]
    settled_all = frozen and all(each["settled"] for each in columns)
    return {"frozen": frozen, "settled": settled_all, "columns": columns, "crossed": list(table.crosses)}
