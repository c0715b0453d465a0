"""The log of a simulated shop: a real recommender, users with tastes, clicks, and what a fold would tell of it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from neuclust.randomness import stream
from neuclust.recommender.recommender import Recommender
from neuclust.serve.store.contract import DECISION, FEEDBACK, Row

TASTES = ("books", "music", "games", "tools")
SLOTS = 3
LOOKED_AT = (1.0, 0.7, 0.5)  # share of users who look at a slot
START = 1_000_000.0
Told = dict[str, Any]
Entry = tuple[Row, Told | None]


class Clock:
    """Seconds that are moved by hand."""

    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> float:
        return self.now


def items(count: int = 40, hostile: Sequence[str] = ()) -> list[dict[str, Any]]:
    """Items of four categories; hostile ids take the places of the first ones."""
    ids = [*hostile, *(f"item-{index}" for index in range(len(hostile), count))]
    return [
        {"item_id": id, "category": TASTES[index % len(TASTES)], "price": 3.0 + 7 * index % 31}
        for index, id in enumerate(ids)
    ]


def click_chance(item: Mapping[str, Any], taste: str, slot: int) -> float:
    """Users click what is of their taste, and more in the slots they look at."""
    return (0.5 if item["category"] == taste else 0.06) * LOOKED_AT[slot]


def random_clicks(stock: Sequence[Mapping[str, Any]]) -> float:
    """The expected clicks per request of evenly drawn slates, for users of all tastes alike."""
    chances = [click_chance(item, taste, slot) for item in stock for taste in TASTES for slot in range(SLOTS)]
    return float(np.mean(chances) * SLOTS)


@dataclass
class Shop:
    """Rows of a log, one decision after another, and what the fold would have told of each."""

    exploration: float | None = 0.3
    holdout: float = 0.0  # share of users who get random slates
    policy: str = "linucb"
    answered: float = 0.8  # share of decisions with feedback; the others expire
    seed: int = 0
    gap: float = 2.0  # seconds between requests
    count: int = 40
    hostile: Sequence[str] = ()
    seq: int = 0
    rows: list[Entry] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.clock, self.stock = Clock(), items(self.count, self.hostile)
        self.by_id = {each["item_id"]: each for each in self.stock}
        users = [{"user_id": f"u{index}", "taste": TASTES[index % len(TASTES)]} for index in range(200)]
        common: dict[str, Any] = {"users": users, "user_id": "user_id", "slate_size": SLOTS, "clock": self.clock}
        learned: dict[str, Any] = {"policy": self.policy, "exploration": self.exploration, "seed": self.seed}
        self.live = Recommender(self.stock, "item_id", **common, **learned)
        self.baseline = Recommender(self.stock, "item_id", **common, policy="uniform", seed=self.seed)
        self.turn = 0

    def play(self, decisions: int) -> list[Entry]:
        """So many requests with what came back; the new rows."""
        before = len(self.rows)
        for _ in range(decisions):
            self._request()
        return self.rows[before:]

    def _request(self) -> None:
        self.turn += 1
        self.clock.now += self.gap
        rng = stream(self.seed, "simulated shop", self.turn)
        user = int(rng.integers(200))
        arm = "holdout" if user < 200 * self.holdout else "live"
        shop = self.live if arm == "live" else self.baseline
        choice = shop.recommend(f"u{user}")
        id = f"d{self.seed}-{self.turn}"
        content = {"choice": choice.to_json(), "arm": arm, "version": 1, "expires_at": self.clock.now + 3600}
        self._append(DECISION, content, None, id, f"u{user}")
        taste = TASTES[user % len(TASTES)]
        chances = [click_chance(self.by_id[str(item)], taste, slot) for slot, item in enumerate(choice.items)]
        rewards = [float(rng.random() < chance) for chance in chances]
        clicks = {item: reward for item, reward in zip(choice.items, rewards, strict=True) if reward}
        if rng.random() < self.answered:
            shop.feedback(choice.id, clicks)
            lesson = {"decision": id, "rewards": rewards, "slate": sum(rewards) / SLOTS, "revised": False}
            told = {"status": "learned", "lessons": [lesson]}
            self._append(FEEDBACK, {"decision": id, "items": clicks}, told, f"f-{id}", f"u{user}")

    def _append(self, kind: str, content: Mapping[str, Any], told: Told | None, key: str, user: str) -> None:
        self.seq += 1
        payload = json.dumps(content, sort_keys=True).encode()
        self.rows.append((Row(self.seq, kind, self.clock.now, payload, key, None, None, user, b""), told))

    def __iter__(self) -> Iterator[Entry]:
        return iter(self.rows)
