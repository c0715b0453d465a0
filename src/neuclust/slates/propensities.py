"""Slates drawn slot by slot, and the exact chance of each slot's arm given the arms in the slots before it.

With the arms S in the slots before, A(S) the arms that may follow (`slates.rules`), b* the first arm of a base slate in
A(S) and ε = `share`, or 1 where A(S) holds no arm of the base slate,

    P(a | S) = (1 − ε)·1[a = b*] + ε·[(1 − anywhere)·1[a ∈ A(S) ∩ pool]/|A(S) ∩ pool| + anywhere·1[a ∈ A(S)]/|A(S)|],

where the pool's part goes to all of A(S) if A(S) ∩ pool is empty. Which of the terms an arm came from is not
conditioned on: an explored b* has both. The product over the slots is the chance of the slate; over all slates that
filling can end with, these chances sum to 1.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from neuclust.configuration import AT_LEAST_ONE, checked
from neuclust.core import Round
from neuclust.errors import ConfigError, DataError
from neuclust.slates.rules import Filling, Mask, RowRules, row_rules

Floats = NDArray[np.float64]
Number = TypeVar("Number", float, Floats)


@dataclass(frozen=True, slots=True)
@checked(share=(0, 1), pool=AT_LEAST_ONE, anywhere=(0, 1))
class Exploration:
    """A slot explores with probability `share`: it draws from the `pool` arms of the best scores, and with probability
    `anywhere` from all arms that are allowed, so that every allowed slate is possible."""

    share: float = 0.1
    pool: int = 20
    anywhere: float = 0.2

    def __post_init__(self) -> None:
        if self.anywhere == 0 and self.share > 0:
            said = "expected a number above 0 where slots explore, got 0: slates with an arm outside the pool would be "
            raise ConfigError(said + "impossible; raise it or set share=0", field="anywhere")


class Sampled(NamedTuple):
    """A slate drawn slot by slot, (k′,) each."""

    positions: Tensor  # int64 rows of the round
    propensities: Tensor
    explored: Tensor  # bool: drawn evenly from all of A(S)


# --- one coin per slot ----------------------------------------------------------------------------------------------


def slot_chance(
    best: Number, inside: Number, count: Number, inside_count: Number, share: Number, anywhere: Number
) -> Number:
    """P(a | S) for 1[a = b*], 1[a ∈ pool], |A(S)|, |A(S) ∩ pool|, ε and `anywhere`: numbers or arrays of one shape.

    The arm belongs to A(S). ε is 1 where there is no b*; where A(S) ∩ pool is empty, `anywhere` is 1 and its count 1.
    """
    return share * (anywhere / count + inside * ((1 - anywhere) / inside_count)) + (1 - share) * best


class _Slot:
    """P(· | S) of one slot: b* or None, ε, and A(S) with its part in the pool."""

    __slots__ = ("anywhere", "best", "count", "epsilon", "inside", "inside_count", "options")

    def __init__(self, filling: Filling, base: Sequence[int], pool: Mask, exploration: Exploration) -> None:
        self.options, self.count = filling.options(), filling.left
        self.best = next((row for row in base if self.options[row]), None)
        self.epsilon = 1.0 if self.best is None else exploration.share
        self.inside = self.options & pool
        self.inside_count = int(np.count_nonzero(self.inside))
        self.anywhere = exploration.anywhere if self.inside_count else 1.0

    def chance(self, position: int) -> float:
        """P(a | S) of an arm of A(S)."""
        best, inside, among = position == self.best, bool(self.inside[position]), max(self.inside_count, 1)
        return slot_chance(best, inside, self.count, among, self.epsilon, self.anywhere)

    def chances(self) -> Floats:
        """P(· | S) of all arms, 0 outside A(S): (n,)."""
        best, inside = np.zeros(len(self.options)), self.inside.astype(np.float64)
        if self.best is not None:
            best[self.best] = 1.0
        others = (self.count, max(self.inside_count, 1), self.epsilon, self.anywhere)
        count, among, epsilon, anywhere = (np.asarray(float(each)) for each in others)
        return slot_chance(best, inside, count, among, epsilon, anywhere) * self.options

    def draw(self, coin: float, part: float, place: float) -> tuple[int, bool]:
        """An arm by three uniform numbers below 1, and whether it came evenly from all of A(S)."""
        if coin >= self.epsilon and self.best is not None:
            return self.best, False
        if part < self.anywhere:
            return int(np.flatnonzero(self.options)[int(place * self.count)]), True
        return int(np.flatnonzero(self.inside)[int(place * self.inside_count)]), False


class SlateSampler:
    """The distribution of slates around a base slate: prepared once, to draw from or to evaluate slates with.

    `base` are positions in slot order, of any number; they may break the rules, only those in A(S) count. `pool` are
    positions in any order. `rules` are the round's, where they are known already.
    """

    def __init__(
        self, base: Tensor, pool: Tensor, round: Round, exploration: Exploration, rules: RowRules | None = None
    ) -> None:
        self.rules = row_rules(round) if rules is None else rules
        self.exploration, self.device = exploration, round.arm_ids.device
        self.base = _rows(round, base, "base slate")
        self.pool = np.zeros(len(round.arm_ids), np.bool_)
        self.pool[_rows(round, pool, "pool")] = True

    def draw(self, rng: np.random.Generator) -> Sampled:
        """A slate; three uniform numbers are drawn for each of the k′ slots, whatever they are used for."""
        filling = Filling(self.rules)
        chances, explored = [], []
        for coin, part, place in rng.random((filling.length, 3)).tolist():
            if not filling.left:  # several caps ended it
                break
            slot = _Slot(filling, self.base, self.pool, self.exploration)
            position, anywhere = slot.draw(coin, part, place)
            chances.append(slot.chance(position))
            explored.append(anywhere)
            filling.take(position)
        return _sampled(filling.taken, chances, explored, self.device)

    def chances(self, slate: Sequence[int]) -> list[float]:
        """The chance of each slot's arm given the slots before it, 0 from the first one that cannot follow, and in the
        last slot of a slate that would not end there: the product is the chance of the slate."""
        filling, found = Filling(self.rules), [0.0] * len(slate)
        for place, position in enumerate(slate):
            if not filling.allows(position):
                break
            found[place] = _Slot(filling, self.base, self.pool, self.exploration).chance(position)
            filling.take(position)
        return _ended(filling, found)

    def following(self, taken: Sequence[int]) -> Floats:
        """P(· | S) of the slot that follows these arms: (n,), zeros where they cannot be or nothing follows."""
        filling = Filling(self.rules)
        for position in taken:
            if not filling.allows(position):
                return np.zeros(len(self.pool))
            filling.take(position)
        if not filling.left:
            return np.zeros(len(self.pool))
        return _Slot(filling, self.base, self.pool, self.exploration).chances()


def _rows(round: Round, positions: Tensor, name: str) -> list[int]:
    rows: list[int] = positions.tolist()
    n = len(round.arm_ids)
    if rows and not 0 <= min(rows) <= max(rows) < n:
        raise DataError(f"round {round.t}: expected a {name} of rows from 0 to below {n}, got {rows!r:.100}")
    return rows


def _sampled(rows: Sequence[int], chances: Sequence[float], explored: Sequence[bool], device: torch.device) -> Sampled:
    arrays = np.array(rows, np.int64), np.array(chances, np.float64), np.array(explored, np.bool_)
    return Sampled(*(torch.from_numpy(array).to(device) for array in arrays))


def _ended(filling: Filling, chances: list[float]) -> list[float]:
    """The chances, with 0 in the last slot of a slate that may go on."""
    if chances and filling.left:
        chances[-1] = 0.0
    return chances


def sample(base: Tensor, pool: Tensor, round: Round, exploration: Exploration, rng: np.random.Generator) -> Sampled:
    """A slate of k′ arms drawn around a base slate with a pool, both positions (`SlateSampler`)."""
    return SlateSampler(base, pool, round, exploration).draw(rng)


def probability(slate: Tensor, base: Tensor, pool: Tensor, round: Round, exploration: Exploration) -> Tensor:
    """The chance of each slot's arm of any slate under `sample`, given the slots before it: (k,) -> (k,) float64."""
    chances = SlateSampler(base, pool, round, exploration).chances(slate.tolist())
    return torch.tensor(chances, dtype=torch.float64, device=round.arm_ids.device)


