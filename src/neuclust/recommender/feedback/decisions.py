"""The books between `recommend` and learning: which decisions are open, what was said of them, what is to be learned.

Pure data: no policy, no tables, and no clock; every call is given the time. A call that raises has changed nothing
but the count of refusals.
"""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, Literal, Self, Unpack, get_args

import numpy as np
import numpy.typing as npt

from neuclust.configuration import from_mapping
from neuclust.errors import ConfigError, DataError, StateError, brief, one_of
from neuclust.recommender.feedback.lessons import Lesson, lesson_of
from neuclust.recommender.feedback.messages import Details, FeedbackConfig, Message, Unanswered, number, read_message
from neuclust.recommender.feedback.open_decision import (
    Decision,
    Learned,
    Open,
    OpenDecisions,
    from_json,
    moment,
    opened,
    to_json,
)
from neuclust.recommender.feedback.remembered import Remembered, closed_slots, says_the_same
from neuclust.recommender.feedback.rewards import SlateValue, Values, slate_value
from neuclust.recommender.feedback.rings import Arrays, Id, check_array, present, values_hash, whole_of

__all__ = ["Answer", "Counts", "Decision", "Decisions", "FeedbackConfig", "Lesson"]

MOST_REMEMBERED_VALUES = 100_000_000  # of items of closed decisions: about 1.6 gigabytes

Status = Literal["learned", "open", "duplicate", "late"]


@dataclass(frozen=True, slots=True)
class Answer:
    """What became of a message: `learned` (it closed the decision), `open`, `duplicate` or `late`; and its lessons."""

    status: Status
    lessons: tuple[Lesson, ...] = ()


@dataclass(slots=True)
class Counts:
    """Decisions that are open now, were ever closed, learned and learned again, and messages by what became of them."""

    open: int = 0
    closed: int = 0
    learned: int = 0
    revised: int = 0
    duplicates: int = 0
    late: int = 0
    refused: int = 0

    @property
    def lessons(self) -> int:
        """How often the policy was given something to learn."""
        return self.learned + self.revised


