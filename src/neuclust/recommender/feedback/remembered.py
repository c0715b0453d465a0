"""Memory of what was closed and of the messages that came: whether a message says anything new."""

import math
from collections.abc import Mapping
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from neuclust.errors import DataError, brief
from neuclust.recommender.feedback.messages import Message, Slots, not_shown
from neuclust.recommender.feedback.rings import (
    Arrays,
    Closed,
    Closings,
    Id,
    Key,
    MessageRing,
    item_hash,
    key_of,
    present,
    values_hash,
)
from neuclust.recommender.tables.ids import other_form

RECENT = 256  # messages whose text is at hand when another one comes under their id


class Remembered:
    """The last `capacity` closed decisions and the last `capacity` messages."""

    def __init__(self, capacity: int, slate_size: int) -> None:
        self._closed, self._messages = Closings(capacity, slate_size), MessageRing(capacity)
        self._recent: dict[Key, str] = {}  # not saved

    def find(self, id: str) -> Closed | None:
        """A closed decision by its id."""
        return self._closed.find(key_of(id))

    def close(self, id: str, closed: Closed) -> None:
        self._closed.add(key_of(id), closed)

    def is_repeat(self, message: Message, own: Mapping[Key, Key]) -> bool:
        """Whether a message came before under its feedback id; refused where that one said something else.

        `own` are the messages of the decision itself, where it is open: they are known however long ago they came.
        """
        body = own.get(message.key) or self._messages.find(message.key)
        if body is not None and body != message.body:
            earlier = self._recent.get(message.key, "another message, whose text is no longer at hand")
            expected = f"expected the same message under the same id, which was {earlier}"
            raise DataError(f"feedback_id: {expected}, got {message.text}; give a new message a new id")
        return body is not None

    def note(self, message: Message) -> None:
        """Remember a message that was accepted."""
        self._messages.add(message.key, message.body)
        self._recent[message.key] = message.text
        if len(self._recent) > RECENT:
            del self._recent[next(iter(self._recent))]

    def to_state(self) -> tuple[dict[str, int], Arrays]:
        """How many of each were ever entered, and all arrays at their full size."""
        closed, closed_arrays = self._closed.to_state()
        messages, message_arrays = self._messages.to_state()
        arrays = {f"closed.{name}": array for name, array in closed_arrays.items()}
        arrays |= {f"messages.{name}": array for name, array in message_arrays.items()}
        return {"closed": closed, "messages": messages}, arrays

    @classmethod
    def from_state(
        cls, state: Mapping[str, Any], arrays: Mapping[str, npt.NDArray[Any]], capacity: int, slate_size: int
    ) -> Self:
        found = cls(capacity, slate_size)
        closed, messages = (present(state, name, "decisions") for name in ("closed", "messages"))
        found._closed = Closings.from_state(closed, _inside("closed", arrays), capacity, slate_size)
        found._messages = MessageRing.from_state(messages, _inside("messages", arrays), capacity)
        return found


def _inside(group: str, arrays: Mapping[str, npt.NDArray[Any]]) -> dict[str, npt.NDArray[Any]]:
    return {name.removeprefix(f"{group}."): array for name, array in arrays.items() if name.startswith(f"{group}.")}


def closed_slots(closed: Closed) -> Slots:
    """The slate of a closed decision, whose items are known by their hashes."""

    places = {hashed: slot for slot, hashed in enumerate(closed.items)}

    def slot_of(item: Id) -> int | None:
        slot = places.get(item_hash(item))
        other = other_form(item) if slot is None else None
        return slot if other is None else places.get(item_hash(other))

    return Slots(len(closed.values), slot_of)


def says_the_same(id: str, closed: Closed, message: Message, nothing: float) -> bool:
    """Whether a message for a closed decision agrees with what it was closed with.

    It agrees if it alone gives the final values, or those of the message that closed it; a partial one, if each value
    it names is the final one. Other values are refused where a message closed the decision.
    """
    hidden = [slot for slot in message.values if message.shown is None and not closed.shown[slot]]
    if hidden:
        raise not_shown(f"in slot {hidden[0] + 1}")
    same = message.slate is None or message.slate == closed.slate
    if message.partial:
        same = same and all(closed.values[slot] == value for slot, value in message.values.items())
        same = same and not any(math.isnan(closed.values[slot]) for slot in message.shown or ())
    else:
        alone = message.alone(len(closed.values), nothing)
        same = same and (np.array_equal(alone, closed.values, equal_nan=True) or _closed_by(alone, closed))
    if closed.by_message and not same:
        earlier = ", ".join(f"slot {slot + 1}: {value:g}" for slot, value in enumerate(closed.values.tolist()))
        stated = "" if math.isnan(closed.slate) else f"; slate: {closed.slate:g}"
        expected = f"expected no other values, as it was closed with {earlier:.300}{stated}"
        raise DataError(f"decision {brief(id)}: {expected}, got {message.text}; use partial=True until the last word")
    return same


def _closed_by(alone: npt.NDArray[np.float64], closed: Closed) -> bool:
    return closed.by_message and values_hash(alone) == closed.own
