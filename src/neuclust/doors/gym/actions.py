"""Slates as actions: k positions in [0, n), where an action may name a position twice or a row without an arm."""

from collections.abc import Sequence
from typing import Literal, get_args

from neuclust.errors import ConfigError, DataError, one_of

Repeats = Literal["repair", "refuse"]


def check_repeats(repeats: str) -> None:
    """Refuse another word than the two."""
    if repeats not in get_args(Repeats):
        raise ConfigError(one_of(repeats, get_args(Repeats)), field="repeats")


def slate_of(action: Sequence[int], offered: int, repeats: Repeats) -> tuple[list[int], int]:
    """The positions an action plays, every one once, and how many slots were repaired.

    Slot by slot, an entry that is taken, or that is no arm (`offered` or more), becomes the next position that is free,
    counted upwards and from 0 after the last arm; `refuse` raises instead.
    """
    chosen: list[int] = []
    repaired = 0
    for slot, wanted in enumerate(action, 1):
        position = wanted
        if wanted < 0:
            raise DataError(f"action, slot {slot}: expected a position of at least 0, got {wanted}")
        while position >= offered or position in chosen:
            position = position + 1 if position + 1 < offered else 0
        if position != wanted and repeats == "refuse":
            said = f"expected {len(action)} distinct positions below {offered}, got {list(action)}"
            raise DataError(f"action: {said}; mask them, or make the environment with repeats='repair'")
        repaired += position != wanted
        chosen.append(position)
    return chosen, repaired