class Decisions:
    """Open decisions, and the last `config.remember` closed ones."""

    def __init__(self, config: FeedbackConfig, slate_size: int, reward: SlateValue) -> None:
        if isinstance(slate_size, bool) or not isinstance(slate_size, int) or slate_size < 1:
            raise ConfigError(f"expected a whole number from 1, got {brief(slate_size)}", field="slate_size")
        if config.remember * slate_size > MOST_REMEMBERED_VALUES:
            wanted = f"expected at most {MOST_REMEMBERED_VALUES // slate_size:,} closed slates of {slate_size}"
            raise ConfigError(f"{wanted}, got {config.remember:,}; their memory is taken at once", field="remember")
        reward.value(np.full(slate_size, config.nothing), config.low, config.high)  # a function that fails, fails now
        self.config, self.slate_size, self.reward = config, slate_size, reward
        self._counts, self._open = Counts(), OpenDecisions()
        self._remembered = Remembered(config.remember, slate_size)

    @property
    def counts(self) -> Counts:
        return replace(self._counts, open=len(self._open))

    def open_decisions(self) -> list[Decision]:
        """Those that are open, in the order in which they were opened."""
        return [record.decision for record in self._open]

    def open(self, decision: Decision) -> None:
        """Enter a decision that was just made."""
        if len(decision.items) > self.slate_size:
            got = f"got {len(decision.items)} in decision {decision.id!r}"
            raise DataError(f"decisions: expected slates of at most {self.slate_size} items, {got}; ask for fewer")
        if is_known(self, decision.id):
            raise DataError(f"decisions: expected an id that was never used, got {decision.id!r} again; give a new one")
        self._open.enter(opened(decision, self.config))

    # --- what comes back --------------------------------------------------------------------------------------

    def feedback(self, id: str, items: Mapping[Id, float], *, now: float, **details: Unpack[Details]) -> Answer:
        """Take a message for a decision; without `partial=True` it closes it, and items not named count 0.

        `shown`: leading slots or items that were seen, other items are unseen. `slate`: the slate's value, in the
        place of the one computed. `feedback_id`: by default a hash of the message. Call `due` before with this time.
        """
        if unknown := set(details) - Details.__optional_keys__:
            raise TypeError(f"feedback: unexpected arguments {', '.join(sorted(unknown))}")
        try:
            return self._answer(id, items, details, moment(now))
        except DataError:
            self._counts.refused += 1
            raise

    def _answer(self, id: str, items: object, details: Details, now: float) -> Answer:
        record = self._open.find(id) if isinstance(id, str) else None
        if record is None:
            return self._answer_closed(id, items, details)
        message = read_message(id, items, details, record.slots, self.config, self.reward)
        if self._remembered.is_repeat(message, record.messages):
            self._counts.duplicates += 1
            return Answer("duplicate")
        if now < self.config.ends(record.decision.time):
            return self._answer_open(record, message, now)
        record.hearing(message, self.config)  # refuses all that the closed decision would
        lessons = self._settle(record, self.config.unanswered, now)  # nobody asked what is due
        return replace(self._answer_closed(id, items, details), lessons=lessons)

    def _answer_open(self, record: Open, message: Message, now: float) -> Answer:
        said = record.hearing(message, self.config)
        values = said.settled(self.config.rest(self.config.unanswered) if message.partial else self.config.nothing)
        learns = not message.partial or self.config.learned_at(record.decision.time) <= now
        lesson = None
        if learns or record.learned is not None:
            lesson = lesson_of(replace(record, said=said), values, self.config, self.reward)
        if lesson is not None and lesson.problem:
            raise DataError(lesson.problem)
        # nothing is refused from here on
        record.said = said
        record.messages[message.key] = message.body
        self._remembered.note(message)
        lessons = _give(record, self._counts, lesson)
        if message.partial:
            return Answer("open", lessons)
        self._close(record, values, message)
        return Answer("learned", lessons)

    def _answer_closed(self, id: str, items: object, details: Details) -> Answer:
        closed = self._remembered.find(id) if isinstance(id, str) else None
        if closed is None:
            expected = f"expected one that is open or among the last {self.config.remember:,} closed ones"
            raise DataError(f"unknown decision {brief(id)}: {expected}; hand back the id that came with the slate")
        message = read_message(id, items, details, closed_slots(closed), self.config, self.reward)
        repeat = self._remembered.is_repeat(message, {})
        same = repeat or says_the_same(id, closed, message, self.config.nothing)
        if not repeat:
            self._remembered.note(message)
        self._counts.duplicates += same
        self._counts.late += not same
        return Answer("duplicate" if same else "late")

    # --- what time brings -------------------------------------------------------------------------------------

    def due(self, now: float) -> list[Lesson]:
        """What is to be learned now: of decisions that reached `learn_after`, and of those whose window ended."""
        now = moment(now)
        lessons: list[Lesson] = []
        while (record := self._open.next_due(now)) is not None:
            lessons += self._settle(record, self.config.unanswered, now)
        return lessons

    def expire(self, older_than: float, now: float, unanswered: Unanswered | None = None) -> list[Lesson]:
        """What is due, then the lessons of decisions at least `older_than` seconds old, which are closed."""
        older_than = number(older_than, 0.0, math.inf, "older_than", "give seconds, such as 3600")
        if unanswered is not None and not (isinstance(unanswered, str) and unanswered in get_args(Unanswered)):
            raise ConfigError(one_of(unanswered, get_args(Unanswered)), field="unanswered")
        lessons = self.due(now)
        if older_than == math.inf:
            return lessons
        old = [each for each in self._open if now - each.decision.time >= older_than]
        for record in sorted(old, key=lambda each: (each.decision.time, each.decision.number)):
            lessons += self._settle(record, unanswered or self.config.unanswered, math.inf)
        return lessons

    def _settle(self, record: Open, unanswered: Unanswered, now: float) -> tuple[Lesson, ...]:
        """Learn what was said, and close the decision where its window has ended."""
        values = record.said.settled(self.config.rest(unanswered))
        lessons = _give(record, self._counts, lesson_of(record, values, self.config, self.reward))
        if now < (end := self.config.ends(record.decision.time)):
            self._open.wait(record, end)
        else:
            self._close(record, values)
        return lessons

    def _close(self, record: Open, values: Values, message: Message | None = None) -> None:
        own = 0 if message is None else values_hash(message.alone(len(values), self.config.nothing))
        self._remembered.close(record.decision.id, record.closed(values, message is not None, own))
        self._open.remove(record)
        self._counts.closed += 1

    # --- saving -----------------------------------------------------------------------------------------------

    def to_state(self) -> tuple[dict[str, Any], Arrays]:
        """All but payloads and the texts of recent messages; the arrays of what is closed have one size for ever."""
        added, arrays = self._remembered.to_state()
        text = json.dumps([to_json(record) for record in self._open], allow_nan=False, separators=(",", ":"))
        settings = {"config": asdict(self.config), "slate_size": self.slate_size, "reward": self.reward.name}
        state = {**settings, "counts": asdict(self.counts), **added}
        return state, {"open": np.frombuffer(text.encode(), dtype=np.uint8), **arrays}

    @classmethod
    def from_state(
        cls, state: Mapping[str, Any], arrays: Mapping[str, npt.NDArray[Any]], payloads: Sequence[object],
        reward: SlateValue | None = None,
    ) -> Self:  # fmt: skip
        """The books as saved; `payloads` in the order of `open_decisions`; `reward`, where it is a function."""
        config, slate_size, worth = _settings(state, reward)
        size = (config.remember, slate_size)  # before memory of this size is taken
        check_array(present(arrays, "closed.values", "decisions"), "closed values", size, np.float64)
        records = _records(present(arrays, "open", "decisions"), payloads, slate_size)
        decisions = cls(config, slate_size, worth)
        decisions._counts = _counts(present(state, "counts", "decisions"))
        decisions._remembered = Remembered.from_state(state, arrays, config.remember, slate_size)
        for record in records:
            if decisions._remembered.find(record.decision.id) is not None:
                raise StateError(f"open decisions: expected open ones, got {record.decision.id!r}, which is closed")
            decisions._open.enter(record)
        return decisions


