"""Decisions between `recommend` and their closing: what was said of them so far, and what was learned."""

import heapq
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Real
from typing import Any

import numpy as np

from neuclust.core import LARGEST
from neuclust.errors import DataError, StateError, brief
from neuclust.recommender.feedback.messages import FeedbackConfig, Message, Slots, checked_id, not_shown
from neuclust.recommender.feedback.rewards import Values
from neuclust.recommender.feedback.rings import Closed, Id, Key, item_hash, whole_of
from neuclust.recommender.tables.ids import find

MOST_MESSAGES = 1_000  # for one decision
LONGEST_DECISION_ID = 200  # characters
SPARE = 64  # deadlines of closed decisions that wait for nothing, before they are cleared away


@dataclass(frozen=True, slots=True)
class Decision:
    """A slate that was handed out; `payload` is what learning needs of it and is kept as it is."""

    number: int  # 1, 2, ... per shop
    id: str
    time: float  # seconds
    items: tuple[Id, ...]  # in slot order
    payload: Any = field(default=None, repr=False, compare=False)
    revision: int = 0  # of whatever made it, such as the schema; kept as it is

    def __post_init__(self) -> None:
        if not isinstance(self.id, str) or not 0 < len(self.id) <= LONGEST_DECISION_ID:
            expected = f"expected a word of 1 to {LONGEST_DECISION_ID} characters"
            raise DataError(f"decision id: {expected}, got {brief(self.id)}; give another id")
        if isinstance(self.number, bool) or not isinstance(self.number, int) or self.number < 1:
            raise DataError(f"decision {self.id!r}: expected a number from 1, got {brief(self.number)}; count from 1")
        object.__setattr__(self, "time", moment(self.time))
        object.__setattr__(self, "items", tuple(checked_id(item, f"decision {self.id!r}: item") for item in self.items))
        if len(set(self.items)) != len(self.items):
            raise DataError(f"decision {self.id!r}: expected every item once, got {brief(self.items)}; drop repeats")


def moment(now: object) -> float:
    """A time in seconds: finite."""
    given: Any = now
    if isinstance(now, bool) or not isinstance(now, Real) or not -LARGEST <= given <= LARGEST:
        raise DataError(f"clock: expected seconds as a finite number, got {brief(now)}; use a clock such as time.time")
    return float(given)


@dataclass(frozen=True, slots=True)
class Learned:
    """What a policy was last given of a decision: rewards (k,) in [0, 1] and the slate's; NaN: unseen."""

    rewards: Values
    slate_reward: float

    @property
    def empty(self) -> bool:
        return bool(np.isnan(self.rewards).all()) and math.isnan(self.slate_reward)

    def equals(self, other: "Learned") -> bool:
        slates = self.slate_reward, other.slate_reward
        same = slates[0] == slates[1] or all(map(math.isnan, slates))
        return same and np.array_equal(self.rewards, other.rewards, equal_nan=True)


@dataclass(frozen=True, slots=True)
class Said:
    """All messages together: values by slot in the user's units (NaN: none), what was shown, the slate's value."""

    values: tuple[float, ...]
    shown: frozenset[int] | None = None  # None: nobody said, so all of them
    slate: float = math.nan

    def settled(self, rest: float) -> Values:
        """Values (k,): what was said, `rest` for other items that were shown, NaN for those that were not."""
        said = [rest if math.isnan(value) else value for value in self.values]
        if self.shown is not None:
            said = [value if slot in self.shown else math.nan for slot, value in enumerate(said)]
        return np.array(said, dtype=np.float64)

    @property
    def seen(self) -> tuple[bool, ...]:
        return tuple(self.shown is None or slot in self.shown for slot in range(len(self.values)))


@dataclass(slots=True)
class Open:
    """An open decision; `deadline` is when it is looked at next."""

    decision: Decision
    said: Said
    deadline: float
    learned: Learned | None = None
    messages: dict[Key, Key] = field(default_factory=dict)  # feedback ids and bodies

    @property
    def slots(self) -> Slots:
        places = {item: slot for slot, item in enumerate(self.decision.items)}
        return Slots(len(places), lambda item: find(places, item), self.decision.items)

    def hearing(self, message: Message, config: FeedbackConfig) -> Said:
        """All that is said with this message; refused where it contradicts an earlier one."""
        if len(self.messages) >= MOST_MESSAGES:
            got = f"got one more for {self.decision.id!r}; close it without partial=True"
            raise DataError(f"feedback: expected at most {MOST_MESSAGES:,} messages for one decision, {got}")
        values = list(self.said.values)
        for slot, value in message.values.items():
            values[slot] = self._combined(slot, value, config)
        shown = self.said.shown
        if message.shown is not None:
            shown = message.shown if shown is None else shown | message.shown
        for slot, value in enumerate(values):
            if shown is not None and slot not in shown and not math.isnan(value):
                raise not_shown(brief(self.decision.items[slot]))
        return Said(tuple(values), shown, self.said.slate if message.slate is None else message.slate)

    def _combined(self, slot: int, value: float, config: FeedbackConfig) -> float:
        earlier = self.said.values[slot]
        found = config.inside(config.combined(earlier, value))
        if found is None:
            expected = f"expected values that sum to a number from {config.low:g} to {config.high:g}"
            got = f"got {value:g} after {earlier:g}; declare a wider range (reward_range)"
            raise DataError(f"feedback for item {brief(self.decision.items[slot])}: {expected}, {got}")
        return found

    def closed(self, values: Values, by_message: bool, own: int) -> Closed:
        items = tuple(map(item_hash, self.decision.items))
        return Closed(items, values, self.said.seen, self.said.slate, by_message, own)


