"""What is remembered of closed decisions: rings of arrays allocated once, so that memory and saves do not grow.

Ids and messages are known by 128-bit hashes (BLAKE2b), as two int64; the oldest entry makes place for the next.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from neuclust.errors import StateError, brief
from neuclust.recommender.feedback.rewards import Values

Key = tuple[int, int]
Id = str | int
Arrays = dict[str, npt.NDArray[Any]]
Ints = npt.NDArray[np.int64]

NOT_SHOWN, SHOWN, NO_SLOT = 0, 1, -1


def key_of(text: str) -> Key:
    """128 bits of a text."""
    digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
    return int.from_bytes(digest[:8], "little", signed=True), int.from_bytes(digest[8:], "little", signed=True)


def id_text(value: Id) -> str:
    """A text that differs for the word "1" and the number 1."""
    return f"s{value}" if isinstance(value, str) else f"i{int(value):x}"


def item_hash(item: Id) -> int:
    """64 bits of an item's id: it is compared with the few items of one slate."""
    return key_of(id_text(item))[0]


def values_hash(values: Values) -> int:
    """64 bits of values (k,)."""
    return int.from_bytes(hashlib.blake2b(values.tobytes(), digest_size=8).digest(), "little", signed=True)


class KeyRing:
    """The last `capacity` keys and their places, 0 to capacity − 1; chains of a hash table in arrays of fixed size."""

    def __init__(self, capacity: int) -> None:
        self.capacity, self.added = capacity, 0
        self._keys: Ints = np.full((capacity, 2), 0, dtype=np.int64)  # written, so that its memory is taken now
        buckets = 1 << max(capacity - 1, 1).bit_length()
        self._mask = buckets - 1
        self._heads: Ints = np.full(buckets, -1, dtype=np.int64)
        self._next: Ints = np.full(capacity, -1, dtype=np.int64)

    def __len__(self) -> int:
        return min(self.added, self.capacity)

    def find(self, key: Key) -> int:
        """The place of a key; −1 where it is unknown."""
        place = self._heads.item(key[0] & self._mask)
        while place >= 0 and (self._keys.item(place, 0), self._keys.item(place, 1)) != key:
            place = self._next.item(place)
        return place

    def add(self, key: Key) -> int:
        """The place of a new key, taken from the oldest one where the ring is full."""
        place = self.added % self.capacity
        if self.added >= self.capacity:
            self._unlink(place)
        bucket = key[0] & self._mask
        self._keys[place] = key
        self._next[place] = self._heads[bucket]
        self._heads[bucket] = place
        self.added += 1
        return place

    def _unlink(self, place: int) -> None:
        bucket, after = self._keys.item(place, 0) & self._mask, self._next.item(place)
        at = self._heads.item(bucket)
        if at == place:
            self._heads[bucket] = after
            return
        while (following := self._next.item(at)) != place:
            at = following
        self._next[at] = after

    def to_state(self) -> tuple[int, Ints]:
        return self.added, self._keys.copy()

    @classmethod
    def from_state(cls, added: object, keys: npt.NDArray[Any], capacity: int, name: str) -> Self:
        ring = cls(capacity)
        ring.added = whole_of(added, f"{name}: keys ever added")
        ring._keys = array_of(keys, f"{name} keys", (capacity, 2), np.int64)
        ring._link()
        return ring

    def _link(self) -> None:
        """Chain all keys anew: within a bucket each place is followed by the one before it."""
        buckets = self._keys[: len(self), 0] & self._mask
        order = np.argsort(buckets, kind="stable")
        ordered = buckets[order]
        same = np.flatnonzero(ordered[1:] == ordered[:-1])
        self._next[order[same + 1]] = order[same]
        self._heads[ordered] = order  # the last place of a bucket stays


@dataclass(frozen=True, slots=True)
class Closed:
    """One closed decision: values (k,) in the user's units (NaN: unseen), and who closed it."""

    items: tuple[int, ...]  # hashes, in slot order
    values: Values
    shown: tuple[bool, ...]
    slate: float  # as stated, NaN: not stated
    by_message: bool
    own: int  # hash of what the closing message alone said

    @property
    def size(self) -> int:
        return len(self.values)


