"""First and second moments of which arm is in which slot, for designs without rules, summed over classes of arms.

Each arm of the base slate is a class by itself, the pool's other arms are alike, and so are all others: a design gives
the same chances to all arms of a class. The state before a slot is (which arms of the base are taken, how many of the
pool's others), and chances of states are carried from slot to slot, so that nothing grows with the number of arms.
"""

import functools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from neuclust.errors import DataError
from neuclust.slates.propensities import slot_chance

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]
MOST_STATES = 1 << 22  # numbers carried at once, 32 MiB
CACHED = 256  # shapes kept; 20 KB each for slates of 5


@dataclass(frozen=True, slots=True)
class Shape:
    """A design but for which arm is which: n, k, whether each arm of the base is in the pool, |pool|, ε, anywhere."""

    arms: int
    slots: int
    base: tuple[bool, ...]  # distinct arms, at most k: later ones are never b*
    pool: int
    share: float
    anywhere: float

    @property
    def sizes(self) -> tuple[int, ...]:
        """Arms per class: ones for the base, the pool's others, all others."""
        others = self.pool - sum(self.base)
        return (*(1 for _ in self.base), others, self.arms - len(self.base) - others)


class Labelled(NamedTuple):
    """The shape of a design, and the class of every arm of the round, (n,)."""

    shape: Shape
    labels: Codes


class Moments(NamedTuple):
    """Chances of which classes are in which slots, and of arms of the base slate that are in none."""

    sizes: Floats  # (c,) arms per class
    first: Floats  # (k, c) P(slot j holds an arm of class c)
    second: Floats  # (k, c, k, c) P(c in slot i and d in slot j), 0 for i = j
    absent: Floats  # (k, c, b) P(c in slot j, and arm i of the base in no slot)
    absent_pairs: Floats  # (b, b) P(arms i and l of the base in no slot)

    def of_arms(self) -> Floats:
        """P(slot j holds one certain arm of class c): (k, c)."""
        return self.first / np.maximum(self.sizes, 1)

    def of_pairs(self) -> Floats:
        """P(slot i holds one certain arm of c and slot j another certain arm, of d): (k, c, k, c), 0 for i = j."""
        pairs = np.outer(self.sizes, self.sizes) - np.diag(self.sizes)
        return self.second / np.maximum(pairs, 1)[None, :, None, :]


def labelled(n: int, k: int, base: Sequence[int], pool: Sequence[int], share: float, anywhere: float) -> Labelled:
    """The shape of a sequential design around positions `base` with positions `pool`, and the classes of its arms."""
    kept = list(dict.fromkeys(base))[:k]
    inside = np.zeros(n, np.bool_)
    inside[list(pool)] = True
    labels = np.where(inside, len(kept), len(kept) + 1)
    labels[kept] = np.arange(len(kept))
    flags = tuple(bool(inside[arm]) for arm in kept)
    return Labelled(Shape(n, k, flags, int(inside.sum()), share, anywhere), labels)


@functools.lru_cache(CACHED)
def first_moments(shape: Shape) -> Moments:
    """Moments with `sizes` and `first` alone, the others empty."""
    return _carried(shape, pairs=False)


@functools.lru_cache(CACHED)
def moments(shape: Shape) -> Moments:
    """First and second moments of a shape."""
    return _carried(shape, pairs=True)


def mixed(weights: Sequence[float], parts: Sequence[Moments]) -> Moments:
    """Moments of a draw from one of several designs over the same classes: Σ_m w_m moments_m."""
    sums = [
        sum((w * part[field] for w, part in zip(weights, parts, strict=True)), np.zeros_like(parts[0][field]))
        for field in range(1, len(Moments._fields))
    ]
    return Moments(parts[0].sizes, *sums)


# --- chances of states, carried from slot to slot -------------------------------------------------------------------


