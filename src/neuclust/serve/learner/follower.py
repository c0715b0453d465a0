"""The learner's work for one recommender: read events, fold them, tell what became of them, publish versions."""

import os
import time
from collections import deque
from dataclasses import asdict, dataclass, field
from typing import Any

from neuclust.recommender.options import Settings
from neuclust.serve.events import encode, expiry_event
from neuclust.serve.fold.fold import Fold
from neuclust.serve.fold.recovery import recovered
from neuclust.serve.learner.publishing import Pace, Publisher
from neuclust.serve.statistics.units import KEY as UNITS
from neuclust.serve.statistics.units import Units
from neuclust.serve.store.chain import verify_chain
from neuclust.serve.store.contract import ERASURE, Head, Progress, Row, Store

BATCH = 500  # events read at a time
PATIENCE = 1.0  # seconds between two expiries: the store's clock may be behind


@dataclass
class Follower:
    """A recommender that is followed: its fold, and what is still to be written."""

    store: Store
    head: Head
    pace: Pace
    fold: Fold
    publisher: Publisher
    notes: tuple[str, ...] = ()  # of states that could not be read
    _rows: deque[Row] = field(default_factory=deque)  # read, to be applied
    _erases: bool = False  # whether an erasure was applied that is to be carried out
    _told: dict[int, bytes] = field(default_factory=dict)
    _said: float = -1e9  # when progress was written
    _said_seq: int = -1
    _summary: dict[str, Any] = field(default_factory=dict)
    _summed: float = -1e9
    _expired: float = -1e9

    @classmethod
    def begin(cls, store: Store, head: Head, token: int, pace: Pace) -> "Follower":
        """Go on from the newest state that is whole; erasures that were not finished are."""
        found = recovered(store, head)
        publisher = Publisher(store, head.id, pace)
        publisher.resume(found.fold, whole=not found.damaged)
        publisher.erase(found.fold, token)
        return cls(store, head, pace, found.fold, publisher, found.damaged)

    def step(self, head: Head, token: int) -> bool:
        """One turn; whether there was anything to do."""
        self.head = head
        applied = self._catch_up()
        self._erase(token)
        drained = self.fold.seq >= head.seq
        expired = drained and self._expire()
        waited = time.monotonic() - self._said
        if self._told or self._said_seq != self.fold.seq:
            if waited >= (self.pace.drained if drained else self.pace.progress):
                self._advance(token)
        elif waited >= self.pace.heartbeat:
            self._advance(token)
        if self.publisher.due(self.fold):
            self._publish(token, self.publisher.state_due(self.fold))
        self._retain(token)
        return applied or expired

    def finish(self, token: int) -> None:
        """Leave a state at the last event applied, so that the next learner begins there."""
        self._advance(token)
        if self.fold.seq > self.publisher.state_seq and self.fold.shop.schema is not None:
            self._publish(token, with_state=True)

    # --- steps ----------------------------------------------------------------------------------------------------

    def _catch_up(self) -> bool:
        """Fold events for a while; each is seen to follow the one before it."""
        end, before = time.monotonic() + self.pace.slice, self.fold.seq
        while self.fold.seq < self.head.seq and not self._erases:  # the base of an erasure is its own event
            if not self._rows:
                rows = self.store.read(self.head.id, self.fold.seq, BATCH)
                self._rows.extend(verify_chain(rows, self.fold.hash, self.fold.seq))
            if not self._rows:
                break
            self._apply(self._rows.popleft())
            if time.monotonic() >= end:
                break
        return self.fold.seq > before

    def _apply(self, row: Row) -> None:
        told = self.fold.apply(row)
        if told is not None:
            self._told[row.seq] = encode(told)
        self._erases = self._erases or row.kind == ERASURE

    def _erase(self, token: int) -> None:
        """Carry out erasures that were applied, again where the store failed."""
        if self._erases:
            self._advance(token)
            self.publisher.erase(self.fold, token)
            self._erases = False

    def _expire(self) -> bool:
        """Let windows that ended be an event of the log, where no other event came."""
        due, now = self.fold.due, time.time()
        if due is None or due > now or time.monotonic() - self._expired < PATIENCE:
            return False
        self._expired = time.monotonic()
        self.store.append({self.head.id: [expiry_event()]})
        return True

    def _advance(self, token: int) -> None:
        """Write how far it is, with what is to be told of events, at once."""
        if not self.fold.seq:
            return
        progress = Progress(self.fold.seq, self.fold.lessons, time.time(), self._people())
        self.store.advance(self.head.id, token, progress, self._told)
        self._told, self._said, self._said_seq = {}, time.monotonic(), self.fold.seq

    def _people(self) -> dict[str, Any]:
        """What progress tells people."""
        now = time.monotonic()
        if now - self._summed >= self.pace.summary:
            state = self.fold.at
            self._summary = {
                "popular": state.popularity.top(state.shop.stock.catalogue), "statistics": state.statistics.view(),
                UNITS: _units(state.shop.settings).to_json(),
            }  # fmt: skip
            self._summed = time.monotonic()
        counts = asdict(self.fold.shop.decisions.counts)
        learner = {"pid": os.getpid(), "time": time.time(), "damaged": list(self.notes)}
        return {**self._summary, "counts": counts, "learner": learner}

    def _publish(self, token: int, with_state: bool) -> None:
        if self._told:
            self._advance(token)  # a state without what was told before it would lose that for ever
        self.publisher.publish(self.fold, token, with_state)
        self.publisher.prune(self.head, token, self.fold.at.configuration.retention_days)

    def _retain(self, token: int) -> None:
        if self.fold.seq and (days := self.fold.at.configuration.retention_days) is not None:
            self.publisher.retain(self.head, token, days, time.time())


def _units(settings: Settings) -> Units:
    """What people read rewards in."""
    return Units(*settings.feedback.span, settings.slate_size, settings.reward.name)
