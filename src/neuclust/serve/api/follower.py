"""The thread that looks for new models and at the learner's progress, and hands both to the desk."""

import contextlib
import logging
import threading
import time
from collections import deque
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from neuclust.errors import NeuclustError
from neuclust.serve.api.answering.served import Served
from neuclust.serve.api.problems import Refused
from neuclust.serve.fold.blobs import ServedModel
from neuclust.serve.store.contract import Head, Progress, Version

if TYPE_CHECKING:
    from neuclust.serve.api.service import Service

LOG = logging.getLogger("neuclust.serve")
EVERY = 0.25  # seconds between looks
SILENT = 15.0  # seconds without a word of the learner after which it counts as down
READ = 0.5  # seconds between two looks at the learner's progress, which tells much
REST = 30.0  # times the seconds of reading a model, at least between two: requests share the processor with it
SETTLE = 1.0  # seconds between two turns of the store's upkeep
KEPT = 4096  # samples of the log's length
RETRY = (1.0, 30.0)  # seconds before a recommender that failed is looked at again, at first and at most


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a recommender could not be looked at, and when it is looked at again."""

    id: int
    problem: str
    wait: float
    until: float


class Follower:
    """Looks at the store every quarter of a second; what it reads does not hold up requests."""

    def __init__(self, service: "Service") -> None:
        self._service, self._ended = service, threading.Event()
        self.progress: dict[str, Progress] = {}
        self.heads: dict[str, Head] = {}
        self.begun = False  # whether every recommender was looked at once
        self.failures: dict[str, Failure] = {}
        self._lengths: dict[str, deque[tuple[float, int]]] = {}
        self._settled = 0.0
        self._read: dict[str, float] = {}  # when progress was read
        self._loaded: dict[str, tuple[float, float]] = {}  # when a model was read, and in how many seconds
        self._damaged: set[tuple[int, int]] = set()
        self._thread = threading.Thread(target=self._run, name="follower", daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._ended.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._ended.wait(EVERY):
            try:
                self.look()
                if time.monotonic() - self._settled >= SETTLE:
                    self._service.store.settle()
                    self._settled = time.monotonic()
            except NeuclustError as error:
                LOG.warning("follower: %s", error)
            except Exception:
                LOG.exception("follower")

    def look(self) -> None:
        """One turn over all recommenders."""
        service = self._service
        heads = {head.name: head for head in service.store.heads()}
        for name in [name for name in service.served if name not in heads]:
            with contextlib.suppress(Refused):
                service.desk.call(partial(service.drop, name))
                service.metrics.forget(name)
        for name in self.failures.keys() - heads.keys():
            self.failures.pop(name, None)
        self.heads = heads
        for name, head in heads.items():
            self._try(name, head)
        self.begun = True

    def problem(self, name: str) -> str:
        """Why a recommender cannot be followed; empty: it can."""
        failure = self.failures.get(name)
        return "" if failure is None else failure.problem

    def _try(self, name: str, head: Head) -> None:
        """Follow one recommender; where that fails the others go on, and it is tried again after a while."""
        failure = self.failures.get(name)
        failure = None if failure is None or failure.id != head.id else failure
        if failure is not None and time.monotonic() < failure.until:
            return
        try:
            self._follow(name, head)
            self.failures.pop(name, None)
        except Exception as error:
            expected = isinstance(error, NeuclustError)
            said = str(error) if expected else f"unexpected {type(error).__name__}: {error!s:.300}"
            wait = RETRY[0] if failure is None else min(2 * failure.wait, RETRY[1])
            self.failures[name] = Failure(head.id, said, wait, time.monotonic() + wait)
            LOG.log(logging.WARNING if expected else logging.ERROR, "%s: %s", name, said, exc_info=not expected)

    def _follow(self, name: str, head: Head) -> None:
        service = self._service
        served = service.served.get(name)
        progress, now = self.progress.get(name), time.monotonic()
        if now - self._read.get(name, 0.0) >= READ:
            progress = service.store.progress(head.id)
            self._read[name] = now
        if progress is not None:
            self.progress[name] = progress
        if served is None or served.id != head.id:
            service.desk.call(lambda: service.synced(name)).result()
            return
        begun, took = self._loaded.get(name, (0.0, 0.0))
        found = self._newest(served, head) if now - begun >= REST * took or head.promoted else None
        if found is not None:
            self._loaded[name] = now, time.monotonic() - now
        stale = self._stale(name, head, progress, served.configuration.max_age)
        popular = dict(progress.told.get("popular", ())) if progress is not None else {}

        def take() -> None:
            served.stale, served.popular = stale, popular
            if found is not None:
                served.take(*found)

        service.desk.call(take).result()
        self._measure(name, head, served, progress)

    def _newest(self, served: Served, head: Head) -> tuple[ServedModel, int] | None:
        """The model that is to be served, where another one is."""
        versions = [each for each in self._service.store.versions(head.id, 10) if each.model]
        wanted = [each for each in versions if each.version == head.promoted] if head.promoted else versions
        if head.promoted and not wanted:
            wanted = [Version(head.promoted, 0, 0.0, 0, False, True)]
        for version in wanted:
            if version.version == served.version:
                return None
            if (head.id, version.version) in self._damaged:
                continue
            try:
                blob = self._service.store.model(head.id, version.version)
                model = None if blob is None else ServedModel.from_bytes(blob)
                if model is not None:
                    return model, version.version
            except NeuclustError as error:  # the one before it serves on
                LOG.warning("%s: version %d cannot be served: %s", served.name, version.version, error)
                self._damaged.add((head.id, version.version))
        return None

    def _stale(self, name: str, head: Head, progress: Progress | None, max_age: float | None) -> str:
        """Why the model is too old: the learner is silent, or behind the log of `max_age` seconds ago."""
        now = time.time()
        lengths = self._lengths.setdefault(name, deque(maxlen=KEPT))
        lengths.append((now, head.seq))
        applied, said = (0, 0.0) if progress is None else (progress.seq, progress.time)
        if now - max(said, lengths[0][0]) > SILENT and applied < head.seq:
            return f"the learner has said nothing for {now - max(said, lengths[0][0]):.0f} seconds"
        if max_age is None:
            return ""
        while len(lengths) > 1 and lengths[1][0] <= now - max_age:
            lengths.popleft()
        if lengths[0][0] <= now - max_age and applied < lengths[0][1]:
            return f"the learner is more than {max_age:g} seconds behind the log"
        return ""

    def _measure(self, name: str, head: Head, served: Served, progress: Progress | None) -> None:
        metrics = self._service.metrics
        metrics.events.labels(name).set(head.seq)
        metrics.lag.labels(name).set(head.seq - (0 if progress is None else progress.seq))
        metrics.version.labels(name).set(served.version)
        metrics.lessons.labels(name).set(0 if progress is None else progress.lessons)
        metrics.stale.labels(name).set(bool(served.stale))
        metrics.waiting.set(self._service.desk.waiting)
