"""Feedback that arrives after its round: the updates a policy has still to make."""

import heapq
from collections.abc import Iterator
from dataclasses import dataclass, field

from neuclust.core import Feedback, Round, Slate

Update = tuple[Round, Slate, Feedback]


@dataclass(slots=True)
class DelayedFeedback:
    """Pending updates by the round whose end brings them; those due in one round come in the order of play."""

    _pending: list[tuple[int, int, Update]] = field(default_factory=list)  # a heap of (due round, order, update)
    _added: int = 0

    def add(self, update: Update, due: int | None) -> None:
        """Keep an update until the end of round `due`; None: its feedback never arrives."""
        if due is not None:
            heapq.heappush(self._pending, (due, self._added, update))
            self._added += 1

    def due(self, t: int) -> Iterator[Update]:
        """Take out the updates that the end of round t brings."""
        while self._pending and self._pending[0][0] <= t:
            yield heapq.heappop(self._pending)[2]
