"""Which items were chosen and clicked lately: counts that fade, of a bounded number of items."""

from dataclasses import dataclass, field
from typing import Any, Self

from neuclust.errors import StateError
from neuclust.serve.statistics.buckets import entry, whole
from neuclust.serve.statistics.sums import finite

MOST_ITEMS = 600
HALF_LIFE = 5_000  # shown slots, after which a count is worth half
FORGOTTEN = 0.25  # a count below it is dropped


@dataclass(slots=True)
class RecentItems:
    """[times chosen, times answered, clicks] by item; all are halved after every `HALF_LIFE` slots."""

    counts: dict[str, list[float]] = field(default_factory=dict)
    slots: int = 0

    def chosen(self, item: str) -> None:
        """An item was put into a slot; it may take the place of the one that was chosen least."""
        self.slots += 1
        if self.slots % HALF_LIFE == 0:
            halved = {each: [count / 2 for count in counts] for each, counts in self.counts.items()}
            self.counts = {each: counts for each, counts in halved.items() if counts[0] >= FORGOTTEN}
        if item not in self.counts:
            if len(self.counts) >= MOST_ITEMS:
                del self.counts[min(self.counts, key=lambda each: (self.counts[each][0], each))]
            self.counts[item] = [0.0, 0.0, 0.0]
        self.counts[item][0] += 1

    def answered(self, item: str, clicks: float, times: int = 1) -> None:
        """What came back of an item; `times` −1 takes it back."""
        found = self.counts.get(item)
        if found is not None:
            found[1] = max(found[1] + times, 0.0)
            found[2] = max(found[2] + times * clicks, 0.0)

    def to_json(self) -> dict[str, Any]:
        return {"slots": self.slots, "counts": [[item, *counts] for item, counts in self.counts.items()]}

    @classmethod
    def from_json(cls, saved: Any) -> Self:
        """What `to_json` wrote."""
        rows = entry(saved, "counts")
        if not isinstance(rows, list) or len(rows) > MOST_ITEMS:
            raise StateError(f"statistics: expected at most {MOST_ITEMS} items, got others; is the save damaged?")
        counts = {str(item): [finite(each) for each in numbers] for item, *numbers in rows}
        return cls(counts, whole(entry(saved, "slots")))
