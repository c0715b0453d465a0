"""Feedback on its way: what was played waits here until the round that brings its feedback is over."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from neuclust.core import Feedback, Round, Slate

Parcel = tuple[Round, Slate, Feedback]


@dataclass(slots=True)
class Mail:
    """Parcels by the round that brings them; those of one round come in the order they were sent."""

    _waiting: dict[int, list[Parcel]] = field(default_factory=dict)

    def send(self, parcel: Parcel, arrival: int | None) -> None:
        """Take a parcel that arrives at the end of round `arrival`; None: never."""
        if arrival is not None:
            self._waiting.setdefault(arrival, []).append(parcel)

    def delivered(self, t: int) -> Iterator[Parcel]:
        """What the end of round t brings."""
        yield from self._waiting.pop(t, [])
