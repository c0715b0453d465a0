"""How often each item was shown and what it was worth, for slates of popular items."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from neuclust.errors import StateError
from neuclust.recommender.feedback.decisions import Lesson
from neuclust.recommender.items.catalogue import Catalogue

Numbers = NDArray[np.float64]
MOST_LISTED = 1_000
PRIOR = 10.0  # shows with the mean value of all, counted for every item: few shows tell little


class Popularity:
    """Shows n and sums of values s in [0, 1] by item code; what a show of an item is worth is (s + 10m)/(n + 10), with
    m the mean over all shows."""

    def __init__(self, shows: Numbers | None = None, values: Numbers | None = None) -> None:
        self._shows = np.zeros(0) if shows is None else shows
        self._values = np.zeros(0) if values is None else values

    def learn(self, lesson: Lesson) -> None:
        """Count a lesson; of a revision what differs from the earlier one."""
        codes = lesson.decision.payload.codes
        if not len(codes):
            return
        self._grow(int(codes.max()) + 1)
        self._add(codes, lesson.rewards, 1.0)
        if lesson.before is not None:
            self._add(codes, lesson.before, -1.0)

    def _add(self, codes: NDArray[np.int64], rewards: Numbers, times: float) -> None:
        seen = ~np.isnan(rewards)
        self._shows[codes[seen]] += times  # an item stands once in a slate
        self._values[codes[seen]] += times * rewards[seen]

    def _grow(self, count: int) -> None:
        if count > len(self._shows):
            more = np.zeros(max(count, 2 * len(self._shows)) - len(self._shows))
            self._shows, self._values = np.concatenate([self._shows, more]), np.concatenate([self._values, more])

    def top(self, catalogue: Catalogue, most: int = MOST_LISTED) -> list[list[Any]]:
        """The best items that are there and were shown, each as id and value per show; ties in the order of codes."""
        codes = catalogue.all_codes()
        codes = codes[codes < len(self._shows)]
        codes = codes[self._shows[codes] > 0]
        if not len(codes):
            return []
        shows, values = self._shows[codes], self._values[codes]
        worth = (values + PRIOR * values.sum() / shows.sum()) / (shows + PRIOR)
        order = np.argsort(-worth, kind="stable")[:most]
        return [[catalogue.id_of(int(codes[at])), float(worth[at])] for at in order.tolist()]

    def arrays(self) -> dict[str, Numbers]:
        """As saved: without the room for items to come."""
        used = int(np.flatnonzero(self._shows)[-1]) + 1 if self._shows.any() else 0
        return {"shows": self._shows[:used].copy(), "values": self._values[:used].copy()}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> "Popularity":
        shows, values = arrays.get("shows"), arrays.get("values")
        if shows is None or values is None or shows.shape != values.shape or shows.ndim != 1:
            raise StateError("popularity: expected shows and values by item, got others; is the state damaged?")
        return cls(shows.astype(np.float64), values.astype(np.float64))
