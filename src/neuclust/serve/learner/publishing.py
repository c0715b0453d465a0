"""Versions of one recommender: when one is published, which models and states are kept, erasure and retention."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from neuclust.errors import SaveError
from neuclust.serve.fold.environment import environment
from neuclust.serve.fold.fold import Fold
from neuclust.serve.store.contract import ERASURE, Damaged, Head, Store, Version

MODELS, STATES = 5, 3  # versions that keep theirs
CHECKPOINTS = 10  # states that are kept over the days of retention, to drop events up to one of them
DAY = 86_400.0
BATCH = 500


@dataclass(frozen=True)
class Pace:
    """How often things are written, in seconds and events."""

    publish: float = 1.0  # at least between two versions
    share: float = 100.0  # times the cost of the last one, at least between two; serving it costs about as much again
    state: float = 60.0
    events: int = 20_000  # after which a state is written at the latest
    progress: float = 0.5
    drained: float = 0.1  # where all events are applied: each write takes its turn among those of requests
    summary: float = 2.0  # between two computations of what progress tells people
    heartbeat: float = 5.0  # of a recommender where nothing happens
    slice: float = 0.5  # of folding, after which progress is written and other recommenders have their turn


@dataclass
class Publisher:
    """What was published of a recommender, and what is to be."""

    store: Store
    id: int
    pace: Pace
    served: tuple[Any, ...] = ()  # what the last version was made of
    at: float = -1e9  # when, by a clock that does not jump
    cost: float = 0.0
    state_at: float = field(default_factory=time.monotonic)
    state_seq: int = 0
    retained_at: float = -1e9

    def resume(self, fold: Fold, whole: bool) -> None:
        """Go on from a state that was read; a newer one that was not whole is replaced before it is needed."""
        self.state_seq = fold.seq if whole else -1
        versions = self.store.versions(self.id)
        if versions and versions[0].seq == fold.seq:
            self.served = _served(fold)

    def due(self, fold: Fold) -> bool:
        """Whether a version should be published now."""
        if not fold.seq:
            return False
        now = time.monotonic()
        changed = fold.shop.schema is not None and _served(fold) != self.served
        if changed and now - self.at >= max(self.pace.publish, self.pace.share * self.cost):
            return True
        return fold.seq - self.state_seq >= self.pace.events

    def state_due(self, fold: Fold) -> bool:
        """Whether a version that is published now has a state."""
        waited = time.monotonic() - self.state_at >= self.pace.state
        return (waited and fold.seq > self.state_seq) or fold.seq - self.state_seq >= self.pace.events

    def publish(self, fold: Fold, token: int, with_state: bool) -> None:
        """Publish a version of the fold as it is; what was told of its events must be written before."""
        start = time.monotonic()
        versions = self.store.versions(self.id)
        number = versions[0].version + 1 if versions else 1
        version = Version(number, fold.seq, fold.at.clock.now, fold.lessons, with_state, True, environment())
        self.store.publish(self.id, token, version, fold.model(), fold.state() if with_state else None)
        self.served, self.at = _served(fold), time.monotonic()
        if with_state:
            self.state_at, self.state_seq = self.at, fold.seq
        self.cost = self.at - start

    # --- what is kept ---------------------------------------------------------------------------------------------

    def prune(self, head: Head, token: int, days: float | None) -> None:
        """Drop models and states that nobody goes on from; none where the newest state cannot be read."""
        versions = self.store.versions(self.id)
        models = [each.version for each in versions if each.model]
        dropped = [number for number in models[MODELS:] if number != head.promoted]
        states = [each for each in versions if each.state]
        kept = {each.version for each in states[:STATES]} | _checkpoints(states, days)
        kept |= {each.version for each in states if each.seq == head.base}
        old = [each.version for each in states if each.version not in kept]
        if old and not self._whole(states[0].version):
            old = []
        if dropped or old:
            self.store.prune(self.id, token, dropped, old)

    def _whole(self, version: int) -> bool:
        try:
            return self.store.state(self.id, version) is not None
        except (Damaged, SaveError):
            return False

    def retain(self, head: Head, token: int, days: float, now: float) -> None:
        """Drop events older than so many days, up to a state; looked at once a minute."""
        if time.monotonic() - self.retained_at < self.pace.state:
            return
        self.retained_at = time.monotonic()
        states = [each for each in self.store.versions(self.id) if each.state and each.time <= now - days * DAY]
        found = max((each.seq for each in states if each.seq > head.base), default=None)
        if found is not None and self._whole(next(each.version for each in states if each.seq == found)):
            self.store.retain(self.id, token, found)

    def erase(self, fold: Fold, token: int) -> int:
        """Delete what is to be deleted by erasures that the fold has applied; how many there were.

        A killed learner may have left some: they still have their content.
        """
        done, after = 0, 0
        while rows := self.store.read(self.id, after, BATCH, [ERASURE], until=fold.seq):
            after = rows[-1].seq
            for row in rows:
                if row.user is None:
                    continue
                if self.state_seq < row.seq:  # what is erased must not be needed to go on
                    self.publish(fold, token, with_state=True)
                self.store.erase(self.id, token, row.user, row.seq)
                done += 1
        return done


def _served(fold: Fold) -> tuple[Any, ...]:
    """Differs where another model would be served."""
    return fold.lessons, fold.shop.schema is not None, fold.at.configuration.to_json()


def _checkpoints(states: Sequence[Version], days: float | None) -> set[int]:
    """One state for each tenth of the days of retention."""
    if days is None:
        return set()
    found: dict[int, int] = {}
    for each in states:  # newest first
        found.setdefault(int(each.time // (days * DAY / CHECKPOINTS)), each.version)
    return set(found.values())