# --- one coin per slate ---------------------------------------------------------------------------------------------


def uniform_slate(round: Round, rng: np.random.Generator) -> Sampled:
    """A slate of k′ arms, each slot drawn evenly from A(S): propensities 1/|A(S)|.

    Without rules these are k′ of n arms without replacement, by one call of `rng.choice`.
    """
    if round.rules is None:
        n = len(round.arm_ids)
        rows = rng.choice(n, size=min(round.slate_size, n), replace=False).tolist()
        even = [1 / (n - place) for place in range(len(rows))]
        return _sampled(rows, even, [True] * len(rows), round.arm_ids.device)
    nothing = torch.zeros(0, dtype=torch.int64)
    return sample(nothing, nothing, round, Exploration(share=1.0, anywhere=1.0), rng)


def one_coin_slate(greedy: Tensor, round: Round, epsilon: float, rng: np.random.Generator) -> tuple[Tensor, Tensor]:
    """With probability ε the slate of `uniform_slate`, else the greedy one (k′,): positions and propensities, (k′,).

    Random numbers: `rng.random()`, and those of `uniform_slate` where it is below ε.
    """
    explores = rng.random() < epsilon
    positions = uniform_slate(round, rng).positions if explores else greedy
    propensities = prefix_ratios(positions, greedy, round, epsilon)
    if not bool(propensities.all()):
        got = f"got rows {greedy.tolist()!r:.100}; make it by slates.rules.within_rules"
        raise DataError(f"round {round.t}: expected a greedy slate that keeps the rules and has k′ arms, {got}")
    return positions, propensities


