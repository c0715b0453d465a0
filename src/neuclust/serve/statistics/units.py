"""The units in which people read rewards: statistics are kept on the policy's scale of 0 to 1 and told in these."""

from dataclasses import asdict, dataclass, replace
from typing import Any, Self, TypeVar

from neuclust.serve.statistics.statistics import Statistics
from neuclust.serve.statistics.sums import Estimate
from neuclust.serve.store.contract import Progress

KEY = "units"  # of `Progress.told`, as `Units.to_json` gives them
SAVED = ("low", "high", "slots", "reward")
PER_SLOT = "sum"  # the slate's reward of which the policy learns the mean per slot
Found = TypeVar("Found", Estimate, Estimate | None)


@dataclass(frozen=True, slots=True)
class Units:
    """The range of an item's reward, how many items a slate has, and what a slate is worth."""

    low: float = 0.0
    high: float = 1.0
    slots: int = 1
    reward: str = PER_SLOT

    @classmethod
    def of(cls, progress: Progress | None) -> Self:
        """Those that the learner told, clicks where it told none."""
        saved = None if progress is None else progress.told.get(KEY)
        return cls() if saved is None else cls(*(saved[name] for name in SAVED))

    @property
    def clicks(self) -> bool:
        """Whether rewards are clicks, and not grades or money."""
        return (self.low, self.high) == (0.0, 1.0)

    @property
    def width(self) -> float:
        return self.high - self.low

    @property
    def digits(self) -> int:
        """After the decimal point, for people."""
        return 2 if self.width <= 10 else 1 if self.width <= 1_000 else 0

    @property
    def words(self) -> str:
        """What a request earns."""
        return " clicks" if self.clicks else ""

    def per_request(self, found: Found, seen: float) -> Found:
        """Of sums over a slate of which `seen` items were seen on average."""
        return self._on(found, self.low * seen)

    def per_item(self, found: Found) -> Found:
        """Of one item."""
        return self._on(found, self.low)

    def per_slate(self, found: Found) -> Found:
        """Of the slate's reward: per slot where that is the sum, else as it was stated."""
        return self._on(found, self.low) if self.reward == PER_SLOT else found

    def difference(self, found: Found) -> Found:
        """Of two means."""
        return self._on(found, 0.0)

    def total(self, rewards: float, count: float) -> float:
        """Of the sum of the rewards of so many items."""
        return self.low * count + self.width * rewards

    def seen(self, statistics: Statistics) -> float:
        """How many items of a live slate were seen on average; where none was yet, all of a slate."""
        live = statistics.buckets.total().arms.get("live")
        count = 0 if live is None else live.clicks.count
        return sum(slot.count for slot in statistics.slots) / count if count else float(self.slots)

    def number(self, value: float, signed: bool = False) -> str:
        """For people."""
        text = f"{value:+.{self.digits}f}" if signed else f"{value:.{self.digits}f}"
        return text.replace("-", "−")

    def ends(self, found: Estimate) -> str:
        """The interval behind a number; empty where there is none."""
        if found.low is None or found.high is None:
            return ""
        return f" ({self.number(found.low)} to {self.number(found.high)})"

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "clicks": self.clicks, "digits": self.digits}

    def _on(self, found: Found, offset: float) -> Found:
        if found is None:
            return found
        low, high = (None if each is None else offset + self.width * each for each in (found.low, found.high))
        return replace(found, mean=offset + self.width * found.mean, low=low, high=high)
