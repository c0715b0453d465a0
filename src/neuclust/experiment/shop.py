"""A simulated shop: items and users as tables, requests, the true chance of a click, and recommenders playing it."""

import csv
import io
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from neuclust.errors import ConfigError
from neuclust.files import write_text
from neuclust.randomness import stream
from neuclust.recommender.learner import PolicyChoice
from neuclust.recommender.recommender import Recommender
from neuclust.recommender.tables.columns import Category
from neuclust.recommender.tables.features import Features

Reals = NDArray[np.float64]
Rows = list[dict[str, Any]]

ITEMS, USERS, ELIGIBLE, SLATE_SIZE = 300, 400, 100, 5
RATE = 0.05  # the mean chance of a click on an item
CATEGORIES = ("shoes", "shirts", "toys", "books", "garden", "kitchen")
SEGMENTS = ("student", "family", "single", "senior")
DEVICES = ("phone", "desktop")
FEATURES = Features(  # what the owner of the shop would say
    context={"device": Category(DEVICES)}, cross=[("segment", "category"), ("segment", "price"), ("device", "price")]
)
ITEMS_FILE, USERS_FILE = "items.csv", "users.csv"


@dataclass(frozen=True, slots=True)
class ShopRequest:
    """Who asks with what device, and what may be shown, as ids and as rows of the table of items."""

    user: str
    context: dict[str, str]
    eligible: list[str]
    rows: NDArray[np.int64]  # (100,)
    chances: Reals  # (100,) of a click, were the item shown


@dataclass(frozen=True)
class SimulatedShop:
    """300 items, 400 users, 100 items in stock per request, slates of 5; a function of its seed.

    The chance of a click is 1 / (1 + exp(−a − s)) with s = item + segment x category + price · (segment + device), and
    a such that the mean over all pairs is 5 %. One uniform number per request and item decides a click, so that all
    policies meet the same customers.
    """

    seed: int
    items: Rows
    users: Rows
    scores: Reals  # (users, items): what user and item contribute
    dear: Reals  # (items,): what a price costs on a phone
    intercept: float

    @classmethod
    def of(cls, seed: int) -> "SimulatedShop":
        """The shop of a seed."""
        rng = stream(seed, "simulated shop")
        items, users = _items(rng), _users(rng)
        price = np.log([row["price"] / 30.0 for row in items])
        own = 0.5 * np.array([row["rating"] - 3.5 for row in items]) + 0.5 * np.array([row["sale"] for row in items])
        liked = _tastes(rng)
        slope = dict(zip(SEGMENTS, (-0.9, -0.3, 0.3, 0.6), strict=True))
        kind = np.array([CATEGORIES.index(row["category"]) for row in items])
        segment = [row["segment"] for row in users]
        scores = np.stack([own + liked[SEGMENTS.index(who), kind] + slope[who] * price for who in segment])
        return cls(seed, items, users, scores, 0.5 * price, _intercept(scores - 0.25 * price))

    def write(self, folder: Path) -> tuple[Path, Path]:
        """The tables of items and users as CSV files in a folder; their paths. Tables of others are not replaced."""
        paths = folder / ITEMS_FILE, folder / USERS_FILE
        tables = [_csv(rows) for rows in (self.items, self.users)]
        for path, text in zip(paths, tables, strict=True):
            _check_own(path, text)
        for path, text in zip(paths, tables, strict=True):
            write_text(path, text)
        return paths

    def request(self, t: int) -> ShopRequest:
        """Request t = 1, 2, …"""
        rng = stream(self.seed, "simulated shop requests", t)
        user, device = int(rng.integers(USERS)), DEVICES[int(rng.integers(2))]
        rows = np.sort(rng.choice(ITEMS, ELIGIBLE, replace=False))
        scores = self.scores[user, rows] - (device == DEVICES[0]) * self.dear[rows]
        eligible = [self.items[row]["sku"] for row in rows]
        return ShopRequest(
            self.users[user]["user"], {"device": device}, eligible, rows, _chance(scores, self.intercept)
        )

    def clicks(self, t: int, request: ShopRequest, places: list[int]) -> list[bool]:
        """Whether each shown item, given by its place among the eligible ones, is clicked."""
        coins = stream(self.seed, "simulated shop clicks", t).random(ITEMS)[request.rows]
        clicked: list[bool] = (coins < request.chances)[places].tolist()
        return clicked


