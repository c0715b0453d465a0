"""Numbers by time: at most 240 buckets of one width, which doubles when there would be more."""

from dataclasses import dataclass, field
from typing import Any, Self

from neuclust.errors import StateError
from neuclust.serve.statistics.sums import Sums, finite

MOST_BUCKETS = 240
NARROWEST = 1.0  # seconds
MOST_PENDING = 0.05  # share of followed decisions whose reward may be missing where numbers are taken as final
ARMS = ("live", "holdout", "shadow", "fallback")


@dataclass(slots=True)
class ArmSums:
    """Of one arm: decisions, how many of them are followed and still wait for their reward, and of those that have it
    clicks per request and the slate's reward on [0, 1]."""

    decisions: int = 0
    pending: int = 0
    clicks: Sums = field(default_factory=Sums)
    slates: Sums = field(default_factory=Sums)

    def merge(self, other: Self) -> None:
        self.decisions += other.decisions
        self.pending += other.pending
        self.clicks.merge(other.clicks)
        self.slates.merge(other.slates)

    def to_json(self) -> dict[str, Any]:
        counts = {"decisions": self.decisions, "pending": self.pending}
        return {**counts, "clicks": self.clicks.to_json(), "slates": self.slates.to_json()}

    @classmethod
    def from_json(cls, saved: Any) -> Self:
        """What `to_json` wrote."""
        decisions, pending = (whole(entry(saved, name)) for name in ("decisions", "pending"))
        clicks, slates = (Sums.from_json(entry(saved, name)) for name in ("clicks", "slates"))
        return cls(decisions, pending, clicks, slates)


@dataclass(slots=True)
class Bucket:
    """One stretch of time: every arm's sums, slots of live slates and how many of them explored, what evenly drawn
    slates would have earned by live decisions that explored, and how much more these earned (`gaps`)."""

    arms: dict[str, ArmSums] = field(default_factory=dict)
    slots: int = 0
    exploring: int = 0
    random: Sums = field(default_factory=Sums)
    gaps: Sums = field(default_factory=Sums)

    def arm(self, name: str) -> ArmSums:
        return self.arms.setdefault(name, ArmSums())

    def merge(self, other: Self) -> None:
        for name, sums in other.arms.items():
            self.arm(name).merge(sums)
        self.slots += other.slots
        self.exploring += other.exploring
        self.random.merge(other.random)
        self.gaps.merge(other.gaps)

    def to_json(self) -> dict[str, Any]:
        arms = {name: self.arms[name].to_json() for name in ARMS if name in self.arms}
        sums = {"random": self.random.to_json(), "gaps": self.gaps.to_json()}
        return {"arms": arms, "slots": self.slots, "exploring": self.exploring, **sums}

    @classmethod
    def from_json(cls, saved: Any) -> Self:
        """What `to_json` wrote."""
        arms = entry(saved, "arms")
        found = {name: ArmSums.from_json(arms[name]) for name in ARMS if name in arms}
        slots, exploring = (whole(entry(saved, name)) for name in ("slots", "exploring"))
        return cls(found, slots, exploring, *(Sums.from_json(entry(saved, name)) for name in ("random", "gaps")))


@dataclass(slots=True)
class Buckets:
    """Buckets by ⌊time / width⌋; times without events have none."""

    width: float = NARROWEST
    found: dict[int, Bucket] = field(default_factory=dict)

    def at(self, time: float) -> Bucket:
        """The bucket of a time, made where there is none; neighbours are merged where there are too many."""
        index = int(time // self.width)
        if index not in self.found:
            self.found[index] = Bucket()
            while len(self.found) > MOST_BUCKETS:
                self._halve()
        return self.found[int(time // self.width)]

    def _halve(self) -> None:
        self.width *= 2
        merged: dict[int, Bucket] = {}
        for index in sorted(self.found):
            if index // 2 in merged:
                merged[index // 2].merge(self.found[index])
            else:
                merged[index // 2] = self.found[index]
        self.found = merged

    def total(self, until: int | None = None) -> Bucket:
        """All of them together, or those up to an index."""
        found = Bucket()
        for index in sorted(self.found):
            if until is None or index <= until:
                found.merge(self.found[index])
        return found

    def settled_until(self) -> int | None:
        """The last index up to which nearly all rewards are there; None: they are not even at the beginning.

        Of later decisions those that nobody clicks are missing most, since they wait for the end of their window.
        """
        pending, answered, found = 0, 0, None
        for index in sorted(self.found):
            arms = self.found[index].arms.values()
            pending += sum(arm.pending for arm in arms)
            answered += sum(arm.clicks.count for arm in arms)
            if pending <= MOST_PENDING * (pending + answered):
                found = index
        return found

    def to_json(self) -> dict[str, Any]:
        return {"width": self.width, "found": [[at, self.found[at].to_json()] for at in sorted(self.found)]}

    @classmethod
    def from_json(cls, saved: Any) -> Self:
        """What `to_json` wrote."""
        width, found = finite(entry(saved, "width")), entry(saved, "found")
        if width < NARROWEST or not isinstance(found, list) or len(found) > MOST_BUCKETS:
            raise StateError(f"statistics: expected at most {MOST_BUCKETS} buckets, got others; is the save damaged?")
        return cls(width, {whole(at): Bucket.from_json(bucket) for at, bucket in found})


def entry(saved: Any, name: str) -> Any:
    """An entry of a save."""
    if not isinstance(saved, dict) or name not in saved:
        raise StateError(f"statistics: expected an entry {name!r}, got none; is the save damaged?")
    return saved[name]


def whole(value: Any) -> int:
    """A whole number of a save."""
    if type(value) is not int:
        raise StateError(f"statistics: expected a whole number, got {value!r:.100}; is the save damaged?")
    return value
