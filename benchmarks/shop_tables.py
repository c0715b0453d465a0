"""Raw columns as shops have them.

A table is a list of rows, a row a dict of plain values: text, numbers, booleans, dates, lists of tags, vectors, None.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

Rng = np.random.Generator
Rows = list[dict[str, Any]]

FIRST_DAY, DAYS = datetime.date(2023, 1, 1), 1000


def rows_of(columns: Mapping[str, Sequence[Any]]) -> Rows:
    """Columns of one length as rows."""
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def names(prefix: str, count: int) -> list[str]:
    """Ids and titles, every one once: `sku-00001`, `sku-00002`, …"""
    return [f"{prefix}{number:05d}" for number in range(1, count + 1)]


def levels(rng: Rng, among: Sequence[str], count: int) -> list[Any]:
    """Draws of which early levels are up to about three times as frequent as late ones."""
    weight = 1 / (1 + 2 * np.arange(len(among)) / len(among))
    return [among[index] for index in rng.choice(len(among), count, p=weight / weight.sum())]


def prices(rng: Rng, middle: float, count: int) -> list[Any]:
    """Log-normal around a median, in cents."""
    return [round(float(price), 2) for price in middle * np.exp(0.6 * rng.standard_normal(count).clip(-2.5, 2.5))]


def numbers(rng: Rng, low: float, high: float, count: int, digits: int = 0) -> list[Any]:
    """Evenly distributed numbers; whole ones where no digits are asked for."""
    drawn = rng.uniform(low, high, count).round(digits)
    return [int(value) if digits == 0 else float(value) for value in drawn]


def flags(rng: Rng, share: float, count: int) -> list[Any]:
    return [bool(value) for value in rng.random(count) < share]


def dates(rng: Rng, count: int) -> list[Any]:
    return [FIRST_DAY + datetime.timedelta(days=int(day)) for day in rng.integers(DAYS, size=count)]


def tags(rng: Rng, among: Sequence[str], most: int, count: int) -> list[Any]:
    """One to `most` different tags per row."""
    sizes = rng.integers(1, most + 1, size=count)
    return [[among[index] for index in rng.choice(len(among), size, replace=False)] for size in sizes]


def vectors(rng: Rng, dim: int, concentration: float, count: int) -> list[Any]:
    """Non-negative vectors of length 1; a small concentration leaves few large entries."""
    drawn = rng.gamma(concentration, size=(count, dim)) + 1e-3
    return [[round(float(entry), 4) for entry in row] for row in drawn / np.linalg.norm(drawn, axis=1, keepdims=True)]


def with_gaps(rng: Rng, values: Sequence[Any], share: float) -> list[Any]:
    """The values, a share of them missing."""
    return [None if gap else value for gap, value in zip(rng.random(len(values)) < share, values, strict=True)]
