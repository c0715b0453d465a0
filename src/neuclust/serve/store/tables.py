"""The tables of a store as they are now, and the columns of each in the order in which rows are inserted."""

from typing import Literal

Type = Literal["integer", "real", "text", "bytes"]

TABLES: dict[str, dict[str, Type]] = {
    "meta": {"name": "text", "value": "integer"},
    "recommenders": {
        "id": "integer",
        "name": "text",
        "seq": "integer",
        "time": "real",
        "hash": "bytes",
        "tables": "integer",
        "frozen": "integer",
        "promoted": "integer",
        "base": "integer",
        "base_hash": "bytes",
        "created": "real",
        "dropped": "integer",
    },
    "events": {
        "recommender": "integer",
        "seq": "integer",
        "kind": "text",
        "time": "real",
        "payload": "bytes",
        "key": "text",
        "request": "text",
        "digest": "bytes",
        "user_id": "text",
        "hash": "bytes",
        "content": "bytes",
        "before": "bytes",
        "about": "text",
        "salt": "bytes",
    },
    "versions": {
        "recommender": "integer",
        "version": "integer",
        "seq": "integer",
        "time": "real",
        "lessons": "integer",
        "environment": "text",
        "model_hash": "bytes",
        "state_hash": "bytes",
    },
    "parts": {
        "recommender": "integer",
        "version": "integer",
        "blob": "text",
        "part": "integer",
        "content": "bytes",
    },
    "progress": {
        "recommender": "integer",
        "seq": "integer",
        "lessons": "integer",
        "time": "real",
        "told": "text",
    },
    "told": {"recommender": "integer", "seq": "integer", "content": "bytes"},
    "lease": {"one": "integer", "token": "integer", "holder": "text", "until": "real"},
    "api_keys": {
        "id": "text",
        "digest": "bytes",
        "scopes": "text",
        "recommender": "text",
        "created": "real",
        "note": "text",
    },
}


def columns(table: str, alias: str = "", without: int = 0) -> str:
    """The columns of a table from one on, as a SELECT lists them."""
    prefix = f"{alias}." if alias else ""
    return ", ".join(f"{prefix}{column}" for column in list(TABLES[table])[without:])


HEAD = columns("recommenders").removesuffix(", dropped")
EVENT = columns("events", without=1)
EVENT_OF_E = columns("events", alias="e", without=1)
