"""Feedback as it is taken in: checked against the slate it is for, before it is logged."""

import hashlib
import json
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from neuclust.errors import DataError
from neuclust.recommender.feedback.messages import Details, Slots, read_message
from neuclust.recommender.options import Settings
from neuclust.recommender.tables.values import Id
from neuclust.serve.api.bodies import Feedback
from neuclust.serve.api.problems import Refused
from neuclust.serve.events import decode, feedback_event
from neuclust.serve.store.contract import Event, Row

MOST_RECENT = 100_000  # decisions whose slates are known without reading the log


@dataclass(frozen=True, slots=True)
class Facts:
    """What feedback needs of a decision."""

    items: tuple[str, ...]
    user: str | None


class Recent:
    """The slates of the last decisions of this process, by recommender and decision: the last `most`, and up to as many
    before them. Two generations, since to drop them one by one would cost a list of their order."""

    def __init__(self, most: int = MOST_RECENT) -> None:
        self._most, self._lock = most, threading.Lock()
        self._latest: dict[tuple[int, str], Facts] = {}
        self._before: dict[tuple[int, str], Facts] = {}

    def note(self, id: int, decision: str, facts: Facts) -> None:
        with self._lock:
            self._latest[id, decision] = facts
            if len(self._latest) >= self._most:
                self._latest, self._before = {}, self._latest

    def find(self, id: int, decision: str) -> Facts | None:
        with self._lock:
            return self._latest.get((id, decision)) or self._before.get((id, decision))

    def forget(self, id: int, user: str | None = None) -> None:
        """Drop the decisions of a recommender, or of one of its users."""
        with self._lock:
            for known in (self._latest, self._before):
                for key in [k for k, facts in known.items() if k[0] == id and user in (None, facts.user)]:
                    del known[key]


def facts_of(row: Row) -> Facts:
    """The facts of a logged decision; erased ones are gone."""
    if row.payload is None:
        raise Refused(410, "expected a decision that is kept, but its user was erased", field="decision_id")
    choice = decode(row.payload)["choice"]
    return Facts(tuple(choice["items"]), row.user)


def digest(content: Mapping[str, Any]) -> bytes:
    """SHA-256 of a body, whatever the order of its entries."""
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode(errors="surrogatepass")).digest()


def feedback_logged(body: Feedback, facts: Facts, settings: Settings) -> Event:
    """The event of a message, refused where the front door would refuse it."""
    details: Details = {"slate": body.slate, "shown": body.shown, "partial": body.partial}
    places: dict[Id, int] = {item: slot for slot, item in enumerate(facts.items)}
    slots = Slots(len(places), places.get, facts.items)
    if not facts.items and body.items:
        raise DataError("items: expected none, since the slate was empty, got some; leave them out")
    if facts.items:
        read_message(body.decision_id, body.items, details, slots, settings.feedback, settings.reward)
    said = {name: value for name, value in details.items() if value is not None and value is not False}
    marked = digest({"decision": body.decision_id, "items": body.items, **said})
    key = body.feedback_id if body.feedback_id is not None else f"message-{marked.hex()[:32]}"
    return feedback_event(key, body.decision_id, body.items, said, facts.user, marked)