def prefix_ratios(slate: Tensor, greedy: Tensor, round: Round, epsilon: float) -> Tensor:
    """The chance of each slot's arm given the slots before it, under one coin per slate (`one_coin_slate`): (k,).

    P(prefix_j) = (1 − ε)·1[prefix_j is the greedy slate's] + ε·Π_{i ≤ j} 1/|A(S_i)|, and a slot's propensity is
    P(prefix_j)/P(prefix_{j−1}). 0 from the first slot whose arm cannot follow, and in the last slot of a slate that
    would not end there.
    """
    rows, first = slate.tolist(), greedy.tolist()
    filling = Filling.of(round)
    found = [0.0] * len(rows)
    alike, before, even = True, 1.0, epsilon  # prefix is the greedy one's, P(prefix), ε·Π 1/|A(S_i)|
    for place, position in enumerate(rows):
        if not filling.allows(position):
            break
        share = 1 / filling.left
        if alike and epsilon < 1:
            alike = position == first[place] if place < len(first) else False
            even *= share
            after = even + (1 - epsilon) * alike
            found[place], before = after / before, after
        else:  # drawn evenly for certain: no product that runs out of digits
            found[place] = share if epsilon > 0 else 0.0
        if found[place] == 0:
            break
        filling.take(position)
    return torch.tensor(_ended(filling, found), dtype=torch.float64, device=round.arm_ids.device)


# --- how much data that is ------------------------------------------------------------------------------------------


def insertion_chance(
    arms: int, slate_size: int, exploration: Exploration, slot: int = 1, source: Literal["pool", "anywhere"] = "pool"
) -> float:
    """The chance that `sample` plays the base slate with one new arm inserted at a slot (1, 2, …, k), without rules.

    The arms before it and after it are the base slate's in order, of which the last one drops out: at each of these
    slots b* is the arm wanted. The new arm belongs to the pool, of which the base slate is a part, or only to the rest.
    """
    pool = min(max(exploration.pool, slate_size), arms)
    new = {"pool": pool - slate_size, "anywhere": arms - pool}.get(source, 0)
    if not 1 <= slot <= slate_size or new < 1:
        got = f"got {arms} arms, slates of {slate_size}, slot {slot}, {max(new, 0)} new arms from {source!r}"
        raise ConfigError(f"insertion: expected a slot of the slate and a new arm to insert, {got}")
    chance, epsilon = 1.0, exploration.share
    for place in range(slate_size):
        outside = place >= slot and source == "anywhere"  # the new arm was none of the pool's
        inside = (1 - exploration.anywhere) / (pool - place + outside)
        everywhere = exploration.anywhere / (arms - place)
        if place == slot - 1:
            chance *= epsilon * (everywhere + inside * (source == "pool"))
        else:
            chance *= 1 - epsilon + epsilon * (everywhere + inside)
    return chance


def decisions_for_matches(
    arms: int,
    slate_size: int,
    exploration: Exploration,
    matches: int = 100,
    source: Literal["pool", "anywhere"] = "pool",
) -> float:
    """How many decisions are expected to hold `matches` slates equal to those of a target that inserts one new arm.

    matches / chance, for the slot of the smallest chance (`insertion_chance`); infinite where nothing is explored.
    """
    slots = range(1, slate_size + 1)
    chance = min(insertion_chance(arms, slate_size, exploration, slot, source) for slot in slots)
    return matches / chance if chance > 0 else math.inf