def _carried(shape: Shape, pairs: bool) -> Moments:
    """Row 0 of what is carried: P(state); the others: P(class c in slot i, state), for every slot i so far and c."""
    k, classes, others = shape.slots, len(shape.sizes), shape.sizes[-2]
    states = (1 << len(shape.base), min(k, others) + 1)
    _check_size(shape, states[0] * states[1] * (1 + pairs * k * classes))
    carried = np.zeros((1, *states))
    carried[0, 0, 0] = 1.0
    first, second = np.zeros((k, classes)), np.zeros((k, classes, k, classes) if pairs else 0)
    for slot in range(k):
        flows = [carried * chance for chance in _class_chances(shape, slot)]
        totals = np.stack([flow.sum((1, 2)) for flow in flows], axis=1)  # (rows, c)
        first[slot] = totals[0]
        moved = [_moved(flow, index, len(shape.base)) for index, flow in enumerate(flows)]
        after = sum(moved, np.zeros_like(carried))
        if pairs:
            earlier = totals[1:].reshape(slot, classes, classes)
            second[:slot, :, slot], second[slot, :, :slot] = earlier, earlier.transpose(2, 0, 1)
            after = np.concatenate([after, *(flow[:1] for flow in moved)])
        carried = after
    sizes, nothing = np.array(shape.sizes, np.float64), np.zeros((0,) * 4)
    if not pairs:
        return Moments(sizes, first, nothing, nothing, nothing)
    last, out = carried.sum(2), ~_taken(shape)  # (1 + k·c, base states), (base states, b)
    absent = (last[1:] @ out).reshape(k, classes, len(shape.base))
    return Moments(sizes, first, second, absent, (out.T * last[0]) @ out)


def _check_size(shape: Shape, numbers: int) -> None:
    if numbers > MOST_STATES:
        around = f"slates of {shape.slots} around a base of {len(shape.base)}"
        asked = f"expected at most {MOST_STATES} chances to add up, got {numbers} for {around}"
        raise DataError(f"slot marginals: {asked}; use ips or rips, which need none")


def _class_chances(shape: Shape, slot: int) -> Iterator[Floats]:
    """P(the slot holds an arm of the class | state) for every class: (states of the base, taken of the pool's others).

    States that cannot be have the chance 0, and their conditional chances here mean nothing.
    """
    taken, from_others = _taken(shape), np.arange(min(shape.slots, shape.sizes[-2]) + 1)[None, :]
    of_pool = (taken & np.array(shape.base, np.bool_)).sum(1)[:, None] + from_others
    inside_count = np.maximum(shape.pool - of_pool, 0).astype(np.float64)
    exhausted = taken.all(1)
    best = np.where(exhausted, -1, taken.argmin(1) if shape.base else -1)
    ones = np.ones_like(inside_count)
    share = np.where(exhausted, 1.0, shape.share)[:, None] * ones
    anywhere = np.where(inside_count > 0, shape.anywhere, 1.0)
    rest = (ones * (shape.arms - slot), np.maximum(inside_count, 1), share, anywhere)
    for arm, inside in enumerate(shape.base):
        is_best = (best == arm)[:, None] * ones
        yield slot_chance(is_best, inside * ones, *rest) * ~taken[:, arm, None]
    left = shape.sizes[-2] - from_others
    yield slot_chance(0 * ones, ones, *rest) * np.maximum(left, 0)
    left = shape.sizes[-1] - (slot - taken.sum(1)[:, None] - from_others)
    yield slot_chance(0 * ones, 0 * ones, *rest) * np.clip(left, 0, shape.sizes[-1])


def _taken(shape: Shape) -> NDArray[np.bool_]:
    """Which arms of the base are taken in each of its states: (2^b, b)."""
    masks, arms = np.arange(1 << len(shape.base))[:, None], np.arange(len(shape.base))
    return (masks >> arms & 1).astype(np.bool_)


def _moved(flow: Floats, index: int, base: int) -> Floats:
    """The chances of states after an arm of a class was taken: (rows, base states, taken of the pool's others)."""
    if index > base:  # an arm outside: the state counts it by the slot
        return flow
    after = np.zeros_like(flow)
    if index == base:
        after[:, :, 1:] = flow[:, :, :-1]
    else:
        free = np.flatnonzero(~(np.arange(flow.shape[1]) >> index) & 1)
        after[:, free | 1 << index] = flow[:, free]
    return after
