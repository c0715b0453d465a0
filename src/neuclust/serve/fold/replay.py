"""The log folded once more: whether every version that is kept has the bytes that follow from its events."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from neuclust.errors import DataError, NeuclustError, SaveError, StateError, suggestion
from neuclust.serve.events import encode
from neuclust.serve.fold.environment import differing, one_thread
from neuclust.serve.fold.fold import Fold, Told
from neuclust.serve.store.chain import verify_chain
from neuclust.serve.store.contract import Damaged, Head, Row, Store, StoreError, Version

BATCH = 500  # events read at a time
EVERY = 1_000_000_000  # versions
MOST_NAMED = 10  # differences that are told one by one

OnProgress = Callable[[str, int, int], None]  # name, events done, events in all


@dataclass
class ReplayResult:
    """What a replay of one recommender found."""

    name: str
    base: int  # events up to this one are not replayed
    seq: int  # the last event that was
    lessons: int = 0
    compared: int = 0  # models and states
    told: int = 0  # events of which what was told was compared
    differences: list[str] = field(default_factory=list)  # the first few, one sentence each
    different: int = 0
    environment: dict[str, tuple[Any, Any]] = field(default_factory=dict)  # what was, and what is, where it differs
    problem: str | None = None  # why it ended early
    since: str = ""  # why events up to the base are not replayed; empty: all are

    @property
    def same(self) -> bool:
        """Whether everything that is kept follows from the log."""
        return self.problem is None and not self.different

    def differs(self, sentence: str) -> None:
        """Note a difference."""
        self.different += 1
        if len(self.differences) < MOST_NAMED:
            self.differences.append(sentence)

    def to_json(self) -> dict[str, Any]:
        """As JSON values."""
        return {
            "name": self.name, "base": self.base, "events": self.seq - self.base, "seq": self.seq,
            "lessons": self.lessons, "compared": self.compared, "told": self.told, "same": self.same,
            "different": self.different, "differences": self.differences,
            "environment": {name: list(pair) for name, pair in self.environment.items()}, "problem": self.problem,
            "since": self.since,
        }  # fmt: skip


def replay(
    store: Store, name: str | None = None, verify: bool = True, progress: OnProgress | None = None
) -> list[ReplayResult]:
    """Fold the log of one recommender, or of all; with `verify` compare the bytes of every version that is kept."""
    heads = store.heads()
    if name is not None:
        known = [head.name for head in heads]
        if name not in known:
            raise DataError(
                f"recommender: there is no {name!r:.100}; {suggestion(name, known) if known else 'none is'}"
            )
        heads = [head for head in heads if head.name == name]
    with one_thread():
        return [_replayed(store, head, verify, progress) for head in heads]


def _replayed(store: Store, head: Head, verify: bool, progress: OnProgress | None) -> ReplayResult:
    result = ReplayResult(head.name, head.base, head.base)
    try:
        result.since = _since(store, head)
        fold = _base(store, head)
        check = _Check(store, head, result) if verify else None
        if check is not None:
            check.versions(fold)
        for row in verify_chain(_rows(store, head, fold.seq), fold.hash, fold.seq):
            told = fold.apply(row)
            result.seq, result.lessons = fold.seq, fold.lessons
            if check is not None:
                check.event(row, told, fold)
            if progress is not None:
                progress(head.name, row.seq - head.base, head.seq - head.base)
    except StoreError:
        raise
    except NeuclustError as error:
        result.problem = str(error)
    return result


def _since(store: Store, head: Head) -> str:
    """What made the base: an erasure, after which the events before it are there without content, or retention."""
    if head.base == 0:
        return ""
    first = store.read(head.id, 0, 1)
    erased = bool(first) and first[0].seq == 1
    return "since the erasure" if erased else "since older events were deleted"


def _base(store: Store, head: Head) -> Fold:
    """The fold at the base: of its state, or of nothing. Its hash must be the one that the log goes on from."""
    if head.base == 0:
        return Fold.begin()
    for version in store.versions(head.id, EVERY):  # a base may be older than the last ones
        if version.state and version.seq == head.base:
            try:
                blob = store.state(head.id, version.version)
                fold = None if blob is None else Fold.from_state(blob)
            except (Damaged, SaveError):
                continue
            if fold is not None and fold.hash == head.base_hash:
                return fold
    raise StateError(f"expected a whole state of event {head.base}, the base, got none; restore the last backup")


def _rows(store: Store, head: Head, after: int) -> Iterator[Row]:
    while rows := store.read(head.id, after, BATCH, until=head.seq):
        yield from rows
        after = rows[-1].seq
    if after != head.seq:
        raise Damaged(f"expected events up to {head.seq}, got {after}; restore the last backup")


class _Check:
    """Compares what is kept with what follows from the log, event by event."""

    def __init__(self, store: Store, head: Head, result: ReplayResult) -> None:
        self.store, self.head, self.result = store, head, result
        self._versions: dict[int, list[Version]] = {}
        for version in store.versions(head.id):
            if (version.model or version.state) and head.base <= version.seq <= head.seq:
                self._versions.setdefault(version.seq, []).append(version)
        progress = store.progress(head.id)
        self._applied = 0 if progress is None else min(progress.seq, head.seq)
        self._told: dict[int, bytes] = {}
        self._read_until = head.base

    def event(self, row: Row, told: Told | None, fold: Fold) -> None:
        """What was told of an event, and the versions that were made after it."""
        if row.seq <= self._applied:
            self._compare_told(row, told)
        self.versions(fold)

    def versions(self, fold: Fold) -> None:
        """Models and states of versions at this place of the log."""
        for version in self._versions.get(fold.seq, ()):
            self.result.environment |= differing(version.environment)
            named = f"version {version.version} (event {version.seq:,})"
            if version.model:
                self._compare(
                    f"the model of {named}", partial(self.store.model, self.head.id, version.version), fold.model
                )
            if version.state:
                self._compare(
                    f"the state of {named}", partial(self.store.state, self.head.id, version.version), fold.state
                )

    def _compare(self, what: str, kept: Callable[[], bytes | None], made: Callable[[], bytes]) -> None:
        self.result.compared += 1
        try:
            found = kept()
        except Damaged as error:
            self.result.differs(f"{what} is damaged: {error}")
            return
        if found is not None and found != made():
            self.result.differs(f"{what} has other bytes than follow from the log")

    def _compare_told(self, row: Row, told: Told | None) -> None:
        if row.seq > self._read_until:
            self._read(row.seq)
        kept = self._told.pop(row.seq, None)
        if told is None and kept is None:
            return
        self.result.told += 1
        if kept != (None if told is None else encode(told)):
            self.result.differs(f"what was told of event {row.seq:,} is not what follows from the log")

    def _read(self, seq: int) -> None:
        """The next entries of what was told, from an event on."""
        found: Mapping[int, bytes] = self.store.told(self.head.id, seq - 1, BATCH)
        self._told = dict(found)
        self._read_until = max(found) if len(found) == BATCH else self.head.seq