@dataclass(frozen=True)
class ShopRun:
    """One policy in the shop, request by request, each (n,): clicks, and the expected clicks of its slate, of a random
    slate and of the best one."""

    policy: str
    clicks: Reals
    expected: Reals
    random: Reals
    best: Reals

    def __len__(self) -> int:
        return len(self.clicks)


Watch = Callable[[int, float], bool]  # requests so far, clicks so far -> whether to go on


def check_policy(name: str) -> None:
    """Refuse what a recommender cannot play."""
    PolicyChoice(name)


def open_shop(folder: Path, policy: str, seed: int) -> Recommender:
    """The recommender of the files that `SimulatedShop.write` left in a folder."""
    return Recommender(
        folder / ITEMS_FILE, item_id="sku", users=folder / USERS_FILE, user_id="user", slate_size=SLATE_SIZE,
        policy=policy, seed=seed, features=FEATURES,
    )  # fmt: skip


def play_shop(shop: SimulatedShop, recommender: Recommender, requests: int, watch: Watch) -> ShopRun:
    """Recommend, see who clicks, hand the clicks back; ends early where `watch` says so."""
    if requests < 1:
        raise ConfigError(f"expected a whole number from 1, got {requests}", field="requests")
    found: list[tuple[float, float, float, float]] = []
    total = 0.0
    for t in range(1, requests + 1):
        request = shop.request(t)
        choice = recommender.recommend(request.user, eligible=request.eligible, context=request.context)
        place = {sku: at for at, sku in enumerate(request.eligible)}
        places = [place[str(sku)] for sku in choice.items]
        clicked = shop.clicks(t, request, places)
        recommender.feedback(choice.id, dict(zip(choice.items, map(float, clicked), strict=True)))
        best = float(np.sort(request.chances)[-SLATE_SIZE:].sum())
        total += sum(clicked)
        found.append(
            (sum(clicked), float(request.chances[places].sum()), SLATE_SIZE * float(request.chances.mean()), best)
        )
        if not watch(t, total):
            break
    return ShopRun(recommender.settings.policy.name, *np.array(found).T.copy())


# --- tables and truth -------------------------------------------------------------------------------------------------


def _items(rng: np.random.Generator) -> Rows:
    price = 30.0 * np.exp(0.6 * rng.standard_normal(ITEMS).clip(-2.5, 2.5))
    rating, sale = rng.uniform(2.0, 5.0, ITEMS), rng.random(ITEMS) < 0.2
    kinds = rng.integers(len(CATEGORIES), size=ITEMS)
    return [
        {
            "sku": f"sku-{at + 1:05d}",
            "title": f"{CATEGORIES[kinds[at]].capitalize()} no. {at + 1}",
            "category": CATEGORIES[kinds[at]],
            "price": round(float(price[at]), 2),
            "rating": round(float(rating[at]), 1),
            "sale": bool(sale[at]),
        }
        for at in range(ITEMS)
    ]


def _users(rng: np.random.Generator) -> Rows:
    segments, ages = rng.integers(len(SEGMENTS), size=USERS), rng.integers(18, 80, size=USERS)
    return [{"user": f"u{at + 1}", "segment": SEGMENTS[segments[at]], "age": int(ages[at])} for at in range(USERS)]


def _tastes(rng: np.random.Generator) -> Reals:
    """(segments, categories): every segment likes one category most, another than the others do, and a second one."""
    liked, order = np.zeros((len(SEGMENTS), len(CATEGORIES))), rng.permutation(len(CATEGORIES))
    for at, row in enumerate(liked):
        row[order[at]], row[order[(at + 2) % len(CATEGORIES)]] = 1.7, 0.8
    return liked


def _chance(scores: Reals, intercept: float) -> Reals:
    found: Reals = 1 / (1 + np.exp(-scores - intercept))
    return found


def _intercept(scores: Reals) -> float:
    """a with mean 1 / (1 + exp(−a − s)) = 5 %, by bisection."""
    low, high = -40.0, 40.0
    while high - low > 1e-9:
        middle = (low + high) / 2
        low, high = (middle, high) if float(_chance(scores, middle).mean()) < RATE else (low, middle)
    return (low + high) / 2


def _check_own(path: Path, text: str) -> None:
    """Refuse to replace a file whose columns are not those of this shop."""
    if not path.exists():
        return
    with open(path, "rb") as file:
        first = file.readline(1_000).rstrip(b"\r\n")
    if first != text.partition("\n")[0].encode():
        raise ConfigError(f"expected a folder without tables of yours, got {path}; name another", field="out")


def _csv(rows: Rows) -> str:
    out = io.StringIO()
    writer = csv.DictWriter(out, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue()
