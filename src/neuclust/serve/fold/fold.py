"""The recommender as a fold of its log: the same events give the same bytes, from the start or from any state on."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from neuclust.errors import NeuclustError, StateError
from neuclust.recommender.feedback.changes import next_due
from neuclust.recommender.feedback.decisions import Lesson
from neuclust.recommender.log.events import EventLog, learned_event, warmed_event
from neuclust.recommender.recommender import Recommender
from neuclust.serve.configuration import Configuration
from neuclust.serve.events import decode
from neuclust.serve.fold.blobs import Clock, State, model_bytes, read_state, write_state
from neuclust.serve.fold.handlers import Content, apply_event, new_shop
from neuclust.serve.store.chain import START
from neuclust.serve.store.contract import CONFIG, DECISION, Row

REFUSED, APPLIED = "refused", "applied"

Told = dict[str, Any]  # status, problem?, lessons; of a history `events` as a log has them


class Lessons(EventLog):
    """In the place of a recommender's log: keeps what was learned since it was last asked."""

    def __init__(self) -> None:
        super().__init__()
        self._lessons: list[Lesson] = []
        self._past: list[tuple[Lesson, Mapping[str, Any]]] = []

    def learned(self, lesson: Lesson) -> None:
        self._lessons.append(lesson)

    def warmed(self, past: Iterable[tuple[Lesson, Mapping[str, Any]]]) -> None:
        self._past.extend(past)

    def taken(self) -> tuple[list[Lesson], list[tuple[Lesson, Mapping[str, Any]]]]:
        """Lessons of decisions, and of histories with what is known of their requests."""
        found, self._lessons, self._past = (self._lessons, self._past), [], []
        return found


@dataclass
class Fold:
    """All that follows from the events up to `seq`."""

    _state: State | None = None
    _learned: Lessons = field(default_factory=Lessons)

    @classmethod
    def begin(cls) -> "Fold":
        """Before the first event."""
        return cls()

    @classmethod
    def from_state(cls, blob: bytes) -> "Fold":
        """As it was when `state` gave these bytes."""
        fold = cls(read_state(blob))
        fold.shop.log = fold._learned
        return fold

    # --- what it knows --------------------------------------------------------------------------------------------

    @property
    def at(self) -> State:
        """Everything."""
        if self._state is None:
            raise StateError("fold: expected a first event with the configuration, got none; apply the log")
        return self._state

    @property
    def shop(self) -> Recommender:
        """The recommender itself."""
        return self.at.shop

    @property
    def seq(self) -> int:
        """Of the last event."""
        return 0 if self._state is None else self._state.seq

    @property
    def hash(self) -> bytes:
        """Of the last event."""
        return START if self._state is None else self._state.hash

    @property
    def lessons(self) -> int:
        """How often the policy was given something to learn."""
        return 0 if self._state is None else self.shop.decisions.counts.lessons

    @property
    def due(self) -> float | None:
        """When the next window ends, if nothing comes before."""
        return None if self._state is None else next_due(self.shop.decisions)

    def state(self) -> bytes:
        """To go on from."""
        return write_state(self.at)

    def model(self) -> bytes:
        """What is served (`ServedModel`)."""
        return model_bytes(self.shop, self.seq)

    # --- events ---------------------------------------------------------------------------------------------------

    def apply(self, row: Row) -> Told | None:
        """Follow the next event; what became of it, None where there is nothing to tell.

        What cannot be right is told as refused and changes nothing.
        """
        if row.seq != self.seq + 1:
            raise StateError(f"fold: expected event {self.seq + 1}, got {row.seq}; apply every event once, in order")
        content = decode(row.payload)
        state = self._begun(row, content) if self._state is None else self._state
        state.clock.now = row.time
        status, problem = None, None
        try:
            status = apply_event(state, row, content)
        except StateError:  # not of this event
            raise
        except NeuclustError as error:
            status, problem = REFUSED, str(error)
        told = self._told(state, status, problem)
        state.seq, state.hash = row.seq, row.hash
        if status != REFUSED or row.kind != DECISION:  # a refused decision is none
            state.statistics.apply(row, told, content)
        return told

    def _begun(self, row: Row, content: Content) -> State:
        if row.kind != CONFIG:
            raise StateError(f"fold: expected the configuration as the first event, got {row.kind!r:.50}")
        configuration, clock = Configuration.from_json(content), Clock(row.time)
        self._state = State(configuration, new_shop(configuration, clock), clock)
        self.shop.log = self._learned
        return self._state

    def _told(self, state: State, status: str | None, problem: str | None) -> Told | None:
        lessons, past = self._learned.taken()
        for lesson in (*lessons, *(lesson for lesson, _ in past)):
            state.popularity.learn(lesson)
        for _, said in past:
            state.levels.note(state.shop.schema, said["context"], None if said["user"] is None else str(said["user"]))
        if status is None and not lessons:
            return None
        told: Told = {"status": status or APPLIED, "lessons": [_lesson(each) for each in lessons]}
        if past:
            pairs = ((warmed_event(lesson, said, ""), learned_event(lesson)) for lesson, said in past)
            told["events"] = [event for pair in pairs for event in pair]
        return told if problem is None else {**told, "problem": problem}


def _lesson(lesson: Lesson) -> dict[str, Any]:
    """As a log tells it."""
    told = learned_event(lesson)
    return {name: told[name] for name in ("decision", "rewards", "slate", "revised")}
