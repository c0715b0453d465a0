"""The learner's loop over all recommenders of a store: none stops the others, and a fenced learner writes nothing."""

import logging
import threading
import time
from dataclasses import dataclass, field, replace

from neuclust.errors import NeuclustError
from neuclust.serve.learner.follower import Follower
from neuclust.serve.learner.lease import Lease
from neuclust.serve.learner.publishing import Pace
from neuclust.serve.store.contract import Fenced, Head, Progress, Store, StoreError

POLL = 0.05  # seconds between two looks where nothing happened
WAIT = 0.5  # seconds before a store that cannot be reached, or a lease that another has, is asked again
RETRY = (2.0, 60.0)  # seconds before a recommender that failed is tried again, at first and at most

log = logging.getLogger(__name__)


@dataclass
class Failure:
    """Why a recommender is not followed, and when it is tried again."""

    problem: str
    wait: float
    until: float


@dataclass
class Loop:
    """Follows every recommender while it holds the lease."""

    store: Store
    lease: Lease
    pace: Pace = field(default_factory=Pace)
    token: int | None = None  # that the followers write with
    followers: dict[int, Follower] = field(default_factory=dict)
    failures: dict[int, Failure] = field(default_factory=dict)

    def run(self, stop: threading.Event) -> None:
        """Learn until told to stop; then leave states and give the lease back."""
        while not stop.is_set():
            stop.wait(self.turn())
        self.finish()

    def turn(self) -> float:
        """One turn of every recommender; how long to wait before the next."""
        try:
            token = self.lease.taken()
            if token is None or token != self.token:  # others may have learned in the meantime
                self.followers.clear()
                self.token = token
            if token is None:
                return WAIT
            heads = self.store.heads()
            self._forget(heads)
            busy = [self._step(head, token) for head in heads]
        except Fenced as error:
            log.warning("%s", error)
            self.lease.lost()
            self.followers.clear()
            return WAIT
        except StoreError as error:
            log.warning("%s", error)
            return WAIT
        return 0.0 if any(busy) else POLL

    def finish(self) -> None:
        """States of all, where the lease is still held."""
        for follower in self.followers.values():
            try:
                if self.lease.token is not None:
                    follower.finish(self.lease.token)
            except NeuclustError as error:
                log.warning("%s", error)
        self.lease.release()

    def _forget(self, heads: list[Head]) -> None:
        """Drop recommenders that were deleted."""
        there = {head.id for head in heads}
        for known in (self.followers, self.failures):
            for id in known.keys() - there:
                known.pop(id, None)

    def _step(self, head: Head, token: int) -> bool:
        failure = self.failures.get(head.id)
        if failure is not None and time.monotonic() < failure.until:
            return False
        try:
            if head.id not in self.followers:
                self.followers[head.id] = Follower.begin(self.store, head, token, self.pace)
            busy = self.followers[head.id].step(head, token)
            self.failures.pop(head.id, None)
            return busy
        except (Fenced, StoreError):
            raise
        except Exception as error:  # of a policy, of a damaged log: the other recommenders go on
            self._fail(head, token, error)
            return False

    def _fail(self, head: Head, token: int, error: Exception) -> None:
        """Tell why, and begin again from the last state after a while."""
        said = str(error) if isinstance(error, NeuclustError) else f"{type(error).__name__}: {error!s:.300}"
        earlier = self.failures.get(head.id)
        wait = RETRY[0] if earlier is None else min(2 * earlier.wait, RETRY[1])
        self.failures[head.id] = Failure(said, wait, time.monotonic() + wait)
        self.followers.pop(head.id, None)
        log.error("%s: %s", head.name, said, exc_info=not isinstance(error, NeuclustError))
        before = self.store.progress(head.id) or Progress(0, 0, head.created)
        told = {**before.told, "problem": said}
        self.store.advance(head.id, token, replace(before, time=time.time(), told=told), {})
