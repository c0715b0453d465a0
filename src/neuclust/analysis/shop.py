"""Numbers of policies in a shop: clicks per request at the beginning and the end, share of the possible gain."""

from dataclasses import dataclass

import numpy as np

from neuclust.experiment.shop import Reals, ShopRun

TENTHS = 10


@dataclass(frozen=True, slots=True)
class ShopSummary:
    """`clicks` in all; `first` and `last`: expected clicks per request in the first and the last tenth; `gain`: the
    share (last − random) / (best − random) of what choosing can gain over random slates for the same requests."""

    policy: str
    requests: int
    clicks: int
    first: float
    last: float
    gain: float


def summarised(run: ShopRun) -> ShopSummary:
    """The summary of one policy; tenths have at least one request."""
    size = tenth(len(run))
    end = slice(len(run) - size, None)
    last, random, best = (float(values[end].mean()) for values in (run.expected, run.random, run.best))
    gain = (last - random) / (best - random)
    return ShopSummary(run.policy, len(run), int(run.clicks.sum()), float(run.expected[:size].mean()), last, gain)


def tenth(requests: int) -> int:
    """Requests in a tenth of them."""
    return max(1, requests // TENTHS)


def moving_average(values: Reals, window: int) -> Reals:
    """Means over the last min(t, window) values: (n,) -> (n,)."""
    sums = np.concatenate([[0.0], np.cumsum(values)])
    ends = np.arange(1, len(values) + 1)
    starts = np.maximum(ends - window, 0)
    found: Reals = (sums[ends] - sums[starts]) / (ends - starts)
    return found
