"""Invented shops: tables of items and users, encoded, and the chance that a user clicks on an item.

A score of user and item is standardised to s, and p = rate · (1 + 0.5 s), or rate · exp(0.8 s − 0.32) where the link is
exponential, kept between rate/20 and 0.9. `truth` names the crosses and matches that the score is made of.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from neuclust.randomness import stream

ITEMS, USERS = 1000, 500
Matrix = NDArray[np.float64]
Names = list[tuple[str, ...]]


@dataclass
class Table:
    """Encoded columns of invented values, scaled as the recommender scales them; a `Columns`."""

    rng: np.random.Generator
    count: int
    slices: dict[str, slice] = field(default_factory=dict)
    labels: tuple[str, ...] = ()
    rows: Matrix = field(init=False)
    texts: dict[str, tuple[str, ...]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.rows = np.zeros((self.count, 0))

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.slices)

    @property
    def width(self) -> int:
        return len(self.labels)

    def levels(self, name: str) -> tuple[str, ...] | None:
        return self.texts.get(name)

    def category(self, name: str, levels: int) -> Matrix:
        """One column per level; frequent and rare ones."""
        weights = 1 / np.arange(1, levels + 1) ** 0.7
        codes = self.rng.choice(levels, self.count, p=weights / weights.sum())
        return self._levels(name, name, np.eye(levels)[codes])

    def tags(self, name: str, levels: int, share: float) -> Matrix:
        """Any number of levels, the same in all columns of tags, divided by the root of how many there are."""
        marks = (self.rng.random((self.count, levels)) < share).astype(np.float64)
        return self._levels(name, "tag", marks / np.sqrt(np.maximum(marks.sum(1, keepdims=True), 1)))

    def number(self, name: str) -> Matrix:
        """(n,) standard normal; encoded at half the size."""
        values = self.rng.standard_normal(self.count)
        self._put(name, (values / 2).clip(-1.5, 1.5)[:, None], (name,))
        return values

    def vector(self, name: str, dim: int, inner: Matrix | None = None) -> Matrix:
        """(n, dim) of root mean squared length about 1; in the space of the rows of `inner` (r, dim), if given."""
        rank = dim if inner is None else len(inner)
        values = self.rng.standard_normal((self.count, rank)) / np.sqrt(rank)
        if inner is not None:
            values = values @ inner + 0.3 * self.rng.standard_normal((self.count, dim)) / np.sqrt(dim)
        return self._put(name, values, tuple(f"{name}[{at}]" for at in range(dim)))

    def _levels(self, name: str, word: str, rows: Matrix) -> Matrix:
        self.texts[name] = tuple(f"{word} {at}" for at in range(rows.shape[1]))
        return self._put(name, rows, tuple(f"{name}={level}" for level in self.texts[name]))

    def _put(self, name: str, rows: Matrix, labels: tuple[str, ...]) -> Matrix:
        self.slices[name] = slice(self.width, self.width + len(labels))
        self.labels += labels
        self.rows = np.hstack([self.rows, rows])
        return rows


@dataclass(frozen=True)
class Shop:
    """Encoded items and users, p (M, N), and the true crosses and matches."""

    items: Table
    users: Table
    chances: Matrix
    cross: Names
    match: Names


@dataclass(frozen=True)
class Truth:
    """A score (M, N) and what it is made of."""

    score: Matrix
    cross: Names = field(default_factory=list)
    match: Names = field(default_factory=list)
    exponential: bool = False


Invention = Callable[[Table, Table, np.random.Generator], Truth]


def crosses(items: Table, users: Table, rng: np.random.Generator) -> Truth:
    """Main effects, category x segment and price x segment."""
    category, brand = items.category("category", 6), items.category("brand", 5)
    price, rating = items.number("price"), items.number("rating")
    segment = users.category("segment", 4)
    users.number("age"), users.category("device", 2)
    mains = category @ rng.normal(size=6) * 0.7 + brand @ rng.normal(size=5) * 0.4 + 0.4 * rating
    both = segment @ rng.normal(size=(4, 6)) @ category.T + 0.7 * np.outer(segment @ rng.normal(size=4), price)
    return Truth(mains + both, [("segment", "category"), ("segment", "price")])


def mains_only(items: Table, users: Table, rng: np.random.Generator) -> Truth:
    """What an item is worth to everybody."""
    category, brand = items.category("category", 6), items.category("brand", 5)
    price, rating = items.number("price"), items.number("rating")
    segment, age = users.category("segment", 4), users.number("age")
    users.category("device", 2)
    worth = category @ rng.normal(size=6) + brand @ rng.normal(size=5) + 0.5 * rating - 0.5 * price
    return Truth(worth + (0.3 * segment @ rng.normal(size=4) + 0.2 * age)[:, None])


def tastes(items: Table, users: Table, rng: np.random.Generator) -> Truth:  # noqa: ARG001
    """Embeddings of items and of users: the score is their inner product, with the price beside it."""
    item, price = items.vector("embedding", 12), items.number("price")
    user = users.vector("tastes", 12)
    users.number("age")
    return Truth(user @ item.T * np.sqrt(12) - 0.4 * price, [], [("tastes", "embedding")], exponential=True)


def long_tastes(items: Table, users: Table, rng: np.random.Generator) -> Truth:
    """Embeddings of 64 entries, mostly in eight dimensions: too long to be matched entry by entry."""
    inner = np.linalg.qr(rng.standard_normal((64, 8)))[0].T
    item, price = items.vector("embedding", 64, inner), items.number("price")
    user = users.vector("tastes", 64, inner)
    users.number("age")
    return Truth(user @ item.T * np.sqrt(8) - 0.4 * price, [], [("tastes", "embedding")], exponential=True)


def tag_tastes(items: Table, users: Table, rng: np.random.Generator) -> Truth:
    """Tags of items that users like."""
    tags, category, price = items.tags("tags", 12, 0.2), items.category("category", 8), items.number("price")
    liked = users.tags("liked", 12, 0.25)
    users.category("segment", 4)
    score = 3 * liked @ tags.T + 0.4 * category @ rng.normal(size=8) - 0.3 * price
    return Truth(score, [], [("liked", "tags")], exponential=True)


def category_segment(items: Table, users: Table, rng: np.random.Generator) -> Truth:
    """Twelve categories, six segments, any score for each pair."""
    category, segment = items.category("category", 12), users.category("segment", 6)
    items.number("price")
    return Truth(segment @ rng.normal(size=(6, 12)) @ category.T, [("segment", "category")])


def numbers(items: Table, users: Table, rng: np.random.Generator) -> Truth:  # noqa: ARG001
    """Income x price and age x quality."""
    price, quality = items.number("price"), items.number("quality")
    items.number("weight"), items.category("category", 8)
    income, age = users.number("income"), users.number("age")
    users.number("recency")
    score = np.outer(income, price) + 0.6 * np.outer(age, quality) + 0.3 * quality
    return Truth(score, [("income", "price"), ("age", "quality")], exponential=True)


def many_columns(items: Table, users: Table, rng: np.random.Generator) -> Truth:
    """57 item and 17 user columns: their products do not fit."""
    category, brand, price = items.category("category", 20), items.category("brand", 15), items.number("price")
    tags, rating = items.tags("tags", 12, 0.15), items.number("rating")
    items.category("colour", 8)
    segment, age = users.category("segment", 5), users.number("age")
    users.category("country", 8), users.category("device", 3)
    mains = category @ rng.normal(size=20) * 0.7 + brand @ rng.normal(size=15) * 0.4 + tags @ rng.normal(size=12) * 0.4
    both = np.outer(0.8 * segment @ rng.normal(size=5) + 0.5 * age, price)
    return Truth(mains + 0.4 * rating + both, [("segment", "price"), ("age", "price")])


def sweet_spot(items: Table, users: Table, rng: np.random.Generator) -> Truth:
    """Every segment has a price it likes best, which no product of columns says, and categories it likes."""
    category, price, rating = items.category("category", 6), items.number("price"), items.number("rating")
    items.category("brand", 5)
    segment = users.category("segment", 4)
    users.number("age"), users.category("device", 2)
    liked = segment @ np.array([-1.0, 0.0, 0.5, 1.5])
    score = segment @ rng.normal(size=(4, 6)) @ category.T * 0.7 - 0.5 * (liked[:, None] - price) ** 2 + 0.3 * rating
    return Truth(score, [("segment", "category"), ("segment", "price")], exponential=True)


SHOPS: dict[str, tuple[Invention, float]] = {
    "crosses 5 %": (crosses, 0.05),
    "crosses 1 %": (crosses, 0.01),
    "mains only 5 %": (mains_only, 0.05),
    "tastes 5 %": (tastes, 0.05),
    "long tastes 5 %": (long_tastes, 0.05),
    "tag tastes 1 %": (tag_tastes, 0.01),
    "category x segment 5 %": (category_segment, 0.05),
    "numbers 5 %": (numbers, 0.05),
    "many columns 5 %": (many_columns, 0.05),
    "sweet spot 5 %": (sweet_spot, 0.05),
}


def make_shop(name: str, seed: int) -> Shop:
    """A shop of this kind, of its own for every seed."""
    invent, rate = SHOPS[name]
    rng = stream(seed, f"shop {name}")
    items, users = Table(rng, ITEMS), Table(rng, USERS)
    truth = invent(items, users, rng)
    s = (truth.score - truth.score.mean()) / truth.score.std()
    chances = rate * (np.exp(0.8 * s - 0.32) if truth.exponential else 1 + 0.5 * s)
    return Shop(items, users, chances.clip(rate / 20, 0.9), truth.cross, truth.match)
