"""Columns of a raw table as numbers: indicators of frequent values, of tags in a list, and scaled amounts."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import polars as pl

from neuclust.data.options import Floats

OTHER = "other"


@dataclass(frozen=True, slots=True)
class Block:
    """Named columns of numbers, one row for each row of a table."""

    names: tuple[str, ...]  # (d,)
    values: Floats  # (n, d)


def joined(blocks: Iterable[Block], rows: int) -> Block:
    """The columns of all blocks side by side, (rows, Σ d)."""
    given = list(blocks)
    names = tuple(name for block in given for name in block.names)
    return Block(names, np.hstack([np.zeros((rows, 0)), *(block.values for block in given)]))


def one_hot(column: pl.Series, levels: int) -> Block:
    """1 in the column of the row's value: the `levels` most frequent ones, then all others; zeros for null.

    Equally frequent values are taken in the order of their text; `3.0` and `3` are one value.
    """
    return _indicators(pl.DataFrame({"row": np.arange(len(column)), "value": _plain(column)}), column, levels)


def multi_hot(lists: pl.Series, levels: int) -> Block:
    """1 in the column of every value in the row's list, values chosen as by `one_hot`; zeros for null and empty."""
    entries = pl.DataFrame({"row": np.arange(len(lists)), "value": lists}).explode("value")
    return _indicators(entries, lists, levels)


def _indicators(entries: pl.DataFrame, column: pl.Series, levels: int) -> Block:
    """Entries are pairs of a row and one of its values."""
    entries = entries.drop_nulls()
    counted = entries.group_by("value").len().sort(["len", "value"], descending=[True, False])
    frequent = sorted(counted["value"].head(levels).to_list(), key=_natural)
    names = [*frequent, *([OTHER] if counted.height > levels else [])]
    places = {value: place for place, value in enumerate(frequent)}
    columns = [places.get(value, len(names) - 1) for value in entries["value"].to_list()]
    values = np.zeros((len(column), len(names)))
    values[entries["row"].to_numpy(), columns] = 1.0
    return Block(tuple(f"{column.name}={name}" for name in names), values)


def split_list(column: pl.Series) -> pl.Series:
    """`12,65` as the list of its values; null stays null, empty parts are dropped."""
    parts = column.str.split(",").list.eval(pl.element().str.strip_chars())
    return parts.list.eval(pl.element().filter(pl.element().str.len_chars() > 0)).alias(column.name)


def log_scaled(column: pl.Series) -> Block:
    """ln(1 + max(x, 0)) divided by its largest value in the column, from 0 to 1; 0 for null."""
    amounts = np.log1p(np.maximum(column.fill_null(0).cast(pl.Float64).to_numpy(), 0.0))
    return Block((f"log {column.name}",), (amounts / max(float(amounts.max(initial=0.0)), 1e-12))[:, None])


def flags(column: pl.Series) -> Block:
    """1 where the number is above 0, else 0, also for null and negative codes of unknown values."""
    return Block((column.name,), (column.fill_null(0).cast(pl.Float64).to_numpy() > 0).astype(np.float64)[:, None])


def _plain(column: pl.Series) -> pl.Series:
    text = column.cast(pl.String).str.strip_chars().str.replace(r"^(-?\d+)\.0+$", "$1")
    return text.replace("", None)


def _natural(value: str) -> tuple[bool, int, str]:
    """9 before 10, and numbers before other text."""
    digits = value.isascii() and value.isdigit()
    return (not digits, int(value) if digits else 0, value)
