"""What a log says of policies: estimates with intervals, differences to what ran, and a plain sentence for each."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from neuclust.evaluation.intervals.choice import CANNOT_TELL, LEAST

SCHEMA = 1
MOST_PERCENT = 1000  # above, a number of per cents says nothing: "more than tenfold"
TENFOLD = "more than tenfold"
Ends = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Logged:
    """The log itself: what its policy earned per slate on the rows that candidates are compared on."""

    path: str
    decisions: int
    fitted: int  # decisions that candidates were fitted on
    evaluated: int
    value: float
    interval: Ends
    interval_kind: str
    reward: str
    runs: tuple[str, ...]
    designs: Mapping[str, int]
    learning: bool  # whether the logging policy learned, so that rows are not independent
    held_back: int = 0  # decisions that took no part in the choice
    dropped: int = 0  # rows left out because a reward was not observed, or as bad lines
    open: int = 0  # those of them that were still open at the end of the log
    reward_range: Ends = (0.0, 1.0)  # of a slot; of the slate where its own reward counts
    reward_from: str = "default"  # asked, log or default
    range_from: str = "default"
    value_range: Ends = (-math.inf, math.inf)  # what a slate can be worth


@dataclass(frozen=True, slots=True)
class Judgement:
    """One policy: its value per slate, the difference to what ran on the same rows, and how much data that rests on."""

    policy: str
    estimator: str
    estimate: float
    interval: Ends
    interval_kind: str
    ess: float
    difference: float
    verdict: str
    difference_interval: Ends  # holds for all policies together
    rows: int
    reason: str  # why this estimator and interval
    largest_weights: tuple[float, ...] = ()
    overlap: tuple[float, ...] = ()  # effective rows by slot
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Evaluation:
    """The log, every policy, and the best of them judged again on rows that were held back from the choice."""

    logged: Logged
    policies: tuple[Judgement, ...]
    winner: Judgement | None = None
    level: float = 0.95
    notes: tuple[str, ...] = field(default=())

    def document(self) -> dict[str, Any]:
        """As JSON values; NaN and infinity are null."""
        made = {"schema": SCHEMA, "level": self.level, "logged": asdict(self.logged), "notes": list(self.notes)}
        made["policies"] = [asdict(each) for each in self.policies]
        made["winner"] = None if self.winner is None else asdict(self.winner)
        return {name: _plain(value) for name, value in made.items()}


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _plain(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def stated(difference: Ends, value: float, possible: Ends) -> Ends:
    """The interval of the difference to what ran as it is told to people: no policy earns less or more than slates can
    be worth, so that it lies between `possible[0]` − value and `possible[1]` − value."""
    low, high = difference
    least, most = min(possible[0] - value, 0.0), max(possible[1] - value, 0.0)
    return min(max(low, least), most), max(min(high, most), least)


def verdict(policy: str, ess: float, difference: Ends, value: float, possible: Ends = (-math.inf, math.inf)) -> str:
    """A sentence from the interval of the difference to what ran, in per cent of what it earned if that is above 0."""
    if ess < LEAST:
        return f"{CANNOT_TELL} what {policy} would earn: only {ess:.1f} effective rows support it"
    low, high = stated(difference, value, possible)
    if low == high == 0:
        return f"{policy} is what ran: it shows every slate with the same chance"
    if low > 0:
        return f"{policy} is better than what ran by {_span(low, high, value)}"
    if high < 0:
        return f"{policy} is worse than what ran by {_span(-high, -low, value)}"
    if math.isnan(low) or math.isnan(high):
        return f"{CANNOT_TELL} what {policy} would earn"
    between = f"the difference is between {_signed(low, value)} and {_signed(high, value)}"
    return f"{CANNOT_TELL} {policy} from what ran: {between}"


def _span(low: float, high: float, value: float) -> str:
    if value <= 0:
        return f"{low:.3g} to {high:.3g} per slate"
    if 100 * low > MOST_PERCENT * value:
        return TENFOLD
    if 100 * high > MOST_PERCENT * value:
        return f"{_percent(low / value)} % to {TENFOLD}"
    return f"{_percent(low / value)} to {_percent(high / value)} %"


def _signed(end: float, value: float) -> str:
    if value <= 0:
        return f"{end:+.3g} per slate"
    return TENFOLD if 100 * end > MOST_PERCENT * value else f"{'+' if end >= 0 else '−'}{_percent(abs(end) / value)} %"


def _percent(share: float) -> str:
    """A share as a number of per cents with two digits, whole from 10 on."""
    return f"{100 * share:.0f}" if 100 * share >= 10 else f"{100 * share:.2g}"


def best(judgements: Sequence[Judgement]) -> Judgement:
    """The policy of the largest estimate among those that the log can tell anything about, else of the largest."""
    told = [each for each in judgements if each.ess >= LEAST]
    return max(told or judgements, key=lambda each: each.estimate)
