"""Customers of a simulated shop, over HTTP: clicks that depend on tastes, some late, some in parts, some never."""

from __future__ import annotations

import heapq
import random
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from neuclust.client import Recommendation, RemoteRecommender
from neuclust.experiment.shop import DEVICES, SLATE_SIZE, ShopRequest, SimulatedShop

CONFIGURATION: dict[str, Any] = {
    "slate_size": SLATE_SIZE,
    "features": {"context": {"device": {"kind": "category", "levels": list(DEVICES)}}},
    "cross": [["segment", "category"], ["segment", "price"], ["device", "price"]],
    "exploration": 0.05,  # so that random slates can be judged from the log
    "window": 60.0,
    "mode": "holdout",
    "holdout": {"share": 0.1, "baseline": "random"},
}
LATE = (2.0, 20.0)  # seconds
AT_ONCE, DELAYED, IN_PARTS = 0.75, 0.85, 0.95  # bounds of a coin; the rest never answer


@dataclass(order=True)
class Due:
    """A feedback that is to be sent at a time."""

    time: float
    number: int
    message: dict[str, Any] = field(compare=False)


@dataclass
class Shoppers:
    """Visits a shop one after another through one or several replicas of the service."""

    shop: SimulatedShop
    replicas: Sequence[RemoteRecommender]
    visits: int = 0
    clicks: int = 0
    coins: random.Random = field(default_factory=lambda: random.Random(0))
    due: list[Due] = field(default_factory=list)
    lately: dict[str, deque[float]] = field(default_factory=lambda: {"live": deque(maxlen=400)})

    @property
    def remote(self) -> RemoteRecommender:
        """The replica whose turn it is."""
        return self.replicas[self.visits % len(self.replicas)]

    def open(self) -> None:
        """Send the shop's tables."""
        first = self.replicas[0]
        first.put_items(self.shop.items, id="sku")
        first.put_users(self.shop.users, id="user")

    def visit(self) -> Recommendation:
        """One customer: a slate, and clicks now, later, in parts or never."""
        self.visits += 1
        request = self.shop.request(self.visits)
        answer = self.remote.recommend(request.user, eligible=request.eligible, context=request.context)
        place = {sku: at for at, sku in enumerate(request.eligible)}
        places = [place[item] for item in answer.items]
        clicked = self.shop.clicks(self.visits, request, places)
        self.clicks += sum(clicked)
        self.lately.setdefault(answer.mode, deque(maxlen=400)).append(float(sum(clicked)))
        self._respond(answer, clicked)
        return answer

    def _respond(self, answer: Recommendation, clicked: Sequence[bool]) -> None:
        values = dict(zip(answer.items, map(float, clicked), strict=True))
        message = {"decision_id": answer.decision_id, "items": values}
        now, later, coin = time.monotonic(), self.coins.uniform(*LATE), self.coins.random()
        if coin < AT_ONCE:
            self._add(now, message)
        elif coin < DELAYED:
            self._add(now + later, message)
        elif coin < IN_PARTS:
            first = dict(list(values.items())[:2])
            self._add(now, {**message, "items": first, "partial": True})
            self._add(now + later, message)

    def _add(self, at: float, message: dict[str, Any]) -> None:
        heapq.heappush(self.due, Due(at, self.visits, message))

    def send_due(self) -> int:
        """Send the feedback whose time has come; how many there were."""
        now, messages = time.monotonic(), []
        while self.due and self.due[0].time <= now:
            messages.append(heapq.heappop(self.due).message)
        self.remote.feedback_many(messages)
        return len(messages)

    def told(self) -> str:
        """Clicks per request of the last visits, by who served them."""
        means = [f"{mode} {sum(each) / len(each):.2f}" for mode, each in sorted(self.lately.items()) if each]
        return f"{self.visits:,} visits, {self.clicks:,} clicks; clicks per visit lately: {', '.join(means)}"


def bounds(shop: SimulatedShop, requests: int = 300) -> tuple[float, float]:
    """Expected clicks per visit of random and of the best slates."""
    asked: list[ShopRequest] = [shop.request(t) for t in range(1, requests + 1)]
    even = sum(SLATE_SIZE * float(each.chances.mean()) for each in asked) / requests
    best = sum(float(sum(sorted(each.chances)[-SLATE_SIZE:])) for each in asked) / requests
    return even, best
