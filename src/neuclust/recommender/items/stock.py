"""The items and users of a recommender, raw and encoded, and the columns that came too late to be learned."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from neuclust.errors import ConfigError, DataError
from neuclust.recommender.encoders.side import fit_side
from neuclust.recommender.items.catalogue import Catalogue, Users
from neuclust.recommender.items.rows import Changes
from neuclust.recommender.options import Settings
from neuclust.recommender.schema import Schema
from neuclust.recommender.tables.columns import Transformer
from neuclust.recommender.tables.features import Features
from neuclust.recommender.tables.tables import Table, ids_of, read_table
from neuclust.recommender.tables.values import Id, Value

Matrix = NDArray[np.float64]
MOST_UNLEARNED = 1_000  # names that are kept of columns that are not learned


@dataclass
class Stock:
    """Items and users; their raw values are kept, so that a new schema can encode them again."""

    settings: Settings
    catalogue: Catalogue
    users: Users
    unlearned: dict[str, set[str]] = field(default_factory=lambda: {"items": set(), "users": set(), "context": set()})

    @classmethod
    def of(cls, settings: Settings, items: Any, users: Any) -> "Stock":
        """The stock of two tables, not encoded yet; `users` None: none are known."""
        if users is not None and settings.user_id is None:
            raise ConfigError("expected the name of the column with the users' ids, got none", field="user_id")
        stock = cls(settings, Catalogue(0), Users(0))
        stock.add_items(items, None)
        if users is not None:
            stock.add_users(users, None)
        return stock

    def add_items(self, items: Any, schema: Schema | None, observe: bool = True) -> Changes:
        """Add items, or replace those that are known; a row replaces all values of its item.

        Without `observe` scales that still run stay as they are, and only these items are encoded.
        """
        ids, table = _read(items, self.settings.item_id, "items")
        if schema is None:
            check_declared(self.settings.features, table, "items")
            return self.catalogue.add(ids, table.columns, np.zeros((len(ids), 0)))
        encoded = schema.items.encode(table)  # refuses what cannot be encoded, before anything changes
        settled = schema.items.settled or not observe
        if not settled:
            for at in range(len(table)):
                schema.items.observe(table.row(at))
            encoded = schema.items.encode(table)
        changes = self.catalogue.add(ids, table.columns, encoded)
        self.note("items", table.columns.keys() - schema.items.reasons.keys())
        if not settled:  # few items yet: their scale moves with every one
            self.catalogue = _reencoded(self.catalogue, schema)
        return changes

    def add_users(self, users: Any, schema: Schema | None) -> Changes:
        """Add users, or replace those that are known."""
        if self.settings.user_id is None:
            raise ConfigError("expected the name of the column with the users' ids, got none", field="user_id")
        ids, table = _read(users, self.settings.user_id, "users")
        if schema is None:
            check_declared(self.settings.features, table, "users")
        else:
            schema.user.encode(table)  # refuses what cannot be encoded
            self.note("users", table.columns.keys() - schema.user.reasons.keys())
        return self.users.add(ids, table.columns, np.zeros((len(ids), 0)))

    def remove_items(self, ids: Iterable[Id]) -> list[Id]:
        """Take items out; unknown ids are refused before anything changes."""
        return self.catalogue.remove(ids)

    def remove_users(self, ids: Iterable[Id]) -> list[Id]:
        """Take users out with all their values; unknown ids are refused before anything changes."""
        return self.users.remove(ids)

    def item_table(self) -> Table:
        """The raw values of the items that are there."""
        codes = self.catalogue.all_codes()
        return Table(self.catalogue.rows.only(codes), len(codes))

    def user_table(self) -> Table:
        """The raw values of the users."""
        return Table(self.users.rows.only(np.arange(len(self.users))), len(self.users))

    def encode(self, schema: Schema) -> None:
        """Encode all items by a schema that was just made."""
        self.catalogue = _reencoded(self.catalogue, schema)

    def note(self, table: str, names: Iterable[str]) -> None:
        """Remember columns that are not learned, since the schema was frozen without them."""
        known = self.unlearned[table]
        known.update(sorted(names)[: MOST_UNLEARNED - len(known)])  # sorted: the same ones in every process

    def copy(self) -> "Stock":
        """An independent copy."""
        unlearned = {table: set(names) for table, names in self.unlearned.items()}
        return Stock(self.settings, self.catalogue.copy(), self.users.copy(), unlearned)


def _read(source: Any, id_column: str, name: str) -> tuple[list[Id], Table]:
    """Ids, and the table without their column."""
    table = read_table(source, name)
    if not table.columns and not len(table):
        if isinstance(source, str | Path):
            wanted = f"expected the column {id_column!r:.100} with the ids"
            raise DataError(f"{name}: {wanted}, got {str(source)!r:.200}, which has no columns; was it written whole?")
        return [], table
    ids = ids_of(table, id_column, name)
    columns = {column: values for column, values in table.columns.items() if column != id_column}
    return ids, Table(columns, len(table), table.lines)


def check_declared(features: Features, table: Table, name: str) -> None:
    """Refuse values that are not of their column's declared kind, while there is no schema that would."""
    kinds = features.declared(name, table.columns)
    declared = {column: kind for column, kind in kinds.items() if not isinstance(kind, Transformer)}
    given = {column: table.columns[column] for column in declared if column in table.columns}
    columns = {column: values for column, values in given.items() if any(value is not None for value in values)}
    fit_side(Table(columns, len(table), table.lines), declared, name, features.levels)


def _reencoded(catalogue: Catalogue, schema: Schema) -> Catalogue:
    """The same items under a schema, also where they have no columns at all."""
    length = len(catalogue)

    def encoded(columns: Mapping[str, Sequence[Value]]) -> Matrix:
        return schema.items.encode(Table({name: list(values) for name, values in columns.items()}, length))

    return catalogue.reencoded(encoded)