def is_known(decisions: Decisions, id: str) -> bool:
    """Whether a decision is open or among the last closed ones."""
    return decisions._open.find(id) is not None or decisions._remembered.find(id) is not None


def reencode(decisions: Decisions, payloads: Mapping[str, object], revision: int) -> None:
    """Give every open decision its new payload, by id, under a new revision."""
    for record in decisions._open:
        record.decision = replace(record.decision, payload=payloads[record.decision.id], revision=revision)


def count(decisions: Decisions, *, learned: int = 0, late: int = 0) -> None:
    """Count lessons of decisions that were made elsewhere, and revisions that the policy cannot learn."""
    decisions._counts.learned += learned
    decisions._counts.late += late


def _give(record: Open, counts: Counts, lesson: Lesson | None) -> tuple[Lesson, ...]:
    """A lesson, if there is one, entered as learned."""
    if lesson is None:
        return ()
    counts.learned += lesson.before is None
    counts.revised += lesson.before is not None
    record.learned = Learned(lesson.rewards.copy(), lesson.slate_reward)
    return (lesson,)


def _settings(state: Mapping[str, Any], reward: SlateValue | None) -> tuple[FeedbackConfig, int, SlateValue]:
    """The settings of a save; `reward` must be given where it is a function, and must be the saved one otherwise."""
    name = present(state, "reward", "decisions")
    slate_size = whole_of(present(state, "slate_size", "decisions"), "decisions: slate size", least=1)
    try:
        config = from_mapping(FeedbackConfig, present(state, "config", "decisions"))
        worth = slate_value(name) if reward is None else reward
    except ConfigError as error:
        raise StateError(f"decisions: {error}; is the save damaged?") from None
    if worth.name != name:
        raise StateError(f"reward: expected {name!r:.100}, as it was saved, got {worth.name!r}; give the same one")
    return config, slate_size, worth


def _counts(saved: object) -> Counts:
    if not isinstance(saved, Mapping) or set(saved) != {each.name for each in fields(Counts)}:
        raise StateError(f"decisions: expected counts by name, got {brief(saved)}; is the save damaged?")
    return Counts(**{name: whole_of(value, f"decisions: {name}") for name, value in saved.items()})


def _records(saved: object, payloads: Sequence[object], slate_size: int) -> list[Open]:
    """Open decisions with their payloads."""
    if not isinstance(saved, np.ndarray) or saved.dtype != np.uint8 or saved.ndim != 1:
        raise StateError("open decisions: expected a text in bytes, got something else; is the save damaged?")
    try:
        entries = json.loads(saved.tobytes().decode())
    except (ValueError, RecursionError) as error:
        raise StateError(f"open decisions: expected JSON, got {error!s:.100}; is the save damaged?") from None
    if not isinstance(entries, list) or len(entries) != len(payloads):
        got = len(entries) if isinstance(entries, list) else brief(entries)
        raise StateError(f"open decisions: expected {len(payloads)}, one for each payload, got {got}; is it damaged?")
    records = [from_json(entry, payload, slate_size) for entry, payload in zip(entries, payloads, strict=True)]
    if len({record.decision.id for record in records}) != len(records):
        raise StateError("open decisions: expected every id once, got one twice; is the save damaged?")
    return records
