"""Decisions of a log of which no reward is known: still open at its end, worth nothing, or for a person to decide."""

import math
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Literal

import numpy as np

from neuclust.errors import DataError
from neuclust.evaluation.scoring import Log
from neuclust.evaluation.survey import Survey
from neuclust.logs.decisions import LoggedDecision
from neuclust.recommender.options import Settings

Unseen = Literal["error", "zero", "drop"]
MANY_OPEN = 0.01  # of the decisions, from which on it matters which ones are open
CHOICES = (
    "zero: they count 0, which is right where only what was rewarded is reported; drop: these decisions are left out, "
    "which is right where answers were lost whatever they were"
)


@dataclass(frozen=True, slots=True)
class Settled:
    """A log without the decisions that were open, `zeros` of the others answered by what their log says."""

    log: Log
    decisions: int  # that are left
    open: int
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Answered:
    """A log whose open decisions are passed over, and whose unanswered ones count what its settings say."""

    log: Log
    open: Collection[int]
    zeros: Collection[int]
    settings: Settings | None = field(repr=False)

    def decisions(self) -> Iterator[LoggedDecision]:
        for at, decision in enumerate(self.log.decisions()):
            if at in self.open:
                continue
            yield decision if self.settings is None or at not in self.zeros else worth_nothing(decision, self.settings)


def settle(log: Log, held: Survey, unseen: Unseen | None, own: bool, settings: Settings | None) -> Settled:
    """The log as it is judged where nothing was asked for (None): open decisions are left out, unanswered ones count
    what the log says, and where it does not say, a person decides. `own`: the slate's own reward counts."""
    partly = held.slateless if own else held.partly
    if unseen in ("zero", "drop"):
        return Settled(log, held.decisions, 0)
    if unseen == "error":
        _refuse(log, held, sorted((*held.unanswered, *partly)), own)
        return Settled(log, held.decisions, 0)
    open = _still_open(held, settings)
    others = [at for at in held.unanswered if at not in open]
    zeros = frozenset(others if settings is not None and _says_nothing_came(settings, own) else ())
    _refuse(log, held, sorted((*(at for at in others if at not in zeros), *partly)), own)
    left = held.decisions - len(open)
    if left < 2:
        got = f"got {left}: the other {len(open):,} are still open"
        raise DataError(f"log: expected at least 2 answered decisions to judge policies by, {got}; wait for answers")
    answered = _Answered(log, open, zeros, settings) if open or zeros else log
    return Settled(answered, left, len(open), _notes(held, open, zeros, settings))


def _still_open(held: Survey, settings: Settings | None) -> frozenset[int]:
    """Unanswered decisions whose window had not ended when the log did; those after the last answer where no window
    is known."""
    if settings is None:
        return frozenset(at for at in held.unanswered if at > held.last_answered)
    each = zip(held.unanswered, held.unanswered_times, strict=True)
    return frozenset(at for at, time in each if settings.feedback.ends(time) > held.last_time)


def _says_nothing_came(settings: Settings, own: bool) -> bool:
    """Whether the log says what a decision is worth that nobody answered."""
    return settings.feedback.unanswered == "zeros" and not (own and settings.reward.needs_function)


def worth_nothing(decision: LoggedDecision, settings: Settings) -> LoggedDecision:
    """The decision with what its items and its slate are worth where nobody named any."""
    config, worth = settings.feedback, settings.reward
    values = np.full(len(decision.slate), config.nothing)
    slate = math.nan
    if not worth.needs_function:
        scaled = worth.value(values, config.low, config.high)
        slate = worth.restated(scaled, len(values), config.low, config.high)
    return replace(decision, rewards=values, slate_reward=slate)


def _refuse(log: Log, held: Survey, undecided: list[int], own: bool) -> None:
    """Raise where a person has to say what missing rewards mean."""
    if not undecided:
        return
    first = next(islice(log.decisions(), undecided[0], None)).id
    what = "the reward of the slate" if own else "a reward for every slot"
    got = f"got none in {len(undecided):,} of {held.decisions:,} decisions (the first is {first})"
    raise DataError(f"expected {what}, {got}; {CHOICES}", field="unseen")


def _notes(held: Survey, open: Collection[int], zeros: Collection[int], settings: Settings | None) -> tuple[str, ...]:
    notes = []
    if open:
        said = f"{len(open):,} of {held.decisions:,} decisions were still open at the end of the log and are left out"
        if len(open) > MANY_OPEN * held.decisions:
            said += "; where only what was rewarded is answered at once, the others earned more than all will have"
        notes.append(said)
    if zeros and settings is not None:
        said = f"{len(zeros):,} of {held.decisions:,} decisions were never answered; their items count"
        notes.append(f"{said} {settings.feedback.nothing:g}, as the log says (unanswered: zeros)")
    return tuple(notes)
