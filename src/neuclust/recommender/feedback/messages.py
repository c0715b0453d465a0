"""Messages that come back for a decision: the settings of feedback, and reading what a user gives.

A message is checked completely against the slate it is for before anything is changed by it.
"""

import json
import math
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, Literal, TypedDict, cast

import numpy as np

from neuclust.configuration import NON_NEGATIVE, POSITIVE, checked
from neuclust.core import LARGEST
from neuclust.errors import ConfigError, DataError, brief
from neuclust.recommender.feedback.rewards import ROUNDING, SlateValue, Values, nothing, scaled
from neuclust.recommender.feedback.rings import Id, Key, id_text, key_of

LONGEST_ID = 1_000  # characters of an id
LARGEST_ID = 10**LONGEST_ID
MOST_REMEMBERED = 10_000_000
MOST_NAMED = 5  # items in one sentence

Combine = Literal["max", "last", "sum"]
Unanswered = Literal["zeros", "unseen"]


@dataclass(frozen=True, slots=True)
@checked(
    window=POSITIVE, learn_after=NON_NEGATIVE, remember=(1, MOST_REMEMBERED), low=(-LARGEST, LARGEST),
    high=(-LARGEST, LARGEST),
)  # fmt: skip
class FeedbackConfig:
    """How long feedback is waited for and what it means.

    `window`: seconds after which an open decision closes; `learn_after`: seconds after which it is learned, though it
    is open (None, or more than the window: when it closes). `combine`: several values of one item. `unanswered`: what
    items count that nobody named by then. `remember`: closed decisions that are still known. `low`, `high`: the range
    of values, which becomes [0, 1].
    """

    window: float = 3600.0
    learn_after: float | None = None
    combine: Combine = "max"
    unanswered: Unanswered = "zeros"
    remember: int = 100_000
    low: float = 0.0
    high: float = 1.0

    def __post_init__(self) -> None:
        if not self.low < self.high:
            got = f"got {self.low:g} and {self.high:g}; give the smallest and the largest value there can be"
            raise ConfigError(f"expected a range with low below high, {got}", field="high")

    @property
    def span(self) -> tuple[float, float]:
        """The range of one item's value, in the user's units."""
        return self.low, self.high

    @property
    def nothing(self) -> float:
        """What an item counts that nobody named, in the user's units."""
        return nothing(self.low, self.high)

    def rest(self, unanswered: Unanswered) -> float:
        """What an item counts that nobody named by the end; NaN: unseen."""
        return math.nan if unanswered == "unseen" else self.nothing

    def scaled(self, values: Values) -> Values:
        """(values − low) / (high − low); NaN stays."""
        return scaled(values, self.low, self.high)

    def ends(self, time: float) -> float:
        """When a decision of this time closes."""
        return time + self.window

    def learned_at(self, time: float) -> float:
        """When a decision of this time is learned at the latest."""
        return self.ends(time) if self.learn_after is None else time + min(self.learn_after, self.window)

    def combined(self, earlier: float, value: float) -> float:
        """A value with the one said before it (NaN: none); a sum may leave the range."""
        if math.isnan(earlier) or self.combine == "last":
            return value
        return max(earlier, value) if self.combine == "max" else earlier + value

    def inside(self, value: float) -> float | None:
        """A sum of values, which rounding may have put just outside the range; None: it lies outside."""
        room = ROUNDING * (self.high - self.low)
        return min(max(value, self.low), self.high) if self.low - room <= value <= self.high + room else None


class Details(TypedDict, total=False):
    """The optional parts of a message."""

    slate: float | None  # the slate's value, in the place of the one computed from its items
    shown: int | Collection[Id] | None  # leading slots, or items, that were seen
    feedback_id: Id | None
    partial: bool


@dataclass(frozen=True, slots=True)
class Slots:
    """The slate a message is for: its size, an item's slot (None: not in it) and the items, where they are known."""

    size: int
    find: Callable[[Id], int | None]
    items: tuple[Id, ...] = ()


@dataclass(frozen=True, slots=True)
class Message:
    """A checked message: values by slot in the user's units, and the keys by which a repeat is known."""

    values: dict[int, float]
    shown: frozenset[int] | None
    slate: float | None
    partial: bool
    key: Key  # of the feedback id
    body: Key  # of everything it says, and of which decision
    text: str

    def alone(self, size: int, rest: float) -> Values:
        """The values (k,) this message gives if it is all that was said."""
        found = np.full(size, rest) + 0.0
        for slot, value in self.values.items():
            found[slot] = value
        if self.shown is not None:
            found[[slot for slot in range(size) if slot not in self.shown]] = math.nan
        return found


