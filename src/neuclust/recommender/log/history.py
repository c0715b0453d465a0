"""A log read back: the decisions that were learned, with the values of items and users as they were at the time."""

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from neuclust.core import Slate
from neuclust.errors import DataError, NeuclustError, StateError
from neuclust.recommender.choices import numbers
from neuclust.recommender.feedback.messages import FeedbackConfig
from neuclust.recommender.feedback.rewards import SlateValue, Values
from neuclust.recommender.log.events import FORMAT
from neuclust.recommender.tables.ids import find
from neuclust.recommender.tables.values import Id, Value, plain_id, value_from_json

Row = Mapping[str, Value]  # what is missing is left out


@dataclass(frozen=True, slots=True)
class Beliefs:
    """What the policy believed of each slot; 0 where it is not known. Tensors are made when they are needed."""

    means: Sequence[float]
    bonuses: Sequence[float]
    propensities: Sequence[float] | None
    explored: Sequence[bool] | None

    @classmethod
    def of(cls, event: Mapping[str, Any], k: int) -> "Beliefs":
        """Those of a logged decision, checked."""
        known = [event.get(name) or [None] * k for name in ("means", "bonuses")]
        means, bonuses = ([float(belief or 0.0) for belief in beliefs] for beliefs in known)
        chances, flags = event.get("propensities"), event.get("explored")
        propensities = None if chances is None else [float(chance) for chance in chances]
        explored = [bool(flag) for flag in flags] if flags and any(flags) else None
        if any(part is not None and len(part) != k for part in (means, bonuses, propensities, explored)):
            raise ValueError(f"beliefs of other than {k} items")
        return cls(means, bonuses, propensities, explored)

    def slate(self) -> Slate:
        """As a policy learns it."""
        chances = None if self.propensities is None else numbers(self.propensities)
        explored = None if self.explored is None else torch.tensor(self.explored)
        positions = torch.arange(len(self.means))
        return Slate(positions, numbers(self.means), numbers(self.bonuses), chances, None, explored)


class Heard(NamedTuple):
    """A message that came back: values by slot and the slate's (NaN: none said) in the user's units, slots shown."""

    values: dict[int, float]
    slate: float
    shown: frozenset[int] | None  # None: nothing was said of it
    late: bool  # the decision was closed before


@dataclass(slots=True)
class Past:
    """A decision of the log: its slate, the raw values it was made from, and what was last learned of it."""

    id: str
    time: float
    t: int
    draw: int
    items: tuple[Id, ...]
    rows: tuple[Row, ...]  # of the items, shared between decisions
    who: Id | None
    user: Row  # of the table, shared
    asked: Row  # user features and context of the request
    beliefs: "Beliefs"
    rewards: Values | None = None  # (k,) in [0, 1]; None: nothing was learned
    slate_reward: float = math.nan
    heard: list[Heard] = field(default_factory=list)  # no message twice

    @property
    def row(self) -> Row:
        """What was known of the user, by column; the request's own first in rank."""
        return {**self.user, **self.asked}

    def lesson(self, config: FeedbackConfig, reward: SlateValue) -> tuple[Values, float]:
        """Rewards (k,) and the slate's: what was last learned, and values that came after the decision was closed."""
        if self.rewards is None:
            raise StateError(f"log: expected a lesson of decision {self.id!r:.100}, got none")
        late = [each for each in self.heard if each.late]
        if not late:
            return self.rewards, self.slate_reward
        span = config.high - config.low
        return joined((config.low + span * self.rewards).tolist(), late, config, reward)


def joined(
    values: list[float], messages: Iterable[Heard], config: FeedbackConfig, reward: SlateValue
) -> tuple[Values, float]:
    """Values by slot (NaN: none) with messages that came after them: rewards (k,) and the slate's, both scaled."""
    stated = math.nan
    for said in messages:
        for slot, value in said.values.items():
            values[slot] = min(max(config.combined(values[slot], value), config.low), config.high)
        stated = stated if math.isnan(said.slate) else said.slate
    found = np.array(values, dtype=np.float64)
    if not math.isnan(stated):
        return config.scaled(found), reward.normalised(stated, len(values), config.low, config.high)
    try:
        return config.scaled(found), reward.value(found, config.low, config.high)
    except DataError:  # a function of the user's that failed: the slate's reward is unknown, as it is live
        return config.scaled(found), math.nan


@dataclass
class History:
    """The decisions of a log in the order in which they were first learned, and by id all of them."""

    learned: list[Past] = field(default_factory=list)
    decisions: dict[str, Past] = field(default_factory=dict)


def read_events(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """The events of a log with the numbers of their lines, from 1; a last line that is not finished is passed over."""
    for at, line in event_lines(path):
        if line.endswith(b"\n"):
            yield at, event_of(line, path, at)


def event_lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """The lines of a log with their numbers, from 1; the last one may have no end."""
    try:
        with open(path, "rb") as file:
            yield from enumerate(file, start=1)
    except OSError as error:
        raise StateError(f"log {path}: expected a file that can be read ({error.strerror or error})") from None


def event_of(line: bytes, path: Path, at: int) -> dict[str, Any]:
    """The event of a line."""
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict) or not isinstance(found.get("event"), str):
        raise StateError(f"log {path}, line {at}: expected an event, got {line[:100]!r}; mend or drop the line")
    return found


