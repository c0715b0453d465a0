"""All slates of a design one by one, with their chances: for rounds with rules, where arms of a class are not alike."""

import functools
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from neuclust.core import Round
from neuclust.errors import DataError
from neuclust.logs.decisions import Design
from neuclust.slates.rules import row_rules

Floats = NDArray[np.float64]
MOST_PREFIXES = 20_000
CACHED = 32
ENDED = -1


@dataclass(frozen=True, slots=True)
class Slates:
    """All slates of positive chance: `positions` (m, k), `ENDED` after the last slot, and `chances` (m,); n arms."""

    positions: NDArray[np.int64]
    chances: Floats
    arms: int

    def marginals(self) -> Floats:
        """P(slot j holds a): (k, n)."""
        found = np.zeros((self.positions.shape[1], self.arms))
        for slot, rows in enumerate(self.positions.T):
            there = rows != ENDED
            np.add.at(found[slot], rows[there], self.chances[there])
        return found

    def pairs(self) -> Floats:
        """P(slot i holds a and slot j holds b): (k, n, k, n)."""
        k, n = self.positions.shape[1], self.arms
        found = np.zeros((k, n, k, n))
        for i, rows in enumerate(self.positions.T):
            for j, others in enumerate(self.positions.T):
                there = (rows != ENDED) & (others != ENDED)
                np.add.at(found[i, :, j], (rows[there], others[there]), self.chances[there])
        return found


@dataclass(frozen=True)
class _Case:
    """What the slates of a design depend on; two rounds with the same rules on the same rows are one case."""

    design: Design
    slots: int
    arms: int
    rules: Hashable
    at: str = field(compare=False)
    following: Callable[[Sequence[int]], Floats] = field(compare=False)


def enumerated_slates(design: Design, round: Round, following: Callable[[Sequence[int]], Floats]) -> Slates:
    """All slates of a design, by P(· | S) as a function of S; refused where there are more than `MOST_PREFIXES`."""
    key, n = rules_key(round), len(round.arm_ids)
    return _enumerated(_Case(design, round.slate_size, n, key, f"round {round.t}", following))


def rules_key(round: Round) -> Hashable:
    """The rules of a round on its rows, as something to look up by."""
    rules = row_rules(round)
    caps = tuple((groups.tobytes(), most) for groups, most in rules.caps)
    return rules.allowed.tobytes(), rules.length, rules.required, caps


@functools.lru_cache(CACHED)
def _enumerated(case: _Case) -> Slates:
    waiting: list[tuple[tuple[int, ...], float]] = [((), 1.0)]
    found: list[tuple[tuple[int, ...], float]] = []
    seen = 0
    while waiting:
        prefix, chance = waiting.pop()
        chances = case.following(prefix)
        rows = np.flatnonzero(chances).tolist()
        seen += len(rows)
        if seen > MOST_PREFIXES:
            wanted = f"expected at most {MOST_PREFIXES} beginnings of slates within the rules, got more"
            raise DataError(f"{case.at}: slot marginals: {wanted}; use ips or rips, which need none")
        if not rows:
            found.append((prefix, chance))
        waiting.extend(((*prefix, row), chance * float(chances[row])) for row in rows)
    positions = np.full((len(found), case.slots), ENDED, np.int64)
    for index, (slate, _) in enumerate(found):
        positions[index, : len(slate)] = slate
    return Slates(positions, np.array([chance for _, chance in found]), case.arms)