def read_message(
    decision: str, items: object, details: Details, slots: Slots, config: FeedbackConfig, worth: SlateValue
) -> Message:
    """The message for a decision, refused where any part of it is wrong."""
    values = _values(items, slots, config)
    seen = _shown(details.get("shown"), slots)
    slate = _slate(details.get("slate"), slots.size, config, worth)
    partial = details.get("partial", False)
    if not isinstance(partial, bool | np.bool_):
        raise DataError(f"partial: expected true or false, got {brief(partial)}; give a bool")
    hidden = [] if seen is None else [slot for slot in values if slot not in seen]
    if hidden:
        raise not_shown(brief(slots.items[hidden[0]]) if slots.items else f"in slot {hidden[0] + 1}")
    text = json.dumps([decision, sorted(values.items()), slate, None if seen is None else sorted(seen), bool(partial)])
    given = details.get("feedback_id")
    key = key_of(f"body {text}" if given is None else f"given {id_text(checked_id(given, 'feedback_id'))}")
    described = f"{_described(items, details)} for {brief(decision)}"
    return Message(values, seen, slate, bool(partial), key, key_of(text), described)


def checked_id(value: object, name: str) -> Id:
    """An id as it is compared: a word of 1 to 1,000 characters, or a whole number."""
    if isinstance(value, str) and 0 < len(value) <= LONGEST_ID:
        return str(value)
    if isinstance(value, Integral) and not isinstance(value, bool) and abs(int(value)) < LARGEST_ID:
        return int(value)
    expected = f"expected a word of 1 to {LONGEST_ID:,} characters or a whole number"
    raise DataError(f"{name}: {expected}, got {brief(value)}; give the id as it came")


def number(value: object, low: float, high: float, name: str, advice: str, room: float = 0.0) -> float:
    """A real number or a bool within [low, high]; one that is outside by at most `room` is the end of the range."""
    given: Any = value
    try:
        found = float(given) if isinstance(given, Real | np.bool_) else math.nan
    except Exception:  # whole numbers no float can hold, numbers that are none
        found = math.nan
    if not low - room <= found <= high + room:
        raise DataError(f"{name}: expected a number from {low:g} to {high:g}, got {brief(value)}; {advice}")
    return min(max(found, low), high) + 0.0  # -0.0 is 0.0


def _values(items: object, slots: Slots, config: FeedbackConfig) -> dict[int, float]:
    if not isinstance(items, Mapping):
        got = f"got {brief(items)}; write {{item: 1}}, or {{}} where nothing came back"
        raise DataError(f"feedback: expected a mapping from items to values, {got}")
    found: dict[int, float] = {}
    for item, value in items.items():
        slot = _slot(item, slots)
        if slot in found:  # 17 and "17" are one item
            raise DataError(f"feedback: expected every item once, got {brief(item)} in two forms; keep one of them")
        advice = "leave out items without a value, or declare another range (reward_range)"
        found[slot] = number(value, config.low, config.high, f"feedback for item {brief(item)}", advice)
    return found


def _slot(item: object, slots: Slots) -> int:
    known = isinstance(item, str | Integral) and not isinstance(item, bool)
    slot = slots.find(cast("Id", item)) if known else None
    if slot is None:
        named = ", ".join(brief(each) for each in slots.items[:MOST_NAMED])
        more = len(slots.items) - MOST_NAMED
        listed = f" ({named}{f' and {more} more' if more > 0 else ''})" if named else ""
        raise DataError(
            f"feedback: expected items of this decision's slate of {slots.size}{listed}, got {brief(item)}; "
            "was it shown by another decision?"
        )
    return slot


def _shown(given: object, slots: Slots) -> frozenset[int] | None:
    """The slots that were seen, from a number of leading slots or from items."""
    if given is None:
        return None
    if isinstance(given, Integral) and not isinstance(given, bool) and 0 <= int(given) <= slots.size:
        return frozenset(range(int(given)))
    if isinstance(given, Collection) and not isinstance(given, str | bytes | bytearray | Mapping):
        with suppress(TypeError):  # an array of no dimension
            return frozenset(_slot(item, slots) for item in given)
    expected = f"expected a number of leading slots from 0 to {slots.size}, or a list of items"
    raise DataError(f"shown: {expected}, got {brief(given)}; leave it out where all were seen")


def _slate(given: object, size: int, config: FeedbackConfig, worth: SlateValue) -> float | None:
    if given is None:
        return None
    low, high = worth.bounds(size, config.low, config.high)
    name, advice = f"slate (what it is worth by {worth.name})", "leave it out to have it computed"
    return number(given, low, high, name, advice, room=ROUNDING * (high - low))


def not_shown(item: str) -> DataError:
    """The error for a value of an item that nobody saw."""
    return DataError(f"feedback for item {item}: expected values of items that were shown, it was not; add it to shown")


def _described(items: object, details: Details) -> str:
    said = {name: value for name, value in details.items() if name != "feedback_id" and value is not None}
    return brief(items) + "".join(f", {name}={brief(value)}" for name, value in said.items())
