"""Numbers over time for charts: neighbouring buckets together, so that every point has rows enough for an interval."""

import math
from collections.abc import Callable, Iterator
from typing import Any

from neuclust.serve.statistics.buckets import Bucket, Buckets
from neuclust.serve.statistics.comparison import random_problem
from neuclust.serve.statistics.statistics import Statistics
from neuclust.serve.statistics.sums import Estimate, Span, Sums, mean_estimate
from neuclust.serve.statistics.units import Units

MOST_POINTS = 48
MOST_RANDOM = 12
ROWS = 50  # answered decisions of a point
DRAWS = 60  # even draws of a point of random
SHOWN = ("live", "holdout", "shadow")


def series(statistics: Statistics, units: Units) -> dict[str, Any]:
    """Points by name: clicks per request of `live`, `holdout`, `shadow` and `random`, and shares of `exploring` slots.

    A point: from, to (seconds), mean, low, high, count, and `settled`: whether nearly all of its rewards are there.
    """
    buckets, span = statistics.buckets, (0.0, float(max(len(statistics.slots), 1)))
    total, seen = buckets.total(), units.seen(statistics)

    def points(most: int, sums_of: Callable[[Bucket], Sums]) -> list[dict[str, Any]]:
        return _points(buckets, most, span, sums_of, lambda estimate: units.per_request(estimate, seen))

    found: dict[str, Any] = {}
    for name in SHOWN:
        if name in total.arms:
            most = min(MOST_POINTS, total.arms[name].clicks.count // ROWS)
            found[name] = points(most, _clicks_of(name))
    most = min(MOST_RANDOM, int(statistics.weights.ess // DRAWS))
    told = not random_problem(statistics)
    found["random"] = points(most, lambda bucket: bucket.random) if told else []
    found["exploring"] = [
        {"from": start, "to": end, "mean": bucket.exploring / bucket.slots, "count": bucket.slots}
        for start, end, bucket in grouped(buckets, MOST_POINTS)
        if bucket.slots
    ]
    return found


def _clicks_of(name: str) -> Callable[[Bucket], Sums]:
    return lambda bucket: bucket.arms[name].clicks if name in bucket.arms else Sums()


def _points(
    buckets: Buckets, most: int, span: Span, sums_of: Callable[[Bucket], Sums], stated: Callable[[Estimate], Estimate]
) -> list[dict[str, Any]]:
    found = []
    until = buckets.settled_until()
    settled = -math.inf if until is None else (until + 1) * buckets.width
    for start, end, bucket in grouped(buckets, max(most, 1)):
        estimate = mean_estimate(sums_of(bucket), span)
        if estimate is not None:
            found.append({"from": start, "to": end, "settled": end <= settled, **stated(estimate).to_json()})
    return found


def grouped(buckets: Buckets, most: int) -> Iterator[tuple[float, float, Bucket]]:
    """At most so many stretches of one width, in order of time: start, end and all of it together."""
    width, indices = 1, sorted(buckets.found)
    while len({index // width for index in indices}) > most and width < 1 << 60:
        width *= 2
    together: dict[int, Bucket] = {}
    for index in indices:
        together.setdefault(index // width, Bucket()).merge(buckets.found[index])
    for place, bucket in together.items():  # no stretch reaches beyond the buckets there are
        start, end = max(place * width, indices[0]), min((place + 1) * width, indices[-1] + 1)
        yield start * buckets.width, end * buckets.width, bucket
