"""Branch and bound for the best slate: exact widths only for arms and clusters that can still win.

Upper bounds u ≥ v of all arms are cheap, v itself is not. An arm below the K-th exact value of its cluster cannot be
in b_c; a cluster whose V from upper bounds is below the best exact V cannot win, because F is non-decreasing. The slate
is the one that v of all arms gives, ties included. Bounds that are not finite or stop falling raise an error.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from neuclust.kernels import compiled
from neuclust.kernels.jit import Floats, Integers
from neuclust.kernels.ranking import unsound

Bools = NDArray[np.bool_]

FIRST = 16  # rows made exact before there is anything to compare with
EARLY = 128  # rows tightened a little to see whether their cluster can win at all
BLOCK = 512  # rows tightened at once
SLACK = 1e-9  # relative; bounds must stay above what rounding makes of the exact value


class Tighten(Protocol):
    def __call__(self, rows: Integers, floor: float, early: bool = False) -> None: ...


@dataclass(slots=True)
class Bounds:
    """f, upper bounds of the bonus and of v = f + bonus of distinct contexts (u,); arms (n,) point there by `group`."""

    means: Floats
    bonuses: Floats
    upper: Floats
    exact: Bools  # whether the bounds are exact
    tried: Bools  # whether the bounds were tightened, early or fully
    group: Integers
    tighten: Tighten  # lowers the bounds of rows until each is exact or below the floor; early: a little at little cost

    def scores(self, positions: Integers) -> tuple[Floats, Floats]:
        """f and bonus of arms, (k,) each."""
        rows = self.group[positions]
        return self.means[rows], self.bonuses[rows]


class Clusters(NamedTuple):
    """The clusters of the arms (n,), the arms of every cluster, and the rank of the arms (n,) that breaks ties."""

    labels: Integers
    members: list[Integers]
    rank: Integers


def best_of(
    bounds: Bounds, members: Integers, rank: Integers, k: int, ceiling: Callable[[Integers], float], least: float
) -> Integers | None:
    """The k best of `members` by (−v, rank), best first; None once `ceiling` of the best by bounds is below `least`."""
    rows, rank = bounds.group[members], rank[members]
    one = np.zeros(len(members), np.int64)
    before: tuple[Floats, Bools, Bools] | None = None
    while True:
        upper = bounds.upper[rows]
        if not np.isfinite(upper).all() or (before is not None and not _moved(bounds, rows, before)):
            raise unsound()
        before = upper, bounds.exact[rows], bounds.tried[rows]
        best = compiled.top_of_groups(upper, rank, one, 1, k)[0]
        if bounds.exact[rows[best]].all():  # all others are below, or equal with a larger rank
            return np.asarray(members[best])
        if ceiling(members[best]) < least:
            return None
        exact = bounds.exact[rows]
        if exact.sum() < k:
            first = _largest(bounds, rows[~exact], FIRST)
            if least > -np.inf and not bounds.tried[first].all():  # often enough to see that this cluster cannot win
                untried = _largest(bounds, rows[~bounds.tried[rows]], EARLY)
                bounds.tried[untried] = True
                bounds.tighten(untried, -np.inf, early=True)
            else:
                bounds.tighten(first, -np.inf)
                bounds.tried[first] = True
        else:
            floor = -np.partition(-upper[exact], k - 1)[k - 1]
            bounds.tighten(_largest(bounds, rows[~exact & (upper >= floor)], BLOCK), floor)


def _moved(bounds: Bounds, rows: Integers, before: tuple[Floats, Bools, Bools]) -> bool:
    """Whether the last pass changed any bound: each can become exact once, be tried once, and fall."""
    upper, exact, tried = before
    newly = (bounds.exact[rows] & ~exact) | (bounds.tried[rows] & ~tried) | (bounds.upper[rows] < upper)
    return bool(newly.any())


def best_overall(bounds: Bounds, rank: Integers, k: int) -> Integers:
    """The k best of all arms by (−v, rank), best first."""
    found = best_of(bounds, np.arange(len(rank)), rank, k, lambda _: np.inf, -np.inf)
    assert found is not None
    return found


def _largest(bounds: Bounds, rows: Integers, count: int) -> Integers:
    """The distinct rows with the largest bounds, about `count` of them, ascending."""
    rows = np.unique(rows)
    if len(rows) <= count:
        return rows
    return np.sort(rows[np.argpartition(-bounds.upper[rows], count)[:count]])


def best_cluster(
    bounds: Bounds,
    clusters: Clusters,
    k: int,
    ceiling: Callable[[int, Floats], float],
    value: Callable[[Integers], float],
) -> tuple[int, Integers]:
    """The cluster with the largest V (the first of equals) and its k best arms.

    `ceiling(c, u)` bounds V of cluster c from the k largest bounds u of its arms, `value(positions)` is V of k arms
    whose v is known.
    """
    labels, members, rank = clusters

    def upper(c: int, positions: Integers) -> float:
        bound = ceiling(c, bounds.upper[bounds.group[positions]])
        return bound + SLACK * (abs(bound) + 1)

    tops = compiled.top_of_groups(bounds.upper[bounds.group], rank, labels, len(members), k)
    limits = np.array([upper(c, top) for c, top in enumerate(tops)])
    if not np.isfinite(limits).all():
        raise unsound()
    winner, best, slate = -1, -np.inf, np.zeros(0, np.int64)
    for c in np.argsort(-limits, kind="stable").tolist():
        if limits[c] < best:
            break
        found = best_of(bounds, members[c], rank, k, partial(upper, c), best)
        if found is None:
            continue
        score = value(found)
        if not np.isfinite(score):
            raise unsound()
        if score > best or (score == best and c < winner):
            winner, best, slate = c, score, found
    return winner, slate
