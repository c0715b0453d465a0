"""Whether a log could have held what a target plays: without that, no weights make up for it."""

from neuclust.core import Round
from neuclust.errors import DataError
from neuclust.evaluation.designs import Drawn, Mixture, check_design, slot_chances, slot_marginals
from neuclust.logs.decisions import Design
from neuclust.slates.rules import Filling

ADVICE = "log with some exploration, or evaluate a target that plays what was logged"


def check_support(logging: Drawn, target: Drawn, round: Round) -> None:
    """Refuse a target that can draw a slate the logging design cannot: π(S) > 0 and μ(S) = 0."""
    explores = any(draws_all(design) for design in _designs(logging, round))
    for design in _designs(target, round):
        slate = certain_slate(design, round)
        if slate is not None:
            if not slot_chances(logging, round, slate).all():
                got = f"got the slate of rows {list(slate)!r:.100}, of chance 0"
                raise DataError(
                    f"round {round.t}: missing support: expected slates the log could hold, {got}; {ADVICE}"
                )
        elif not explores and design not in _designs(logging, round):
            raise _missing(round, "slates the log could hold", "a random target and a log without exploration")


def check_slot_support(logging: Drawn, target: Drawn, round: Round) -> None:
    """Refuse a target that can put an arm into a slot where the logging design cannot have it."""
    missing = (slot_marginals(target, round) > 0) & (slot_marginals(logging, round) == 0)
    if missing.any():
        slot, row = (int(axis[0]) for axis in missing.nonzero())
        got = f"got row {row} in slot {slot + 1}, of chance 0"
        raise DataError(
            f"round {round.t}: missing support: expected arms where the log could have them, {got}; {ADVICE}"
        )


def certain_slate(design: Design, round: Round) -> tuple[int, ...] | None:
    """The one slate of a design that leaves nothing to chance; None for others."""
    if design.kind == "deterministic":
        return design.base
    if draws_all(design):
        return None
    filling = Filling.of(round)
    for row in design.base:
        if filling.allows(row):
            filling.take(row)
    return None if filling.left else tuple(filling.taken)


def draws_all(design: Design) -> bool:
    """Whether every slate that the rules allow has a chance."""
    return design.kind == "uniform" or (design.kind in ("sequential", "one-coin") and design.share > 0)


def _designs(drawn: Drawn, round: Round) -> tuple[Design, ...]:
    found = drawn.designs if isinstance(drawn, Mixture) else (drawn,)
    for design in found:
        check_design(design, round)
    return found


def _missing(round: Round, expected: str, got: str) -> DataError:
    return DataError(f"round {round.t}: missing support: expected {expected}, got {got}; {ADVICE}")
