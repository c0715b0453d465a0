"""The shop that load is made of: items, users, requests and clicks, as plain rows and as ready bodies; no numpy.

The load generator shares two cores with what it measures, so that its requests are written before the clock starts.
"""

from __future__ import annotations

import json
import random
from dataclasses import dataclass
from typing import Any

CATEGORIES, BRANDS, SEGMENTS, DEVICES = 20, 50, 6, ("phone", "desktop")
SLATE_SIZE = 5
Rows = list[dict[str, Any]]


def items(count: int, seed: int = 0) -> Rows:
    """Items with a category, a brand, a price, a rating and a sale."""
    coins = random.Random(f"items {seed}")
    return [
        {
            "id": f"i{at}", "category": f"c{coins.randrange(CATEGORIES)}", "brand": f"b{coins.randrange(BRANDS)}",
            "price": round(coins.lognormvariate(3.4, 0.6), 2), "rating": round(coins.uniform(2, 5), 1),
            "sale": coins.random() < 0.2,
        }
        for at in range(count)
    ]  # fmt: skip


def users(count: int, seed: int = 0) -> Rows:
    """Users with a segment and an age."""
    coins = random.Random(f"users {seed}")
    return [
        {"id": f"u{at}", "segment": f"s{coins.randrange(SEGMENTS)}", "age": coins.randint(18, 80)}
        for at in range(count)
    ]


@dataclass(frozen=True)
class Requests:
    """Requests for slates: a user of many, some eligible items of many, a device."""

    items: int
    users: int
    eligible: int | None
    seed: int = 0
    prepared: int = 500  # distinct ones; each is asked again under another id

    def arguments(self) -> list[dict[str, Any]]:
        """The prepared requests."""
        coins = random.Random(f"requests {self.seed}")
        return [self._one(coins) for _ in range(self.prepared)]

    def _one(self, coins: random.Random) -> dict[str, Any]:
        found: dict[str, Any] = {
            "user": f"u{coins.randrange(self.users)}",
            "context": {"device": coins.choice(DEVICES)},
        }
        if self.eligible is not None:
            found["eligible"] = [f"i{at}" for at in coins.sample(range(self.items), self.eligible)]
        return found

    def bodies(self) -> list[bytes]:
        """The same as JSON that lacks its beginning, where the id of each request goes (`with_id`)."""
        return [json.dumps(each, separators=(",", ":")).encode()[1:] for each in self.arguments()]


def with_id(body: bytes, id: str) -> bytes:
    """A prepared body under a request id."""
    return b'{"request_id":"%s",%s' % (id.encode(), body)


def clicked(user: str, item: str, coins: random.Random) -> bool:
    """A click whose chance depends on user and item, 5 % on average."""
    alike = (int(user[1:]) * 7 + int(item[1:])) % 10 == 0
    return coins.random() < (0.32 if alike else 0.02)
