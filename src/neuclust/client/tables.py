"""The tables of items and users of a recommender of the service."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from neuclust.client.answers import Changes
from neuclust.client.arguments import Id, Values
from neuclust.client.bodies import as_body, as_object, segment
from neuclust.client.parts import parts
from neuclust.client.retrying import Body, Transport

LINES = "application/x-ndjson"


@dataclass(frozen=True, slots=True)
class RemoteTables:
    """The tables of items and users of a recommender."""

    transport: Transport
    name: str

    def put_item(self, id: Id, values: Values) -> bool:
        """Add an item or replace its values; whether it is new. It can be recommended at once."""
        return self._put("items", id, values)

    def put_items(self, table: Any, id: str = "id") -> Changes:
        """Add or replace the items of any table the front door takes; `id` is the column of their ids."""
        return self._put_all("items", table, id)

    def remove_item(self, id: Id) -> None:
        """Take an item out; what was learned of it stays."""
        self.transport.call("DELETE", f"{self.path}/items/{segment(id)}")

    def items(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """Every item with its values, in the order of their ids."""
        return self._rows("items")

    def put_user(self, id: Id, values: Values) -> bool:
        """Add a user or replace their values; whether they are new."""
        return self._put("users", id, values)

    def put_users(self, table: Any, id: str = "id") -> Changes:
        """Add or replace the users of any table the front door takes; `id` is the column of their ids."""
        return self._put_all("users", table, id)

    def remove_user(self, id: Id) -> None:
        """Take a user's row out; `erase` deletes their history too."""
        self.transport.call("DELETE", f"{self.path}/users/{segment(id)}")

    def users(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """Every user with their values, in the order of their ids."""
        return self._rows("users")

    def features(self) -> dict[str, Any]:
        """How every column is read and why (`columns`), and how users and items meet (`crossed`).

        A draft until the first request has fixed it (`frozen`).
        """
        return self._get("features")

    def put_history(self, rows: Iterable[Values], columns: Mapping[str, str] | None = None) -> int:
        """Warm start: slates of another system, a row per decision and item; how many slates it has."""
        content = b"\n".join(as_body(row).content for row in rows)
        params = {"columns": as_body(columns or {}).content.decode()}
        reply = self.transport.call("POST", f"{self.path}/history:batch", Body(content, LINES), params)
        return int(as_object(reply.body)["decisions"])

    @property
    def path(self) -> str:
        """Where the recommender is below the address of the service."""
        return f"/v1/recommenders/{segment(self.name)}"

    def _put(self, kind: str, id: Id, values: Values) -> bool:
        told = as_object(self.transport.call("PUT", f"{self.path}/{kind}/{segment(id)}", as_body(values)).body)
        return bool(told.get("created"))

    def _put_all(self, kind: str, table: Any, id: str) -> Changes:
        done = Changes(0, 0, 0)
        for part in parts(table, kind, id):
            told = as_object(self.transport.call("POST", f"{self.path}/{kind}:batch", Body(part, LINES)).body)
            done += Changes(*(int(told.get(name, 0)) for name in ("added", "changed", "rows")))
        return done

    def _rows(self, kind: str) -> Iterator[tuple[str, dict[str, Any]]]:
        params: dict[str, str | int] = {"limit": 1_000}
        while True:
            told = as_object(self.transport.call("GET", f"{self.path}/{kind}", params=params).body)
            yield from ((str(row["id"]), row["values"]) for row in told[kind])
            if told.get("next") is None:
                return
            params["after"] = str(told["next"])

    def _get(self, path: str, **params: str | int) -> dict[str, Any]:
        return as_object(self.transport.call("GET", f"{self.path}/{path}", params=params).body)
