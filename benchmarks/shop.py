"""A simulated shop: raw tables of items and users, requests, and the true chance of a click.

A shop is a function of its name and a seed: tables, truth, requests and clicks. One uniform number per seed, request
and item decides a click, so that every policy meets the same shop. 1,000 items, 200 users, 300 eligible items per
request, slates of 5.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks import shop_tables as raw
from benchmarks.handmade import HandMade, Reals
from benchmarks.shop_tables import Rows
from neuclust.randomness import stream

ITEMS, USERS, ELIGIBLE, SLATE_SIZE = 1000, 200, 300, 5
ITEM_ID, USER_ID = "sku", "user"

Whole = NDArray[np.int64]
Columns = dict[str, list[Any]]
Score = Callable[[int, Mapping[str, Any], Whole], Reals]  # user row, context, item rows (n,) -> (n,)


@dataclass(frozen=True, slots=True)
class Request:
    """Who asks, in what context, and what may be shown: ids, and the same as row numbers of the tables."""

    user: str
    eligible: list[str]
    context: dict[str, Any]
    user_row: int
    item_rows: Whole  # (300,)


@dataclass(frozen=True)
class Shop:
    """Raw tables and what is true of them.

    `cross`, `match`, `bins` (columns to be cut into so many bins) and `context_levels` are what the truth is made of
    and what an expert would state; `width` is the bound on features they need. `expert` makes hand-made columns of the
    columns that matter, `every` of all columns but ids and titles.
    """

    name: str
    seed: int
    items: Rows
    users: Rows
    contexts: Rows  # every context there is; a request has one of them
    chance: Score  # true chance of a click in the first slot
    expert: HandMade
    every: HandMade
    cross: list[tuple[str, ...]] = field(default_factory=list)
    match: list[tuple[str, str]] = field(default_factory=list)
    bins: dict[str, int] = field(default_factory=dict)
    context_levels: dict[str, list[str]] = field(default_factory=dict)  # unlike a table, context comes row by row
    width: int = 128
    position: Reals = field(default_factory=lambda: np.ones(SLATE_SIZE))  # (K,) factor of the chance per slot

    def request(self, t: int) -> Request:
        """Request t = 1, 2, …"""
        rng = stream(self.seed, f"shop {self.name} requests", t)
        user, context = int(rng.integers(len(self.users))), self.contexts[int(rng.integers(len(self.contexts)))]
        rows = rng.choice(len(self.items), ELIGIBLE, replace=False)
        eligible = [self.items[row][ITEM_ID] for row in rows]
        return Request(self.users[user][USER_ID], eligible, dict(context), user, rows)

    def handmade(self, user_row: int, context: Mapping[str, Any], item_rows: Whole) -> Reals:
        """The expert's columns: (n, d)."""
        return self.expert.rows(user_row, context, item_rows)

    def expected(self, request: Request, item_rows: Whole) -> float:
        """Expected clicks of a slate, Σ_s position_s · chance_s, items in slot order."""
        chances = self.chance(request.user_row, request.context, item_rows)
        return float(self.position[: len(item_rows)] @ chances)

    def bounds(self, request: Request) -> tuple[float, float]:
        """Expected clicks of a random slate and of the best one."""
        chances = self.chance(request.user_row, request.context, request.item_rows)
        best = np.sort(chances)[::-1][:SLATE_SIZE]
        return float(chances.mean() * self.position.sum()), float(np.sort(self.position)[::-1] @ best)

    def clicks(self, t: int, request: Request, item_rows: Whole) -> Reals:
        """Clicks on a slate, items in slot order, by the uniform numbers of request t: (k,) of 0 and 1."""
        uniform = stream(self.seed, f"shop {self.name} clicks", t).random(len(self.items))[item_rows]
        chances = self.chance(request.user_row, request.context, item_rows)
        return (uniform < self.position[: len(item_rows)] * chances).astype(np.float64)


# --- from scores to chances -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Truth:
    """Scores of items, and the link that turns them into chances of the given mean:

    linear: factor · score (scores above 0); logistic: 1 / (1 + exp(−score − intercept)).
    """

    score: Score
    link: str
    constant: float  # the factor or the intercept

    def __call__(self, user_row: int, context: Mapping[str, Any], item_rows: Whole) -> Reals:
        return _linked(self.score(user_row, context, item_rows), self.link, self.constant)


def _linked(scores: Reals, link: str, constant: float) -> Reals:
    return constant * scores if link == "linear" else 1 / (1 + np.exp(-scores - constant))


def calibrated(score: Score, link: str, rate: float, contexts: Rows) -> Truth:
    """The truth whose mean chance over users and items is `rate`, contexts taken in turn."""
    every = np.arange(ITEMS)
    scores = np.stack([score(user, contexts[user % len(contexts)], every) for user in range(USERS)])
    if link == "linear":
        return Truth(score, link, rate / float(scores.mean()))
    low, high = -40.0, 40.0
    while high - low > 1e-9:
        middle = (low + high) / 2
        low, high = (middle, high) if float(_linked(scores, link, middle).mean()) < rate else (low, middle)
    return Truth(score, link, (low + high) / 2)


@dataclass(frozen=True)
class Tables:
    """The raw columns of a shop, and which of them its truth reads."""

    items: Columns
    users: Columns
    contexts: Rows
    matter: tuple[str, ...]

    def shop(self, name: str, seed: int, chance: Score, **stated: Any) -> Shop:
        """The shop; `stated`: cross, match, bins, context_levels, width, position."""
        items = {ITEM_ID: raw.names("sku-", ITEMS), "title": raw.names("Article no. ", ITEMS), **self.items}
        users = {USER_ID: raw.names("u", USERS), **self.users}
        known = {key: stated[key] for key in ("cross", "match", "bins") if key in stated}
        asked = {key: list(dict.fromkeys(row[key] for row in self.contexts)) for key in self.contexts[0]}
        every = HandMade(self.items, self.users, asked, **known)
        expert = HandMade(self._used(self.items), self._used(self.users), self._used(asked), **known)
        return Shop(name, seed, raw.rows_of(items), raw.rows_of(users), self.contexts, chance, expert, every, **stated)

    def _used(self, columns: Columns) -> Columns:
        return {name: values for name, values in columns.items() if name in self.matter}
