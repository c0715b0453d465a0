"""Decisions that are followed until their reward is known: all of them, or an even sample where there are too many.

Whether a decision is followed is settled when it is made, by its id, so that it does not depend on what comes back; one
that is followed is followed to its end. Dropping the oldest instead would lose those that nobody clicks.
"""

import itertools
import zlib
from dataclasses import dataclass, field
from typing import Any, Self

from neuclust.errors import StateError
from neuclust.serve.statistics.buckets import ARMS
from neuclust.serve.statistics.sums import finite
from neuclust.serve.statistics.uniform import UniformWeights

MOST_FOLLOWED = 5_000
ALL_UNTIL = MOST_FOLLOWED // 2  # up to here every decision is followed, and fewer and fewer beyond
GRACE = 60.0  # seconds that a lesson may come after the end of its window, and a tenth of the window


@dataclass(slots=True)
class Followed:
    """What a reward will be counted by; `counted` is what was counted so far, which a later lesson may replace."""

    time: float
    expires: float
    arm: str
    items: list[str]
    uniform: UniformWeights | None
    user: str | None = None
    counted: tuple[list[float | None], float | None] | None = None

    def gone(self, now: float) -> bool:
        """Whether no lesson will come any more."""
        return now > self.expires + GRACE + 0.1 * max(self.expires - self.time, 0.0)

    def to_json(self) -> list[Any]:
        uniform = None if self.uniform is None else [list(self.uniform.weights), self.uniform.second_moment]
        counted = None if self.counted is None else list(self.counted)
        return [self.time, self.expires, self.arm, self.items, uniform, self.user, counted]

    @classmethod
    def from_json(cls, saved: Any) -> Self:
        """What `to_json` wrote."""
        try:
            time, expires, arm, items, uniform, user, counted = saved
            weights = None if uniform is None else UniformWeights(tuple(map(finite, uniform[0])), finite(uniform[1]))
            before = None if counted is None else (list(counted[0]), counted[1])
        except (TypeError, ValueError, IndexError):
            raise StateError(f"statistics: expected a decision, got {saved!r:.100}; is the save damaged?") from None
        if arm not in ARMS:
            raise StateError(f"statistics: expected an arm of {', '.join(ARMS)}, got {arm!r:.100}; is it damaged?")
        return cls(finite(time), finite(expires), arm, list(items), weights, user, before)


@dataclass(slots=True)
class FollowedDecisions:
    """Followed decisions by id, oldest first."""

    open: dict[str, Followed] = field(default_factory=dict)

    def takes(self, id: str) -> bool:
        """Whether a new decision is followed; with a chance that falls to 0 as their number reaches its limit."""
        room = (MOST_FOLLOWED - len(self.open)) / (MOST_FOLLOWED - ALL_UNTIL)
        return room >= 1 or zlib.crc32(id.encode(errors="surrogatepass")) < room * 2**32

    def forget(self, now: float, user: str | None = None) -> list[Followed]:
        """Drop the oldest ones that get no lesson any more and all of an erased user; those that were dropped."""
        gone = list(itertools.takewhile(lambda id: self.open[id].gone(now), self.open))
        if user is not None:
            gone += [id for id, each in self.open.items() if each.user == user and id not in gone]
        return [self.open.pop(id) for id in gone]

    def to_json(self) -> list[Any]:
        return [[id, *each.to_json()] for id, each in self.open.items()]

    @classmethod
    def from_json(cls, saved: Any) -> Self:
        """What `to_json` wrote."""
        if not isinstance(saved, list) or len(saved) > MOST_FOLLOWED:
            raise StateError(f"statistics: expected at most {MOST_FOLLOWED} decisions, got others; is it damaged?")
        return cls({str(id): Followed.from_json(rest) for id, *rest in saved})
