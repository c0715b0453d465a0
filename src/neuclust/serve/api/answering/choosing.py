"""From requests to decisions: which arm serves, the slates, and the events that keep them."""

import hashlib
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from neuclust.core import Slate
from neuclust.errors import DataError
from neuclust.recommender.choices import Choice, Shown
from neuclust.recommender.chooser import Chooser, Chosen, Offer, Place, nothing_chosen, offer
from neuclust.recommender.items.stock import Stock
from neuclust.recommender.learner import Learner
from neuclust.recommender.requests import Request, read_request
from neuclust.recommender.schema import Matrix, Schema
from neuclust.serve.api.bodies import Recommend
from neuclust.serve.events import Asked as Of
from neuclust.serve.events import decision_parts
from neuclust.serve.store.contract import Event

ID_BYTES, IDS = 12, 256
DETAILS = ("user_features", "context", "eligible", "exclude", "required", "at_most", "k")


@dataclass(frozen=True, slots=True)
class Situation:
    """What all requests of a pass share: how the recommender is set, and the state of its model."""

    now: float
    t: int
    lessons: int
    version: int
    policy: str
    slate_size: int
    window: float
    exploration: float | None
    mode: str
    holdout: float  # share of users
    salt: str  # of the hash that assigns users
    baseline: str  # of the holdout: random, popular or caller
    fallback: str  # what serves where the model is too old: last, popular or random
    stale: bool


@dataclass(frozen=True, slots=True)
class Asked:
    """A request that can be answered: who serves it, what is on offer, and its encoded user (d_u,)."""

    id: str
    request: Request
    found: Offer
    user: Matrix | None
    arm: str  # live, shadow, holdout, fallback
    by: str  # policy, random, popular or caller
    own: tuple[str, ...] = ()

    @property
    def draw(self) -> int:
        """The key of its randomness: a hash of the decision's id."""
        return hashed(self.id)


def hashed(text: str) -> int:
    """64 bits of a text."""
    return int.from_bytes(hashlib.blake2b(text.encode(errors="surrogatepass"), digest_size=8).digest(), "little")


class Ids:
    """Random ids of decisions, drawn many at a time: each call of the system gives up the interpreter's lock, which
    other threads then hold for a while. For one thread."""

    def __init__(self) -> None:
        self._left: list[str] = []

    def next(self) -> str:
        """96 bits nobody can guess, as text."""
        if not self._left:
            text = secrets.token_hex(ID_BYTES * IDS)
            self._left = [text[at : at + 2 * ID_BYTES] for at in range(0, len(text), 2 * ID_BYTES)]
        return self._left.pop()


_IDS = Ids()  # of the desk's thread


def read_ask(body: Recommend, stock: Stock, schema: Schema | None, situation: Situation) -> Asked:
    """A request, refused where it does not fit the catalogue or the columns."""
    details: dict[str, Any] = {name: getattr(body, name) for name in DETAILS}
    request = read_request(body.user, details, situation.slate_size)
    found = offer(request, stock.catalogue)
    user = None
    if schema is not None:
        row = {**((None if request.user is None else stock.users.raw(request.user)) or {}), **request.row}
        user = schema.user.encode_row(row)[0]
    id = _IDS.next()
    arm, by = _served_by(body, id, situation)
    own = _own_slate(body, stock, situation) if by == "caller" else ()
    return Asked(id, request, found, user, arm, by, own)


def _served_by(body: Recommend, id: str, situation: Situation) -> tuple[str, str]:
    """The arm of a request, and who chooses its slate."""
    if situation.mode == "shadow":
        return "shadow", "caller"
    if situation.mode == "holdout" and _held_out(body.user, id, situation):
        return "holdout", situation.baseline
    if body.slate is not None:
        wanted = "no slate of your own unless the mode is shadow or the holdout's baseline is caller"
        raise DataError(f"slate: expected {wanted}, got one; leave it out")
    if situation.stale and situation.fallback != "last":
        return "fallback", situation.fallback
    return "live", "policy"