def read_history(path: Path) -> History:
    """All decisions of a log and what was learned of them; several runs in one file follow each other."""
    reading = HistoryReading()
    for at, event in read_events(path):
        with naming_line(path, at, event["event"]):
            reading.take(event)
    return reading.history


@contextmanager
def naming_line(path: Path, at: int, kind: str, raised: type[NeuclustError] = StateError) -> Iterator[None]:
    """Whatever a damaged event makes the code inside raise, as one error that names file and line."""
    try:
        yield
    except (KeyError, TypeError, ValueError, IndexError, OverflowError, AttributeError, NeuclustError) as error:
        said = str(error) if isinstance(error, NeuclustError) else f"{type(error).__name__} {error!s:.200}"
        got = f"got {said:.300}; mend or drop the line"
        raise raised(f"log {path}, line {at}: expected what a {kind:.50} holds, {got}") from None


class HistoryReading:
    """Items and users as they are at a line of the log, and the history so far."""

    def __init__(self) -> None:
        self.history = History()
        self.tables: dict[str, dict[Id, Row]] = {"items": {}, "users": {}}
        self.removed: dict[Id, Row] = {}  # a reader may have shown an item that was taken out since
        self._handlers: dict[str, Callable[[dict[str, Any]], None]] = {
            "start": self.start, "items": self.stock, "users": self.stock, "removed": self.remove,
            "users-removed": self.remove_users, "decision": self.decide, "feedback": self.hear, "learned": self.learn,
        }  # fmt: skip

    def take(self, event: dict[str, Any]) -> None:
        """The next event; later versions may have more kinds."""
        handler = self._handlers.get(event["event"])
        if handler is not None:
            handler(event)

    def start(self, event: dict[str, Any]) -> None:
        """A new run: its items and users follow."""
        if event["format"] > FORMAT:
            raise ValueError(f"format {event['format']!r:.20}, which a later version writes")
        self.removed |= self.tables["items"]
        self.tables = {"items": {}, "users": {}}

    def stock(self, event: dict[str, Any]) -> None:
        self.tables[event["event"]][plain_id(event["id"], "id")] = _row(event["values"])

    def remove(self, event: dict[str, Any]) -> None:
        for id in event["ids"]:
            self.removed[id] = self.tables["items"].pop(id)

    def remove_users(self, event: dict[str, Any]) -> None:
        for id in event["ids"]:
            del self.tables["users"][id]

    def decide(self, event: dict[str, Any]) -> None:
        items, user, known = tuple(event["items"]), event["user"], self.tables["items"]
        past = Past(
            id=str(event["id"]), time=float(event["time"]), t=int(event["t"]), draw=int(event["draw"]), items=items,
            rows=tuple(known[item] if item in known else self.removed[item] for item in items),
            who=user, user=_NOTHING if user is None else self.tables["users"].get(user, _NOTHING),
            asked=_row({**event.get("user_features", {}), **event["context"]}), beliefs=Beliefs.of(event, len(items)),
        )  # fmt: skip
        self.history.decisions[past.id] = past

    def hear(self, event: dict[str, Any]) -> None:
        past = self.history.decisions.get(event["decision"])
        if event["status"] != "duplicate" and past is not None:
            past.heard.append(_heard(event, {item: slot for slot, item in enumerate(past.items)}))

    def learn(self, event: dict[str, Any]) -> None:
        past = self.history.decisions.get(event["decision"])
        if past is None:  # made before the log began
            return
        rewards, slate = _floats(event["rewards"]), event["slate"]
        if len(rewards) != len(past.items):
            raise ValueError(f"{len(rewards)} rewards for {len(past.items)} items")
        if past.rewards is None:
            self.history.learned.append(past)
        past.rewards, past.slate_reward = rewards, math.nan if slate is None else float(slate)


def _heard(event: Mapping[str, Any], places: Mapping[Id, int]) -> Heard:
    slate, shown = event.get("slate"), event.get("shown")
    slots = range(shown) if isinstance(shown, int) else [_place(item, places) for item in shown or ()]
    return Heard(
        values={_place(item, places): float(value) for item, value in event["items"]},
        slate=math.nan if slate is None else float(slate),
        shown=None if shown is None else frozenset(slots),
        late=event["status"] == "late",
    )


def _place(item: Id, places: Mapping[Id, int]) -> int:
    """The slot of an item that a message named."""
    slot = find(places, item)
    if slot is None:
        raise KeyError(item)
    return slot


_NOTHING: Row = {}


def _row(saved: Mapping[str, Any]) -> Row:
    return {name: value_from_json(value) for name, value in saved.items() if value is not None}


def _floats(values: Sequence[float | None]) -> Values:
    return np.array([math.nan if value is None else float(value) for value in values], dtype=np.float64)
