"""Small slate problems whose every probability is a table: N = 6 to 8 arms, K = 2 or 3, three contexts.

A table of a problem has one entry for each context and each of the S ordered slates, (C, S); what an estimator makes
of a row depends on these two and on the clicks, so its expectation is a finite sum.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import permutations
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Structure = Literal["additive", "cascade", "interacting"]
Overlap = Literal["good", "fair", "poor"]

STRUCTURES: tuple[Structure, ...] = ("additive", "cascade", "interacting")
OVERLAPS: tuple[Overlap, ...] = ("good", "fair", "poor")
ESTIMATORS = ("ips", "snips", "iips", "rips")
CONTEXTS = 3
SIZES = {"additive": (7, 2), "cascade": (6, 3), "interacting": (8, 2)}  # N and K
SHARES = {"good": (1.0, 0.75), "fair": (0.9, 0.65), "poor": (0.7, 0.4)}  # explored slots: logger, target


@dataclass(frozen=True, slots=True)
class Problem:
    """Arms, slates and the chance of a click in each slot."""

    arms: int
    slates: Ints  # (S, K)
    clicks: Floats  # (C, S, K): the chance of a click in each slot, given the whole slate
    bases: Ints  # (2, C): the slate that the logger and the target play where they do not explore


def problem(structure: Structure, seed: int = 0) -> Problem:
    """The chance that an arm is clicked is attraction times decay, and further

    - additive: nothing else; cascade: every click chance above a slot makes it less likely to be seen;
    - interacting: an arm of the group of another slot's arm is clicked half as often, wherever that slot is.
    """
    n, k = SIZES[structure]
    rng = np.random.default_rng(seed)
    slates = np.array(list(permutations(range(n), k)), np.int64)
    attraction = rng.uniform(0.02, 0.4, (CONTEXTS, n))
    own = attraction[:, slates]  # (C, S, K)
    clicks = own * 0.85 ** np.arange(k)
    if structure == "cascade":
        unseen = np.cumprod(1 - 0.8 * own, axis=2)
        clicks[:, :, 1:] *= unseen[:, :, :-1]
    if structure == "interacting":
        groups = slates % 3
        alike = (groups[:, :, None] == groups[:, None, :]).sum(2) > 1
        clicks = np.where(alike, 0.5 * clicks, clicks)
    worth = clicks.sum(2)
    order = np.argsort(worth, axis=1)
    return Problem(n, slates, clicks, np.stack([order[:, len(slates) // 2], order[:, -1]]))


def sequential(slates: Ints, base: Ints, share: float, arms: int) -> Floats:
    """P(prefix of each slate), (C, S, K), where every slot plays the first arm of the base slate that is left, and with
    probability `share` an arm drawn evenly from all that are left."""
    found = np.ones((len(base), *slates.shape))
    for c, slate in enumerate(slates[base]):
        for s, arms_of in enumerate(slates):
            chance = 1.0
            for place, arm in enumerate(arms_of):
                best = next((other for other in slate if other not in arms_of[:place]), None)
                epsilon = 1.0 if best is None else share
                chance *= epsilon / (arms - place) + (1 - epsilon) * (arm == best)
                found[c, s, place] = chance
    return found


def slot_chances(slates: Ints, chances: Floats) -> Floats:
    """P(the arm of each slot of each slate stands in that slot), (C, S, K), from the chances of slates (C, S)."""
    found = np.empty((*chances.shape, slates.shape[1]))
    for place in range(slates.shape[1]):
        same = slates[:, place, None] == slates[None, :, place]
        found[:, :, place] = chances @ same
    return found


@dataclass(frozen=True, slots=True)
class Tables:
    """A logger beside a target: all (C, S, ...) tables an estimator reads."""

    logged: Floats  # (C, S) chance of a slate under the logger
    target: Floats  # (C, S) under the target
    slate: Floats  # (C, S) weight of the slate
    slots: Floats  # (C, S, K) weight of each slot's arm in its slot
    prefixes: Floats  # (C, S, K) weight of the slate up to each slot
    target_prefixes: Floats  # (C, S, K) chance of the slate up to each slot under the target
    largest: dict[str, float]  # weight of each estimator, known from the designs


def tables(which: Problem, overlap: Overlap) -> Tables:
    """Weights target over logger of slates, slots and prefixes."""
    logger, target = (
        sequential(which.slates, base, share, which.arms)
        for base, share in zip(which.bases, SHARES[overlap], strict=True)
    )
    logged, wanted = logger[:, :, -1], target[:, :, -1]
    slots = slot_chances(which.slates, wanted) / slot_chances(which.slates, logged)
    slate, prefixes = wanted / logged, target / logger
    largest = {"ips": slate.max(), "snips": slate.max(), "iips": slots.max(), "rips": prefixes.max()}
    return Tables(logged, wanted, slate, slots, prefixes, target, {name: float(most) for name, most in largest.items()})