def opened(decision: Decision, config: FeedbackConfig) -> Open:
    """A decision of which nothing was said."""
    return Open(decision, Said((math.nan,) * len(decision.items)), config.learned_at(decision.time))


class OpenDecisions:
    """Open decisions by id, in the order in which they were opened, and a heap of their deadlines."""

    def __init__(self) -> None:
        self._records: dict[str, Open] = {}
        self._deadlines: list[tuple[float, int, str]] = []  # those of closed decisions are passed over

    def __len__(self) -> int:
        return len(self._records)

    def __iter__(self) -> Iterator[Open]:
        return iter(self._records.values())

    def find(self, id: str) -> Open | None:
        return self._records.get(id)

    def enter(self, record: Open) -> None:
        self._records[record.decision.id] = record
        self.wait(record, record.deadline)

    def remove(self, record: Open) -> None:
        del self._records[record.decision.id]

    def wait(self, record: Open, deadline: float) -> None:
        """Look at a decision next at this time; the heap holds at most twice as many deadlines as are needed."""
        record.deadline = deadline
        heapq.heappush(self._deadlines, (deadline, record.decision.number, record.decision.id))
        if len(self._deadlines) > 2 * len(self._records) + SPARE:
            self._deadlines = sorted((each.deadline, each.decision.number, each.decision.id) for each in self)

    def next_due(self, now: float) -> Open | None:
        """The decision with the earliest deadline that has passed, which is taken off the heap."""
        while self._deadlines and self._deadlines[0][0] <= now:
            deadline, _, id = heapq.heappop(self._deadlines)
            record = self._records.get(id)
            if record is not None and record.deadline == deadline:
                return record
        return None


# --- saving ---------------------------------------------------------------------------------------------------


def to_json(record: Open) -> dict[str, Any]:
    """Everything but the payload; None stands for NaN."""
    decision, said, learned = record.decision, record.said, record.learned
    return {
        "number": decision.number, "id": decision.id, "time": decision.time, "items": list(decision.items),
        "revision": decision.revision, "deadline": record.deadline, "values": _numbers(said.values),
        "shown": None if said.shown is None else sorted(said.shown), "slate": _numbers([said.slate])[0],
        "messages": [[*key, *body] for key, body in record.messages.items()],
        "learned": None if learned is None else _numbers([*learned.rewards.tolist(), learned.slate_reward]),
    }  # fmt: skip


def from_json(entry: object, payload: object, slate_size: int) -> Open:
    """An open decision as `to_json` wrote it, with its payload."""
    if not isinstance(entry, Mapping):
        raise _damaged("a group of entries", entry)
    try:
        return _read(entry, payload, slate_size)
    except KeyError as error:
        raise _damaged(f"an entry {error}", "none") from None
    except (DataError, TypeError, ValueError, OverflowError) as error:
        raise _damaged("what was saved", f"{error!s:.200}") from None


def _read(entry: Mapping[str, Any], payload: object, slate_size: int) -> Open:
    items, shown, learned = entry["items"], entry["shown"], entry["learned"]
    if not isinstance(items, list):
        raise _damaged("a list of items", brief(items))
    revision = whole_of(entry["revision"], "open decisions: revision")
    decision = Decision(entry["number"], entry["id"], entry["time"], tuple(items), payload, revision)
    values, size = _floats(entry["values"]), len(items)
    if size > slate_size or len(values) != size or (learned is not None and len(learned) != size + 1):
        raise _damaged(f"one value for each of at most {slate_size} items", f"{size} items and {len(values)} values")
    if shown is not None and not set(shown) <= set(range(size)):
        raise _damaged(f"slots below {size}", brief(shown))
    known = None
    if learned is not None:
        *rewards, slate_reward = _floats(learned)
        known = Learned(np.array(rewards, dtype=np.float64), slate_reward)
    said = Said(values, None if shown is None else frozenset(shown), _floats([entry["slate"]])[0])
    messages = {(int(a), int(b)): (int(c), int(d)) for a, b, c, d in entry["messages"]}
    return Open(decision, said, moment(entry["deadline"]), known, messages)


def _damaged(expected: str, got: object) -> StateError:
    return StateError(f"open decisions: expected {expected}, got {got!s:.200}; is the save damaged?")


def _numbers(values: Sequence[float]) -> list[float | None]:
    return [None if math.isnan(value) else value for value in values]


def _floats(values: Sequence[float | None]) -> tuple[float, ...]:
    return tuple(math.nan if value is None else moment(value) for value in values)
