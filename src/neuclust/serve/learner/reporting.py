"""What MLflow is told of a learner, by a thread beside it that reads the store as anybody may.

Nothing waits for MLflow: whatever it raises is a warning, and it is tried again.
"""

import json
import logging
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field

from neuclust.doors.mlflow.tracking import Metric, Tracking
from neuclust.serve.statistics.buckets import ArmSums
from neuclust.serve.statistics.overview import KEY
from neuclust.serve.statistics.statistics import Statistics
from neuclust.serve.statistics.units import Units
from neuclust.serve.store.contract import CONFIG, Head, Progress, Store
from neuclust.serve.store.opening import open_store

VARIABLE = "NEUCLUST_MLFLOW"  # the address of the MLflow store; a child of the service inherits it
EXPERIMENT = "neuclust-service"
EVERY = 10.0  # seconds between two looks
RETRY = (5.0, 300.0)  # seconds before MLflow is tried again, at first and at most
LAST = 5.0  # seconds that the last look may take when the learner ends

log = logging.getLogger(__name__)


@contextmanager
def reported(address: str, learning: Callable[[], bool]) -> Iterator[None]:
    """Inside, MLflow is told of the recommenders of a store while `learning`; where $NEUCLUST_MLFLOW names one."""
    uri = os.environ.get(VARIABLE)
    if not uri:
        yield
        return
    end = threading.Event()
    thread = threading.Thread(target=_report, args=(address, uri, learning, end), name="mlflow", daemon=True)
    thread.start()
    try:
        yield
    finally:
        end.set()
        thread.join(LAST)


def _report(address: str, uri: str, learning: Callable[[], bool], end: threading.Event) -> None:
    """Look until the end, and once more then."""
    wait = RETRY[0]
    while not end.is_set():
        try:
            with closing(open_store(address)) as store:
                reporter = Reporter(store, Tracking.opened(uri, EXPERIMENT))
                while True:
                    last = end.wait(EVERY)
                    if last or learning():
                        reporter.look(own=last)  # the lease is given back by then
                        wait = RETRY[0]
                    if last:
                        reporter.finish()
                        return
        except Exception as error:  # of MLflow, of its server, of the store: learning goes on
            said = str(error).strip() or type(error).__name__
            log.warning("MLflow was not told how learning goes (%.300s); it is tried again in %.0f s", said, wait)
            end.wait(wait)
            wait = min(2 * wait, RETRY[1])


@dataclass
class Told:
    """What MLflow has of one recommender: its run, how far, and the answered requests and clicks by then."""

    run: str
    seq: int = -1
    version: int = -1
    answered: int = 0
    clicks: float = 0.0


@dataclass
class Reporter:
    """One run of MLflow per recommender, which goes on after a restart."""

    store: Store
    tracking: Tracking
    told: dict[int, Told] = field(default_factory=dict)

    def look(self, own: bool = False) -> None:
        """Send what has changed since the last look; `own`: only what this process has written."""
        for head in self.store.heads():
            progress = self.store.progress(head.id)
            if progress is not None and (not own or progress.told.get("learner", {}).get("pid") == os.getpid()):
                self._send(head, progress)

    def finish(self) -> None:
        """End the runs; a later learner takes them up."""
        for each in self.told.values():
            with suppress(Exception):
                self.tracking.end(each.run)

    def _send(self, head: Head, progress: Progress) -> None:
        versions = self.store.versions(head.id, 1)
        version = versions[0].version if versions else 0
        known = self.told.get(head.id)
        if known is None:
            known = self.told[head.id] = Told(self._run(head))
        if (progress.seq, version) == (known.seq, known.version):
            return
        behind = max(head.seq - progress.seq, 0)
        metrics: list[Metric] = [
            ("events", head.seq, progress.seq), ("lag_events", behind, progress.seq),
            ("lag_seconds", max(time.time() - progress.time, 0.0) if behind else 0.0, progress.seq),
            ("lessons", progress.lessons, progress.seq), ("version", version, progress.seq),
        ]  # fmt: skip
        self.tracking.log(known.run, [*metrics, *_clicks(progress, known)])
        self.tracking.tag(known.run, "neuclust.problem", str(progress.told.get("problem") or ""))
        known.seq, known.version = progress.seq, version

    def _run(self, head: Head) -> str:
        """The recommender's run, found by when it was made, or a new one with its first configuration."""
        mine = {"neuclust.recommender": head.name, "neuclust.created": f"{head.created!r}"}
        for earlier in self.tracking.runs(mine):
            self.tracking.resume(earlier.info.run_id)
            return str(earlier.info.run_id)
        run = self.tracking.run(head.name, {**mine, "neuclust.store": self.store.address})
        first = self.store.read(head.id, 0, 1)
        if first and first[0].kind == CONFIG and first[0].payload is not None:
            given = json.loads(first[0].payload)
            self.tracking.log(run, params={name: value for name, value in given.items() if value is not None})
        return run


def _clicks(progress: Progress, known: Told) -> list[Metric]:
    """Clicks per request of every arm so far, and of the live arm since the last look."""
    saved = progress.told.get(KEY)
    if saved is None:
        return []
    statistics, units = Statistics.from_json(saved), Units.of(progress)
    arms, seen = statistics.buckets.total().arms, units.seen(statistics)
    found: list[Metric] = [
        (f"{name}_{what}", value, progress.seq)
        for name, sums in arms.items()
        for what, value in (("requests", float(sums.decisions)), ("clicks_per_request", _mean(sums, units, seen)))
        if value is not None
    ]
    live = arms.get("live")
    if live is not None and live.clicks.count > known.answered:
        since = (live.clicks.first - known.clicks) / (live.clicks.count - known.answered)
        since = units.total(since, seen)
        found.append(("live_clicks_per_request_lately", since, progress.seq))
        known.answered, known.clicks = live.clicks.count, live.clicks.first
    return found


def _mean(sums: ArmSums, units: Units, seen: float) -> float | None:
    return units.total(sums.clicks.first / sums.clicks.count, seen) if sums.clicks.count else None
