"""The statistics of one recommender as a fold of its log: bounded in size for ever, the same after every replay."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

from neuclust.errors import StateError
from neuclust.serve.statistics.buckets import ARMS, Buckets, entry, whole
from neuclust.serve.statistics.followed import Followed, FollowedDecisions
from neuclust.serve.statistics.recent import RecentItems
from neuclust.serve.statistics.sums import Sums, finite
from neuclust.serve.statistics.uniform import exploring_slots, uniform_weights
from neuclust.serve.store.contract import DECISION, ERASURE, FEEDBACK, Row

FORMAT = 1
MOST_SLOTS = 100  # of which click rates are kept
CLOSING = "learned"  # what is told of a feedback that closed its decision


@dataclass(slots=True)
class Weights:
    """How much live decisions tell of evenly drawn slates: sums of the mean weight w of a slate's slots."""

    count: int = 0  # answered decisions that tell of them
    total: float = 0.0  # Σw
    squares: float = 0.0  # Σw²
    second_moments: float = 0.0  # Σ E[w²]
    unsupported: int = 0  # live decisions that tell nothing of them

    def add(self, weights: Sequence[float], second_moment: float, times: int) -> None:
        """Count a decision, or take it back."""
        mean = sum(weights) / len(weights)
        self.count += times
        self.total += times * mean
        self.squares += times * mean * mean
        self.second_moments += times * second_moment

    @property
    def ess(self) -> float:
        """The smaller of (Σw)²/Σw² and n²/Σ E[w²]."""
        if self.squares <= 0 or self.second_moments <= 0:
            return 0.0
        return min(self.total**2 / self.squares, self.count**2 / self.second_moments)

    def to_json(self) -> list[float]:
        return [self.count, self.total, self.squares, self.second_moments, self.unsupported]

    @classmethod
    def from_json(cls, saved: Any) -> Self:
        """What `to_json` wrote."""
        if not isinstance(saved, list) or len(saved) != 5:
            raise StateError(f"statistics: expected sums of weights, got {saved!r:.100}; is the save damaged?")
        total, squares, second_moments = (finite(each) for each in saved[1:4])
        return cls(whole(saved[0]), total, squares, second_moments, whole(saved[4]))


@dataclass(slots=True)
class Statistics:
    """What came of decisions, by arm, time, slot and item. `apply` is called for every event in log order."""

    buckets: Buckets = field(default_factory=Buckets)
    slots: list[Sums] = field(default_factory=list)  # rewards of live slates, by slot
    weights: Weights = field(default_factory=Weights)
    items: RecentItems = field(default_factory=RecentItems)
    followed: FollowedDecisions = field(default_factory=FollowedDecisions)

    def apply(self, row: Row, told: Mapping[str, Any] | None, content: Mapping[str, Any] | None = None) -> None:
        """Count an event with what the fold told of it; `content` is the decoded payload, where it is at hand."""
        found = content
        if found is None:
            found = json.loads(row.payload) if row.payload and row.kind in (DECISION, FEEDBACK) else {}
        if row.kind == DECISION and row.payload is not None:
            self._decide(row, found)
        said = told or {}
        closed = found.get("decision") if row.kind == FEEDBACK and said.get("status") == CLOSING else None
        for lesson in said.get("lessons") or ():
            self._learn(lesson, row.time, lesson["decision"] == closed)
        for decision in self.followed.forget(row.time, row.user if row.kind == ERASURE else None):
            if decision.counted is None:
                self._pending(decision, -1)

    def _decide(self, row: Row, content: Mapping[str, Any]) -> None:
        choice, arm = content["choice"], content["arm"]
        if not choice["items"] or arm not in ARMS:
            return
        bucket = self.buckets.at(row.time)
        bucket.arm(arm).decisions += 1
        items = [str(item) for item in choice["items"]]
        for item in items:
            self.items.chosen(item)
        uniform = None
        if arm == "live":
            bucket.slots += len(items)
            bucket.exploring += exploring_slots(choice)
            uniform = uniform_weights(choice)
            self.weights.unsupported += uniform is None
        if row.key is not None and self.followed.takes(row.key):
            expires = float(content["expires_at"])
            bucket.arm(arm).pending += 1
            self.followed.open[row.key] = Followed(row.time, expires, arm, items, uniform, row.user)

    def _learn(self, lesson: Mapping[str, Any], now: float, closed: bool) -> None:
        id = lesson["decision"]
        decision = self.followed.open.get(id)
        if decision is None:
            return
        if decision.counted is None:
            self._pending(decision, -1)
        else:
            self._count(decision, *decision.counted, -1)
        decision.counted = (list(lesson["rewards"]), lesson["slate"])
        self._count(decision, *decision.counted, 1)
        if closed or now >= decision.expires:
            del self.followed.open[id]

    def _count(self, decision: Followed, rewards: Sequence[float | None], slate: float | None, times: int) -> None:
        bucket = self.buckets.at(decision.time)
        arm = bucket.arm(decision.arm)
        clicks = sum(reward for reward in rewards if reward is not None)
        arm.clicks.add(clicks, times)
        if slate is not None:
            arm.slates.add(slate, times)
        for slot, (item, reward) in enumerate(zip(decision.items, rewards, strict=True)):
            if reward is not None:
                self.items.answered(item, reward, times)
                if decision.arm == "live" and slot < MOST_SLOTS:
                    self._slot(slot).add(reward, times)
        if decision.uniform is not None:
            weights = decision.uniform.weights
            evenly = sum(w * (reward or 0.0) for w, reward in zip(weights, rewards, strict=True))
            bucket.random.add(evenly, times)
            bucket.gaps.add(clicks - evenly, times)
            self.weights.add(weights, decision.uniform.second_moment, times)

    def _pending(self, decision: Followed, change: int) -> None:
        self.buckets.at(decision.time).arm(decision.arm).pending += change

    def _slot(self, slot: int) -> Sums:
        while len(self.slots) <= slot:
            self.slots.append(Sums())
        return self.slots[slot]

    def view(self) -> dict[str, Any]:
        """What the page is made from (`overview`): everything but the decisions that are followed."""
        return {
            "format": FORMAT, "buckets": self.buckets.to_json(), "slots": [each.to_json() for each in self.slots],
            "weights": self.weights.to_json(), "items": self.items.to_json(),
        }  # fmt: skip

    def to_json(self) -> dict[str, Any]:
        """Everything, to go on from."""
        return {**self.view(), "followed": self.followed.to_json()}

    @classmethod
    def from_json(cls, saved: Any) -> Self:
        """What `to_json` wrote, or `view`, from which nothing that is open now can be counted later."""
        if entry(saved, "format") != FORMAT:
            raise StateError(
                f"statistics: expected format {FORMAT}, got {saved['format']!r:.100}; use a newer neuclust"
            )
        return cls(
            Buckets.from_json(entry(saved, "buckets")),
            [Sums.from_json(each) for each in entry(saved, "slots")],
            Weights.from_json(entry(saved, "weights")),
            RecentItems.from_json(entry(saved, "items")),
            FollowedDecisions.from_json(saved.get("followed", [])),
        )
