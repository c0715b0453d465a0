"""Items and users as they were at a line of a log."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from neuclust.recommender.items.catalogue import Catalogue, Users
from neuclust.recommender.schema import Schema
from neuclust.recommender.tables.tables import Table
from neuclust.recommender.tables.values import Id, Value, plain_id, value_from_json

Matrix = NDArray[np.float64]
RawRow = dict[str, Value]  # missing values are None


class Replay:
    """Takes in the events of a log that change items and users; codes of items are the same in all runs of the file.

    Items are encoded by the schema; without one their rows are empty. Rows that follow each other are added at once.
    """

    def __init__(self, schema: Schema | None = None) -> None:
        self._schema = schema
        self._catalogue, self._users = Catalogue(0 if schema is None else schema.items.width), Users(0)
        self._waiting: dict[str, dict[Id, RawRow]] = {"items": {}, "users": {}}

    @property
    def catalogue(self) -> Catalogue:
        """The items after the events so far."""
        self._add_items()
        return self._catalogue

    @property
    def users(self) -> Users:
        """The users after the events so far."""
        rows, self._waiting["users"] = self._waiting["users"], {}
        if rows:
            self._users.add(list(rows), _columns(list(rows.values())), np.zeros((len(rows), 0)))
        return self._users

    def take(self, event: Mapping[str, Any]) -> None:
        """The next event of the log; those of other kinds change nothing."""
        kind = event["event"]
        if kind in self._waiting:
            row = {str(name): value_from_json(value) for name, value in event["values"].items()}
            self._waiting[kind][plain_id(event["id"], "id")] = row
        elif kind == "removed":
            self.catalogue.remove(event["ids"])
        elif kind == "users-removed":
            self.users.remove(event["ids"])
        elif kind == "start":  # all items and users of the run follow
            self.catalogue.remove(self.catalogue.ids())
            self._users, self._waiting["users"] = Users(0), {}

    def _add_items(self) -> None:
        rows, self._waiting["items"] = self._waiting["items"], {}
        if not rows:
            return
        columns = _columns(list(rows.values()))
        self._catalogue.add(list(rows), columns, self._encoded(columns, len(rows)))

    def _encoded(self, columns: dict[str, list[Value]], count: int) -> Matrix:
        return np.zeros((count, 0)) if self._schema is None else self._schema.items.encode(Table(columns, count))


def _columns(rows: Sequence[RawRow]) -> dict[str, list[Value]]:
    names = dict.fromkeys(name for row in rows for name in row)
    return {name: [row.get(name) for row in rows] for name in names}
