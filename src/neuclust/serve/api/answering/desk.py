"""The thread that owns the models: it follows the tables, chooses slates for requests in groups, and hands them on.

One thread, because Python computes in one at a time; what it is asked is answered in the order in which it came.
"""

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, Protocol

from neuclust.serve.api.bodies import Recommend
from neuclust.serve.api.problems import Overloaded

TOGETHER, PASS = 8, 0.01  # most requests that are chosen for in one pass, and seconds it may take:
# the first of them waits for the last
SMOOTH = 0.05  # weight of the newest pass in the mean cost of a request


@dataclass(frozen=True, slots=True)
class Ask:
    """A request for a slate, the digest of its body, and whoever waits for its answer."""

    name: str
    body: Recommend
    digest: bytes
    answer: "Future[dict[str, Any]]" = field(default_factory=Future)


@dataclass(frozen=True, slots=True)
class Call:
    """Anything else that needs the models."""

    function: Callable[[], Any]
    answer: "Future[Any]" = field(default_factory=Future)


class Answers(Protocol):
    """Chooses for requests of one recommender and sees to it that each gets its answer."""

    def __call__(self, name: str, asks: Sequence[Ask]) -> None: ...


class Desk:
    """Takes requests and calls from any thread and works on them in its own."""

    def __init__(self, answers: Answers, longest_wait: float) -> None:
        self._answers, self.longest_wait = answers, longest_wait
        self.cost = 0.002  # seconds per request, a moving average
        self.busy_since: float | None = None
        self._jobs: deque[Ask | Call] = deque()
        self._asks, self._ready, self._closed = 0, threading.Condition(), False
        self._thread = threading.Thread(target=self._run, name="desk", daemon=True)
        self._thread.start()

    @property
    def waiting(self) -> int:
        return self._asks

    @property
    def full(self) -> bool:
        """Whether another request would wait too long."""
        return self._asks > 0 and self._asks * self.cost > self.longest_wait

    def ask(self, asks: Sequence[Ask]) -> None:
        """Have requests answered; refused at once where they would wait too long."""
        with self._ready:
            wait = (self._asks + len(asks) - 1) * self.cost
            if self._closed or (wait > self.longest_wait and self._asks):
                raise Overloaded(f"expected fewer requests at once: this one would wait {wait:.2f} seconds; try later")
            self._asks += len(asks)
            self._jobs.extend(asks)
            self._ready.notify()

    def call(self, function: Callable[[], Any]) -> "Future[Any]":
        """Have a function called in the desk's thread."""
        call = Call(function)
        with self._ready:
            if self._closed:
                raise Overloaded("expected a service that runs, but it is ending")
            self._jobs.append(call)
            self._ready.notify()
        return call.answer

    def close(self) -> None:
        """Finish what waits and end."""
        with self._ready:
            self._closed = True
            self._ready.notify()
        self._thread.join()

    def _run(self) -> None:
        while True:
            with self._ready:
                while not self._jobs:
                    if self._closed:
                        return
                    self._ready.wait()
                jobs = self._next()
            self.busy_since = time.monotonic()
            if isinstance(jobs, Call):
                _call(jobs)
            else:
                self._answer(jobs)
            self.busy_since = None

    def _next(self) -> Call | list[Ask]:
        """The next call, or the next requests of one recommender that follow each other."""
        first = self._jobs.popleft()
        if isinstance(first, Call):
            return first
        found = [first]
        most = min(TOGETHER, PASS / self.cost)
        while self._jobs and len(found) < most:
            following = self._jobs[0]
            if isinstance(following, Call) or following.name != first.name:
                break
            found.append(following)
            self._jobs.popleft()
        return found

    def _answer(self, asks: list[Ask]) -> None:
        start = time.perf_counter()
        try:
            self._answers(asks[0].name, asks)
        except Exception as error:  # whatever it is, nobody waits for ever
            for ask in asks:
                if not ask.answer.done():
                    ask.answer.set_exception(error)
        finally:
            spent = (time.perf_counter() - start) / len(asks)
            self.cost += SMOOTH * (spent - self.cost)
            with self._ready:
                self._asks -= len(asks)


def _call(call: Call) -> None:
    if not call.answer.set_running_or_notify_cancel():
        return
    try:
        call.answer.set_result(call.function())
    except BaseException as error:
        call.answer.set_exception(error)
