"""Columns an expert makes by hand of a shop's raw tables: full one-hots, scaled numbers, the crosses that matter."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

Reals = NDArray[np.float64]
Block = tuple[Reals, tuple[str, ...] | None]  # (n, width) and the level of every column, where columns are levels


def filled(values: Sequence[Any]) -> Reals:
    """Numbers, the mean where one is missing: (n,)."""
    known = [value for value in values if value is not None]
    return np.array([np.mean(known) if value is None else value for value in values], dtype=np.float64)


def quantile_bins(values: Sequence[Any], count: int) -> Reals:
    """One-hot bins that hold about as many values each, as `KBinsDiscretizer(strategy="quantile")` makes them."""
    real = np.asarray(values, dtype=np.float64)
    inner = np.quantile(real, np.arange(1, count) / count, method="averaged_inverted_cdf")
    return np.eye(count)[np.searchsorted(inner, real, side="right")]


def encoded(values: Sequence[Any], bins: int = 0) -> Block:
    """What an expert makes of a column: full one-hots (missing is a level of its own), tags over √(number of tags),
    vectors as they are, numbers and days scaled to [0, 1] (the mean where missing, and a column that says so)."""
    first = next(value for value in values if value is not None)
    if bins:
        return quantile_bins(values, bins), None
    if isinstance(first, list) and isinstance(first[0], float):
        return np.array(values, dtype=np.float64), None
    if isinstance(first, list | str):
        lists = [["missing"] if value is None else value if isinstance(value, list) else [value] for value in values]
        found = tuple(sorted({level for row in lists for level in row}))
        return np.array([[(level in row) / np.sqrt(len(row)) for level in found] for row in lists]), found
    if isinstance(first, datetime.date):
        values = [None if value is None else value.toordinal() for value in values]
    real, gaps = filled(values), np.array([value is None for value in values], dtype=np.float64)
    scaled = (real - real.min()) / (real.max() - real.min())
    return np.stack([scaled, gaps][: 1 + bool(gaps.any())], axis=1), None


@dataclass(frozen=True)
class HandMade:
    """Rows [1, item columns, user and context columns, crosses, matches] for the items of a request.

    A cross is the outer product of its columns' encodings, a match the product entry by entry (of the levels both
    columns have). `contexts` lists every context there is, in columns.
    """

    items: Mapping[str, Sequence[Any]]
    users: Mapping[str, Sequence[Any]]
    contexts: Mapping[str, Sequence[Any]]
    cross: Sequence[tuple[str, ...]] = ()
    match: Sequence[tuple[str, str]] = ()
    bins: Mapping[str, int] | None = None

    @cached_property
    def _blocks(self) -> dict[str, Block]:
        columns = {**self.items, **self.users, **self.contexts}
        return {name: encoded(values, (self.bins or {}).get(name, 0)) for name, values in columns.items()}

    @cached_property
    def _places(self) -> dict[str, dict[Any, int]]:
        """Where the encoding of a value of the context is."""
        return {name: {value: row for row, value in enumerate(values)} for name, values in self.contexts.items()}

    @cached_property
    def _matched(self) -> list[tuple[Reals, Reals]]:
        """Encodings of users and of items with the same columns, per match."""
        return [_aligned(self._blocks[user], self._blocks[item]) for user, item in self.match]

    def rows(self, user_row: int, context: Mapping[str, Any], item_rows: NDArray[np.int64]) -> Reals:
        """(n, d)."""
        own = {name: self._blocks[name][0][item_rows] for name in self.items}
        asked = {name: self._blocks[name][0][user_row] for name in self.users}
        asked |= {name: self._blocks[name][0][self._places[name][context[name]]] for name in self.contexts}
        count = len(item_rows)
        wide = {name: np.broadcast_to(row, (count, len(row))) for name, row in asked.items()}
        blocks = [np.ones((count, 1)), *own.values(), *wide.values()]
        for members in self.cross:
            product = np.ones((count, 1))
            for name in members:
                part = own[name] if name in own else wide[name]
                product = (product[:, :, None] * part[:, None, :]).reshape(count, -1)
            blocks.append(product)
        blocks += [of_items[item_rows] * of_users[user_row] for of_users, of_items in self._matched]
        return np.concatenate(blocks, axis=1)


def _aligned(user: Block, item: Block) -> tuple[Reals, Reals]:
    """Both encodings on the columns of the levels they share; vectors by position."""
    if user[1] is None or item[1] is None:
        return user[0], item[0]
    shared = [level for level in user[1] if level in item[1]]
    of_users, of_items = ([block[1].index(level) for level in shared if block[1]] for block in (user, item))
    return user[0][:, of_users], item[0][:, of_items]
