"""Ids of decisions that are never used twice, and the answers to requests that may come again."""

import hashlib
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from neuclust.errors import DataError, StateError
from neuclust.recommender.choices import Choice
from neuclust.recommender.feedback.rings import id_text
from neuclust.recommender.requests import Request


@dataclass
class DecisionIds:
    """Ids `TOKEN-NUMBER`. Every process that makes or loads a recommender has a token of its own, drawn by the system,
    so that an id is not used again after an older save was restored; numbers go on counting."""

    last: int = 0  # the number of the last decision
    token: str = field(default_factory=lambda: secrets.token_hex(8))

    def next(self, request: Request) -> tuple[str, int, int]:
        """The id of the next decision, its number, and the key of its randomness."""
        self.last += 1
        return f"{self.token}-{self.last}", self.last, draw_of(request, self.last)


def draw_of(request: Request, number: int) -> int:
    """The key of a request's randomness: its id, hashed to 64 bits, or the decision's number."""
    if request.request_id is None:
        return number
    text = id_text(request.request_id).encode(errors="surrogatepass")
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "little")


class Answers:
    """The last answers to requests that carry an id: the same request gets the same answer."""

    def __init__(self, most: int) -> None:
        self.most = most
        self._known: dict[str, tuple[str, Choice]] = {}  # fingerprint and answer by the text of the id, oldest first

    def find(self, request: Request) -> Choice | None:
        """The answer a request had before; refused where the same id came with another request."""
        if request.request_id is None:
            return None
        found = self._known.get(id_text(request.request_id))
        if found is None:
            return None
        if found[0] != request.fingerprint():
            got = f"got another one under {request.request_id!r:.100}; give a new request a new id"
            raise DataError(
                f"request_id: expected the same request as before, answered by {found[1].items!r:.200}, {got}"
            )
        return found[1]

    def unknown(self, request: Request) -> bool:
        """Whether nothing was answered under the request's id."""
        return request.request_id is not None and id_text(request.request_id) not in self._known

    def note(self, request: Request, choice: Choice) -> None:
        """Remember an answer, without what learning and the log need."""
        if request.request_id is None:
            return
        kept = replace(choice, design=None, shown=None, request=None)
        self._known[id_text(request.request_id)] = request.fingerprint(), kept
        if len(self._known) > self.most:
            del self._known[next(iter(self._known))]

    def copy(self) -> "Answers":
        """An independent copy; the answers themselves do not change."""
        new = type(self)(self.most)
        new._known = dict(self._known)
        return new

    def to_json(self) -> list[Any]:
        return [[key, fingerprint, choice.to_json()] for key, (fingerprint, choice) in self._known.items()]

    @classmethod
    def from_json(cls, saved: Any, most: int) -> "Answers":
        answers = cls(most)
        try:
            for key, fingerprint, choice in saved:
                answers._known[str(key)] = str(fingerprint), Choice.from_json(_mapping(choice))
        except (TypeError, ValueError, DataError) as error:
            raise StateError(
                f"answers: expected ids and choices, got others ({error!s:.100}); is it damaged?"
            ) from None
        return answers


def _mapping(saved: Any) -> Mapping[str, Any]:
    if not isinstance(saved, Mapping):
        raise ValueError("no choice")
    return saved
