"""What a store is: events in one order per recommender, versions of models, the learner's progress, keys.

No torch here: a writer of the log starts in milliseconds. Every method is one transaction and safe to call from any
thread; what a call that returned has written is durable. `StoreError` where the database cannot be written or read.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from neuclust.errors import NeuclustError

# kinds of events
CONFIG = "config"  # settings of the recommender: PUT, PATCH
ITEMS, ITEMS_REMOVED = "items", "items-removed"
USERS, USERS_REMOVED = "users", "users-removed"
FREEZE = "freeze"  # the schema is fixed by the tables so far and the columns of a first request
DECISION, FEEDBACK = "decision", "feedback"
EXPIRY = "expiry"  # windows that ended by its time
HISTORY = "history"  # decisions of another system, to learn from
ERASURE = "erasure"  # of what is known of one user
KINDS = (
    CONFIG, ITEMS, ITEMS_REMOVED, USERS, USERS_REMOVED, FREEZE, DECISION, FEEDBACK, EXPIRY, HISTORY, ERASURE,
)  # fmt: skip
TABLE_KINDS = (CONFIG, ITEMS, ITEMS_REMOVED, USERS, USERS_REMOVED, FREEZE, ERASURE)  # what API processes follow


class StoreError(NeuclustError):
    """The database cannot be reached, written or read; nothing was acknowledged."""


class Exists(NeuclustError):
    """A recommender of this name is there already."""


class Fenced(NeuclustError):
    """Another learner holds the lease now; nothing was written."""


class Damaged(NeuclustError):
    """What was read does not have the hash it was written with."""


@dataclass(frozen=True, slots=True)
class Event:
    """What is to be appended.

    `key` is unique among the events of its kind (a decision's id, a feedback id), `request` among all events of the
    recommender (a request id). `digest` tells a repeat from another body under the same key. `user` is whom it tells
    of, `about` the key of the event it tells of (a feedback's decision, which its payload has, too). All but `key` is
    deleted when that user is erased.
    """

    kind: str
    payload: bytes
    key: str | None = None
    request: str | None = None
    digest: bytes | None = None
    user: str | None = None
    about: str | None = None


@dataclass(frozen=True, slots=True)
class Row:
    """An event of the log. `payload` None: erased. `hash` is the chained SHA-256 (`chain.chained`).

    A store has checked each row it gives: `content` is the payload hash, and `hash` follows from `before`, the hash of
    the row before it. `chain.verify_chain` checks that rows follow each other.
    """

    seq: int
    kind: str
    time: float
    payload: bytes | None
    key: str | None
    request: str | None
    digest: bytes | None
    user: str | None
    hash: bytes
    content: bytes = b""
    before: bytes = b""
    about: str | None = None  # for finding alone: the chain has what the payload says


@dataclass(frozen=True, slots=True)
class Appended:
    """What became of an event: its place in the log, or the row that held its key or request before it."""

    seq: int
    time: float
    earlier: Row | None = None


@dataclass(frozen=True, slots=True)
class Head:
    """A recommender as the store knows it."""

    id: int
    name: str
    seq: int  # of the last event; 1, 2, 3, … without gaps
    time: float  # of the last event: never decreases
    hash: bytes  # of the last event
    tables: int  # seq of the last event of TABLE_KINDS
    frozen: int  # seq of the FREEZE event; 0: none yet
    promoted: int | None  # the version that is pinned; None: the latest
    base: int  # events up to this seq are no longer replayed: a state of it is kept
    base_hash: bytes
    created: float


@dataclass(frozen=True, slots=True)
class Version:
    """A model that was published. `seq`: the last event applied; `state`: whether a state to go on from was kept."""

    version: int  # 1, 2, 3, …
    seq: int
    time: float
    lessons: int
    state: bool
    model: bool  # whether the model is still kept
    environment: Mapping[str, Any] = field(default_factory=dict)  # library versions, threads: who gets the same bytes


@dataclass(frozen=True, slots=True)
class Progress:
    """How far the learner is: applied events, lessons, and when it last said so; `told`: a few numbers for people."""

    seq: int
    lessons: int
    time: float
    told: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Key:
    """An API key; only the SHA-256 of its secret is kept. `recommender` None: all of them."""

    id: str
    digest: bytes
    scopes: tuple[str, ...]
    recommender: str | None
    created: float
    note: str = ""


class Recommenders(Protocol):
    """The recommenders of a store."""

    def create(self, name: str, config: bytes) -> Head:
        """A recommender with its first CONFIG event; `Exists` where the name is taken."""

    def head(self, name: str) -> Head | None: ...

    def heads(self) -> list[Head]: ...

    def delete(self, name: str) -> bool:
        """The recommender with all it has; False where there was none."""

    def promote(self, id: int, version: int | None) -> None:
        """Pin what is served; None: the latest."""


class Log(Protocol):
    """The events of each recommender."""

    def append(self, groups: Mapping[int, Sequence[Event]]) -> dict[int, list[Appended]]:
        """Append events of any recommenders in one transaction, each group in its order; durable when it returns.

        Sequence numbers are given out under a lock on the recommender's row, so that commit order is their order. An
        event whose key or request is taken is not appended, also where an event before it in the same call took it.
        A recommender that was deleted has an empty list.
        """

    def read(
        self, id: int, after: int, most: int, kinds: Sequence[str] | None = None, until: int | None = None
    ) -> list[Row]:
        """Events after a place in the log, in order; each payload is checked against its hash (`Damaged`)."""

    def find(self, id: int, kind: str, keys: Sequence[str]) -> dict[str, Row]:
        """Events of a kind by their keys; those that are not there are left out."""

    def find_request(self, id: int, request: str) -> Row | None: ...

    def find_about(self, id: int, key: str, most: int) -> list[Row]:
        """The first events that tell of another one, in order."""

    def latest(self, id: int, kind: str, most: int, before: int | None = None) -> list[Row]:
        """The last events of a kind, newest first."""


class Learning(Protocol):
    """What the learner writes: one learner at a time, by its lease; nothing is written for a deleted recommender."""

    def lease(self, holder: str, seconds: float) -> int | None:
        """Take or renew the right to learn; the fencing token, larger for every new holder; None: somebody has it."""

    def release(self, token: int) -> None: ...

    def publish(self, id: int, token: int, version: Version, model: bytes, state: bytes | None) -> None:
        """A version with its model, and a state to go on from; `Fenced` where the token is not the newest.

        Blobs are written in parts, so that no other writer waits long; the version is there when all of it is.
        """

    def versions(self, id: int, most: int = 1_000) -> list[Version]:
        """The last ones, newest first."""

    def model(self, id: int, version: int) -> bytes | None:
        """None where it is not kept; `Damaged` where it does not have its hash."""

    def state(self, id: int, version: int) -> bytes | None: ...

    def prune(self, id: int, token: int, models: Sequence[int], states: Sequence[int]) -> None:
        """Drop the models and states of these versions; the versions stay listed."""

    def advance(self, id: int, token: int, progress: Progress, told: Mapping[int, bytes]) -> None:
        """Say how far the learner is, with what it has to tell of events by their seq, in one transaction.

        What was told of an event before stays: the fold is the same every time.
        """

    def progress(self, id: int) -> Progress | None: ...

    def told(self, id: int, after: int, most: int) -> dict[int, bytes]:
        """What the learner told of events after a seq, in their order."""

    def told_at(self, id: int, seqs: Sequence[int]) -> dict[int, bytes]:
        """What the learner told of these events; those of which it told nothing are left out."""

    def erase(self, id: int, token: int, user: str, until: int) -> int:
        """Delete payloads, salts, users, requests and digests of a user's events up to a seq, what the learner told of
        them, and all versions' states and models before the newest state, which must be at `until` or later and becomes
        the base; how many events there were."""

    def retain(self, id: int, token: int, after: int) -> int:
        """Delete the events up to a seq that has a state, which becomes the base, with its hash; how many."""


class Keys(Protocol):
    """The API keys."""

    def add_key(self, key: Key) -> None: ...

    def keys(self) -> list[Key]: ...

    def revoke_key(self, id: str) -> bool: ...


class Store(Recommenders, Log, Learning, Keys, Protocol):
    """One database."""

    @property
    def address(self) -> str:
        """Without a password."""

    @property
    def shared(self) -> bool:
        """Whether several API processes may use it."""

    def close(self) -> None: ...

    def settle(self) -> None:
        """Do the upkeep that would else fall into the time of a commit; called every second or so."""

    def check(self) -> None:
        """A round trip that writes; StoreError where it cannot."""