def _held_out(user: str | None, id: str, situation: Situation) -> bool:
    """Whether a user keeps the baseline: always the same for one user; requests without a user by their own id."""
    return hashed(f"{situation.salt} {id if user is None else user}") < situation.holdout * 2.0**64


def _own_slate(body: Recommend, stock: Stock, situation: Situation) -> tuple[str, ...]:
    """The caller's slate, refused where it could not be learned from."""
    if body.slate is None:
        why = "shadow" if situation.mode == "shadow" else "held out"
        raise DataError(f"slate: expected the slate you show, since this request is {why}, got none; send its item ids")
    if not 1 <= len(body.slate) <= situation.slate_size or len(set(body.slate)) < len(body.slate):
        wanted = f"1 to {situation.slate_size} items, every one once"
        raise DataError(f"slate: expected {wanted}, got {len(body.slate)}; send what is shown")
    _, unknown = stock.catalogue.codes_of(body.slate)
    if unknown:
        raise DataError(f"slate: expected items that are there, got {unknown[0]!r:.100}; put the item first")
    return tuple(body.slate)


# --- slates ---------------------------------------------------------------------------------------------------


def choose(
    asked: Sequence[Asked], schema: Schema | None, stock: Stock, learners: Mapping[str, Learner], situation: Situation
) -> list[tuple[Choice, list[str] | None]]:
    """A choice for each request, and what the policy suggested where the caller's slate is shown."""
    if schema is None:
        return [(_chosen(nothing_chosen(each.found), each, situation, "none"), None) for each in asked]
    made: dict[int, Chosen] = {}
    for by in dict.fromkeys(_asker(each) for each in asked):
        places = [at for at, each in enumerate(asked) if _asker(each) == by]
        chooser = Chooser(schema, stock.catalogue, stock.users, learners[by], stock.settings.feedback.span)
        group = [asked[at] for at in places]
        chosen = chooser.choose(
            [each.request for each in group], [each.found for each in group], _users(group),
            [Place(situation.t, each.draw) for each in group],
        )  # fmt: skip
        made.update(zip(places, chosen, strict=True))
    return [_answer(made[at], each, schema, stock, situation) for at, each in enumerate(asked)]


def _asker(asked: Asked) -> str:
    return "policy" if asked.by == "caller" else asked.by


def _users(group: Sequence[Asked]) -> list[Matrix]:
    return [each.user for each in group if each.user is not None]


def _answer(
    chosen: Chosen, asked: Asked, schema: Schema, stock: Stock, situation: Situation
) -> tuple[Choice, list[str] | None]:
    if asked.by != "caller":
        name = situation.policy if asked.by == "policy" else asked.by
        return _chosen(chosen, asked, situation, name), None
    codes, _ = stock.catalogue.codes_of(asked.own)
    none = torch.zeros(len(codes), dtype=torch.float64)
    slate = Slate(torch.arange(len(codes)), none, none)
    user = chosen.shown.user
    shown = Shown(codes, stock.catalogue.profiles(codes), user, slate, situation.t, asked.draw, schema.version)
    zeros = none.tolist()
    own = Choice(
        asked.id, list(asked.own), None, zeros, zeros, user=asked.request.user, time=situation.now, policy="caller",
        version=schema.version, model=situation.lessons, explored=[False] * len(codes), shown=shown,
        request=asked.request,
    )  # fmt: skip
    return own, [str(item) for item in chosen.ids]


def _chosen(chosen: Chosen, asked: Asked, situation: Situation, policy: str) -> Choice:
    made = chosen.choice(asked.id, asked.request, situation.now, policy, situation.lessons)
    shown = made.shown if made.items else None
    return replace(made, request=asked.request, shown=shown)


def logged(
    asked: Asked, choice: Choice, suggested: list[str] | None, body: Recommend, digest: bytes, situation: Situation
) -> tuple[Event, dict[str, Any]]:
    """What the log keeps of a decision, and the same as JSON values."""
    return decision_parts(
        choice, Of(body.request_id, digest), arm=asked.arm, own=asked.by == "caller", version=situation.version,
        expires_at=situation.now + situation.window, exploration=situation.exploration, stale=situation.stale,
        suggested=suggested,
    )  # fmt: skip
