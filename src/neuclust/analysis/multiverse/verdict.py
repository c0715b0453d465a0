"""The verdict by readings: in how many cells the paper's order holds, and which readings it turns on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from neuclust.analysis.multiverse.effects import Effect, main_effects
from neuclust.analysis.multiverse.outcomes import (
    AHEAD,
    BEHIND,
    CN_UCB,
    FAILED,
    LEVEL,
    NEUCLUST,
    Outcome,
    outcomes_of,
)


@dataclass(frozen=True, slots=True)
class Verdict:
    """Counts of cells by order, and the options that turn it, most first."""

    orders: Mapping[str, int]
    sound_orders: Mapping[str, int]
    near_orders: Mapping[str, int]  # of sound cells where CN-UCB has half to twice its published regret
    turns: tuple[Effect, ...]
    whole_fits: int  # sound cells in which order, both sizes and the gap are the printed ones
    f_helps: int
    f_hurts: int

    @property
    def cells(self) -> int:
        return sum(self.orders.values())

    @property
    def sound(self) -> int:
        return sum(self.sound_orders.values())

    @property
    def sentence(self) -> str:
        """The order holds in a of b; it turns on …"""
        turns = "; ".join(f"{e.words} (in {e.turned} of {e.cells} pairs of cells)" for e in self.turns)
        return (
            f"The order holds in {self.sound_orders[AHEAD]} of {self.sound} cells whose networks trained "
            f"(level in {self.sound_orders[LEVEL]}, turned round in {self.sound_orders[BEHIND]}), and in "
            f"{self.orders[AHEAD]} of all {self.cells}; it turns on {turns or 'no reading of this grid'}."
        )


def verdict_of(record: Mapping[str, Any], outcomes: Sequence[Outcome] | None = None) -> Verdict:
    """The verdict on a record; an option counts as one the order turns on if it does so in half of its pairs."""
    cells = outcomes_of(record) if outcomes is None else outcomes
    sound = [cell for cell in cells if cell.sound]
    effects = [effect for effect in main_effects(record, cells) if effect.sound and 2 * effect.turned >= effect.cells]
    effects.sort(key=lambda effect: (-effect.turned, effect.words))
    effects_of_f = [cell.effect_of_f for cell in sound if cell.effect_of_f.count > 1]
    return Verdict(
        _orders(cells), _orders(sound), _orders([cell for cell in sound if cell.near]), tuple(effects),
        sum(map(fits, sound)), sum(effect.high < 0 for effect in effects_of_f),
        sum(effect.low > 0 for effect in effects_of_f),
    )  # fmt: skip


def fits(cell: Outcome) -> bool:
    """Whether order, both sizes and the gap are the printed ones."""
    return cell.order == AHEAD and cell.gap_fits and cell.size_fits(NEUCLUST) and cell.size_fits(CN_UCB)


def _orders(cells: Sequence[Outcome]) -> dict[str, int]:
    return {order: sum(cell.order == order for cell in cells) for order in (AHEAD, LEVEL, BEHIND, FAILED)}


def orders_by(
    record: Mapping[str, Any], cells: Sequence[Outcome], names: Sequence[str]
) -> dict[tuple[str, ...], dict[str, int]]:
    """Counts of cells by order for every combination of answers to these readings that there is, as declared."""
    readings = [reading["name"] for reading in record["readings"]]
    places = [readings.index(name) for name in names]
    ranks = [list(record["readings"][place]["options"]) for place in places]
    found: dict[tuple[str, ...], list[Outcome]] = {}
    for cell in cells:
        found.setdefault(tuple(cell.options[place] for place in places), []).append(cell)
    order = sorted(found, key=lambda answers: [rank.index(one) for rank, one in zip(ranks, answers, strict=True)])
    return {answers: _orders(found[answers]) for answers in order}
