"""What a reading does to the difference NeUClust − CN-UCB: contrasts of cells that are alike in all other readings.

The seeds are the sample: a contrast is averaged over the pairs of cells first, then estimated over the common seeds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from neuclust.analysis.multiverse.outcomes import AHEAD, BEHIND, Estimate, Outcome, estimate

Options = tuple[str, ...]
Place = tuple[int, str]  # which reading, and an option of it other than the preferred


@dataclass(frozen=True, slots=True)
class Effect:
    """The mean change of the difference under one or two options, over `cells` contrasts."""

    words: str
    change: Estimate
    cells: int
    turned: int  # contrasts between the preferred and the changed cell in which ahead becomes behind, or behind ahead
    sound: bool  # whether all cells of the contrasts trained


def main_effects(record: Mapping[str, Any], outcomes: Sequence[Outcome]) -> list[Effect]:
    """Every option against the preferred one of its reading: mean of D(option) − D(preferred)."""
    return _effects(record, outcomes, [(place,) for place in _places(record)])


def interactions(record: Mapping[str, Any], outcomes: Sequence[Outcome]) -> list[Effect]:
    """Every two options: mean of D(a, b) − D(a) − D(b) + D(neither), the strongest first."""
    pairs = [pair for pair in combinations(_places(record), 2) if pair[0][0] != pair[1][0]]
    return sorted(_effects(record, outcomes, pairs), key=lambda effect: -abs(effect.change.mean))


def _places(record: Mapping[str, Any]) -> list[Place]:
    return [
        (index, option)
        for index, reading in enumerate(record["readings"])
        for option in reading["options"]
        if option != reading["preferred"]
    ]


def _effects(
    record: Mapping[str, Any], outcomes: Sequence[Outcome], wanted: Sequence[tuple[Place, ...]]
) -> list[Effect]:
    """Contrasts of sound cells, or, where there are none, of cells that were played at all."""
    played = {cell.options: cell for cell in outcomes if cell.played}
    found = []
    for places in wanted:
        contrasts = list(_contrasts(record, played, places))
        sound = [cells for cells in contrasts if all(cell.sound for cell in cells)]
        if contrasts:
            found.append((places, sound or contrasts, bool(sound)))
    return [_effect(record, places, contrasts, sound, len(found)) for places, contrasts, sound in found]


def _contrasts(
    record: Mapping[str, Any], played: Mapping[Options, Outcome], places: tuple[Place, ...]
) -> list[list[Outcome]]:
    """Cells with all of the options, each with those that have the preferred ones instead: 2 or 4 cells.

    The order is that of the subsets of options that are kept: all of them last.
    """
    preferred = [reading["preferred"] for reading in record["readings"]]
    found = []
    for options in played:
        if any(options[index] != option for index, option in places):
            continue
        corners = []
        for kept in range(2 ** len(places)):
            changed = list(options)
            for bit, (index, _) in enumerate(places):
                if not kept >> bit & 1:
                    changed[index] = preferred[index]
            corners.append(played.get(tuple(changed)))
        whole = [corner for corner in corners if corner is not None]
        if len(whole) == len(corners):
            found.append(whole)
    return found


def _effect(
    record: Mapping[str, Any],
    places: tuple[Place, ...],
    contrasts: Sequence[Sequence[Outcome]],
    sound: bool,
    tests: int,
) -> Effect:
    signs = [(-1) ** (len(places) - bin(kept).count("1")) for kept in range(2 ** len(places))]
    gaps = [[cell.gaps() for cell in cells] for cells in contrasts]
    seeds = sorted(set.intersection(*(set(gap) for row in gaps for gap in row)))
    changes = np.mean(
        [[sum(sign * gap[seed] for sign, gap in zip(signs, row, strict=True)) for seed in seeds] for row in gaps],
        axis=0,
    )
    turned = sum({cells[0].order, cells[-1].order} == {AHEAD, BEHIND} for cells in contrasts)
    words = ", ".join(f"{record['readings'][index]['name']}={option}" for index, option in places)
    return Effect(words, estimate(changes, tests), len(contrasts), turned, sound)
