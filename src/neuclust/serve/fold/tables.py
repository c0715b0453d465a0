"""Items, users and configuration as the log tells them: what an API process follows, without learning."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from neuclust.errors import ConfigError, NeuclustError, StateError
from neuclust.recommender.freezing import Frozen, freeze
from neuclust.recommender.items.rows import Changes
from neuclust.recommender.items.stock import Stock, check_declared
from neuclust.recommender.schema import Schema, check_names
from neuclust.recommender.tables.values import Value
from neuclust.serve.configuration import ITEM_ID, USER_ID, Configuration, check_change
from neuclust.serve.events import decode, row_of, rows_of
from neuclust.serve.fold.blobs import State, read_state
from neuclust.serve.store.contract import (
    CONFIG,
    ERASURE,
    FREEZE,
    ITEMS,
    ITEMS_REMOVED,
    USERS,
    USERS_REMOVED,
    Row,
)


@dataclass
class Tables:
    """The tables after event `seq`. One thread changes it; `stock` is changed in place.

    Items are encoded by `schema`: that of the freeze, or of the newest model (`use`). An item that comes is encoded by
    itself; scales that still run move with models alone.
    """

    seq: int = 0
    schema: Schema | None = None
    frozen: Frozen | None = None  # until a model is used
    _configuration: Configuration | None = None
    _stock: Stock | None = None

    @classmethod
    def begin(cls) -> "Tables":
        """Before the first event."""
        return cls()

    @classmethod
    def from_state(cls, blob: bytes) -> "Tables":
        """The tables inside a state of the fold."""
        return cls.of_state(read_state(blob))

    @classmethod
    def of_state(cls, state: State) -> "Tables":
        """The tables inside a state that was read."""
        shop = state.shop
        return cls(state.seq, shop.schema, None, state.configuration, shop.stock)

    @property
    def configuration(self) -> Configuration:
        """The newest configuration."""
        if self._configuration is None:
            raise StateError("tables: expected a first event with the configuration, got none; apply the log")
        return self._configuration

    @property
    def stock(self) -> Stock:
        """Items and users, encoded once there is a schema."""
        if self._stock is None:
            raise StateError("tables: expected a first event with the configuration, got none; apply the log")
        return self._stock

    def apply(self, row: Row) -> str | None:
        """Follow an event; why it was refused, where it was: it has changed nothing then. Other kinds are passed by."""
        if row.seq <= self.seq:
            raise StateError(f"tables: expected an event after {self.seq}, got {row.seq}; apply the log in order")
        try:
            self._apply(row)
        except StateError:
            raise
        except NeuclustError as error:
            self.seq = row.seq
            return str(error)
        self.seq = row.seq
        return None

    def _apply(self, row: Row) -> None:
        if row.kind == CONFIG:
            new = Configuration.from_json(decode(row.payload))
            self._stock = configured(self._stock, self._configuration, new, self.schema is not None)
            self._configuration = new
        elif row.kind == FREEZE and self.schema is None:
            self.frozen = freeze(self.stock.settings, self.stock, row_of(decode(row.payload)))
            self.schema, self._stock = self.frozen.schema, self.frozen.stock.copy()
        elif row.kind in STOCKED and not (row.payload is None and row.kind in OF_USERS):
            change_stock(self.stock, row.kind, decode(row.payload), self.schema, observe=False)

    def use(self, schema: Schema) -> None:
        """Encode items by the schema of a newer model from now on; all of them anew where its scales have moved."""
        before, self.schema, self.frozen = self.schema, schema, None
        same = before is not None and before.version == schema.version
        if not same or (before is not None and not before.items.settled and _moved(before, schema)):
            self.stock.encode(schema)

    # --- what an API asks before it appends an event --------------------------------------------------------------

    def check_rows(self, kind: str, content: Mapping[str, Any]) -> None:
        """Refuse items or users that the log's readers would refuse."""
        table, stock = rows_of(content, ITEM_ID if kind == ITEMS else USER_ID), self.stock
        probe = Stock(stock.settings, type(stock.catalogue)(stock.catalogue.dim), type(stock.users)(0))
        if kind == ITEMS:
            probe.add_items(table, self.schema, observe=False)
        else:
            probe.add_users(table, self.schema)

    def check_configuration(self, new: Configuration) -> None:
        """Refuse a configuration that cannot follow the present one, or that the tables do not fit."""
        configured(self._stock, self._configuration, new, self.schema is not None)

    def check_freeze(self, row: Mapping[str, Value]) -> None:
        """Refuse a first request by which no schema can be made."""
        if not len(self.stock.catalogue):
            raise ConfigError("freeze: expected items to make features of, got none; add items first")
        check_names(self.stock.settings.features, self.stock.item_table(), self.stock.user_table())
        _ = freeze(self.stock.settings, self.stock, row).learner


STOCKED = (ITEMS, ITEMS_REMOVED, USERS, USERS_REMOVED, ERASURE)
OF_USERS = (USERS, USERS_REMOVED, ERASURE)


def change_stock(
    stock: Stock, kind: str, content: Mapping[str, Any], schema: Schema | None, observe: bool
) -> Changes | list[str]:
    """Apply an event of items or users; the ids that were removed, or what changed."""
    if kind == ITEMS:
        return stock.add_items(rows_of(content, ITEM_ID), schema, observe)
    if kind == USERS:
        return stock.add_users(rows_of(content, USER_ID), schema)
    ids = [content["id"]] if kind == ERASURE else list(dict.fromkeys(content["ids"]))
    if kind == ITEMS_REMOVED:  # others may have removed some of them in the meantime
        return list(map(str, stock.remove_items(ids_there(stock, ids))))
    return list(map(str, stock.remove_users([id for id in ids if id in stock.users.rows.codes])))


def ids_there(stock: Stock, ids: list[str]) -> list[str]:
    """The ids of items that are there."""
    absent = set(stock.catalogue.codes_of(ids)[1])
    return [id for id in ids if id not in absent]


def configured(stock: Stock | None, before: Configuration | None, new: Configuration, frozen: bool) -> Stock:
    """The stock under a new configuration, which is refused where it does not fit."""
    if stock is None or before is None:
        return Stock.of(new.read, [], None)
    check_change(before, new, frozen)
    if not frozen:
        for name, table in (("items", stock.item_table()), ("users", stock.user_table())):
            check_declared(new.read.features, table, name)
    return replace(stock, settings=new.read)


def _moved(before: Schema, after: Schema) -> bool:
    return before.items.to_json() != after.items.to_json()