class Closings:
    """The last `capacity` closed decisions, by the key of their id."""

    def __init__(self, capacity: int, slate_size: int) -> None:
        self.keys = KeyRing(capacity)
        self._values: Values = np.full((capacity, slate_size), np.nan)
        self._items: Ints = np.full((capacity, slate_size), 0, dtype=np.int64)
        self._shown: npt.NDArray[np.int8] = np.full((capacity, slate_size), NO_SLOT, dtype=np.int8)
        self._slate: Values = np.full(capacity, np.nan)
        self._by_message: npt.NDArray[np.int8] = np.full(capacity, 0, dtype=np.int8)
        self._own: Ints = np.full(capacity, 0, dtype=np.int64)

    def add(self, key: Key, closed: Closed) -> None:
        place, size = self.keys.add(key), closed.size
        self._values[place, :size], self._values[place, size:] = closed.values, np.nan
        self._items[place, :size] = closed.items
        self._shown[place, :size], self._shown[place, size:] = closed.shown, NO_SLOT
        self._slate[place], self._by_message[place], self._own[place] = closed.slate, closed.by_message, closed.own

    def find(self, key: Key) -> Closed | None:
        place = self.keys.find(key)
        if place < 0:
            return None
        shown = self._shown[place]
        size = int((shown != NO_SLOT).sum())
        return Closed(
            items=tuple(self._items[place, :size].tolist()),
            values=self._values[place, :size].copy(),
            shown=tuple((shown[:size] == SHOWN).tolist()),
            slate=self._slate.item(place),
            by_message=bool(self._by_message[place]),
            own=self._own.item(place),
        )

    def to_state(self) -> tuple[int, Arrays]:
        """How many were ever closed, and all arrays at their full size."""
        added, keys = self.keys.to_state()
        arrays: Arrays = {"values": self._values, "items": self._items, "shown": self._shown, "slate": self._slate}
        arrays |= {"by_message": self._by_message, "own": self._own}
        return added, {"keys": keys, **{name: array.copy() for name, array in arrays.items()}}

    @classmethod
    def from_state(cls, added: object, arrays: Mapping[str, npt.NDArray[Any]], capacity: int, slate_size: int) -> Self:
        ring, matrix = cls(capacity, slate_size), (capacity, slate_size)
        names = ("keys", "values", "items", "shown", "slate", "by_message", "own")
        found = {name: present(arrays, name, "closed decisions") for name in names}
        ring.keys = KeyRing.from_state(added, found["keys"], capacity, "closed decisions")
        ring._values = array_of(found["values"], "closed values", matrix, np.float64)
        ring._items = array_of(found["items"], "closed items", matrix, np.int64)
        ring._shown = array_of(found["shown"], "closed shown", matrix, np.int8)
        ring._slate = array_of(found["slate"], "closed slates", (capacity,), np.float64)
        ring._by_message = array_of(found["by_message"], "closed by message", (capacity,), np.int8)
        ring._own = array_of(found["own"], "closing values", (capacity,), np.int64)
        used = ring._shown != NO_SLOT
        infinite = np.isinf(ring._values).any() or np.isinf(ring._slate).any()
        if infinite or np.isin(ring._shown, (NOT_SHOWN, SHOWN, NO_SLOT), invert=True).any():
            raise StateError("closed decisions: expected finite values and marks of slots, got others; is it damaged?")
        if (used[:, 1:] & ~used[:, :-1]).any():
            raise StateError("closed decisions: expected slots from the first on, got gaps; is the save damaged?")
        return ring


class MessageRing:
    """The keys of the last `capacity` feedback ids, each with the key of its message's body."""

    def __init__(self, capacity: int) -> None:
        self.keys = KeyRing(capacity)
        self._bodies: Ints = np.full((capacity, 2), 0, dtype=np.int64)

    def add(self, key: Key, body: Key) -> None:
        self._bodies[self.keys.add(key)] = body

    def find(self, key: Key) -> Key | None:
        place = self.keys.find(key)
        return (self._bodies.item(place, 0), self._bodies.item(place, 1)) if place >= 0 else None

    def to_state(self) -> tuple[int, Arrays]:
        added, keys = self.keys.to_state()
        return added, {"keys": keys, "bodies": self._bodies.copy()}

    @classmethod
    def from_state(cls, added: object, arrays: Mapping[str, npt.NDArray[Any]], capacity: int) -> Self:
        ring = cls(capacity)
        ring.keys = KeyRing.from_state(added, present(arrays, "keys", "messages"), capacity, "messages")
        ring._bodies = array_of(present(arrays, "bodies", "messages"), "message bodies", (capacity, 2), np.int64)
        return ring


# --- what a save holds ----------------------------------------------------------------------------------------


def present(arrays: Mapping[str, Any], name: str, owner: str) -> Any:
    """An entry of a save."""
    if name not in arrays:
        raise StateError(f"{owner}: expected an entry {name!r}, got none; is the save damaged?")
    return arrays[name]


def whole_of(value: object, name: str, least: int = 0) -> int:
    """A count of a save."""
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value < 2**63:
        raise StateError(f"{name}: expected a whole number from {least}, got {brief(value)}; is the save damaged?")
    return value


def check_array(value: object, name: str, shape: tuple[int, ...], dtype: Any) -> npt.NDArray[Any]:
    """An array of a save."""
    if not isinstance(value, np.ndarray) or value.shape != shape or value.dtype != np.dtype(dtype):
        got = f"{value.dtype} {value.shape}" if isinstance(value, np.ndarray) else f"a {type(value).__name__}"
        raise StateError(f"{name}: expected {np.dtype(dtype)} {shape}, got {got}; is the save damaged?")
    return value


def array_of(value: object, name: str, shape: tuple[int, ...], dtype: Any) -> npt.NDArray[Any]:
    """A copy of an array of a save."""
    return check_array(value, name, shape, dtype).copy()
