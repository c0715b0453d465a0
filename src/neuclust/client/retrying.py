"""HTTP with repeats: exponential backoff with full jitter, Retry-After honoured, the same body every time."""

import random
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from neuclust.client.problems import Unavailable, problem_error
from neuclust.errors import ConfigError
from neuclust.extras import extra

with extra("neuclust.client"):
    import httpx

AGAIN = frozenset({429, 502, 503, 504})
LONGEST_PAUSE = 60.0  # seconds of Retry-After that are waited for
OK = range(200, 300)


@dataclass(frozen=True, slots=True)
class Retry:
    """How often a call is repeated, and how long it waits: evenly from 0 to `first` · 2ⁿ seconds, at most `longest`."""

    times: int = 6
    first: float = 0.1
    longest: float = 5.0

    def __post_init__(self) -> None:
        if self.times < 0 or not 0 < self.first <= self.longest:
            got = f"got {self.times}, {self.first} and {self.longest}"
            raise ConfigError(f"expected times from 0 and 0 < first <= longest, {got}", field="retries")

    def pause(self, attempt: int, after: float = 0.0) -> float:
        """Seconds before attempt 1, 2, …; never less than what the service asked for."""
        return after + random.uniform(0.0, min(self.longest, self.first * 2.0 ** (attempt - 1)))


@dataclass(frozen=True, slots=True)
class Reply:
    """A successful answer."""

    status: int
    body: bytes


@dataclass(frozen=True, slots=True)
class Body:
    """What is sent, and its media type."""

    content: bytes
    kind: str = "application/json"


@dataclass(frozen=True, slots=True)
class Transport:
    """Calls of one address. Every call of the service may be repeated: its ids are in the path or in the body."""

    http: httpx.Client
    retry: Retry

    def call(
        self, method: str, path: str, body: Body | None = None, params: Mapping[str, str | int] | None = None
    ) -> Reply:
        """The answer, repeated while the service is busy or not there; refusals are raised at once."""
        headers = {} if body is None else {"Content-Type": body.kind}
        content = None if body is None else body.content
        for attempt in range(self.retry.times + 1):
            try:
                response = self.http.request(method, path, content=content, headers=headers, params=params)
            except httpx.TransportError as error:
                self._wait(attempt, 0.0, _unreached(self.http, error))
                continue
            if response.status_code in OK or _gone(method, response.status_code, attempt):
                return Reply(response.status_code, response.content)
            failed = problem_error(response.status_code, response.content)
            if response.status_code not in AGAIN:
                raise failed
            self._wait(attempt, retry_after(response.headers.get("Retry-After")), failed)
        raise AssertionError("the last attempt raises or returns")

    def lines(self, path: str, params: Mapping[str, str | int]) -> Iterator[str]:
        """The lines of an answer as they come; only its beginning is repeated."""
        for attempt in range(self.retry.times + 1):
            begun = False
            try:
                with self.http.stream("GET", path, params=params) as response:
                    if response.status_code in OK:
                        for line in response.iter_lines():
                            begun = True
                            yield line
                        return
                    failed = problem_error(response.status_code, response.read())
                    after = retry_after(response.headers.get("Retry-After"))
            except httpx.TransportError as error:
                if begun:
                    raise _unreached(self.http, error) from error
                failed, after = _unreached(self.http, error), 0.0
            if failed.status and failed.status not in AGAIN:
                raise failed
            self._wait(attempt, after, failed)

    def _wait(self, attempt: int, after: float, failed: Exception) -> None:
        """Wait before the next attempt, or give up with the reason of the last one."""
        if attempt == self.retry.times or after > LONGEST_PAUSE:
            raise failed
        time.sleep(self.retry.pause(attempt + 1, after))


def retry_after(text: str | None) -> float:
    """Seconds of the header, given as a number or as a date; 0 where it says nothing."""
    if text is None:
        return 0.0
    if text.strip().isdecimal():
        return float(text)
    try:
        return max(0.0, (parsedate_to_datetime(text) - datetime.now(UTC)).total_seconds())
    except (ValueError, TypeError):
        return 0.0


def _gone(method: str, status: int, attempt: int) -> bool:
    """Whether a repeated deletion finds that an earlier attempt, whose answer was lost, did it."""
    return method == "DELETE" and status == 404 and attempt > 0


def _unreached(http: httpx.Client, error: httpx.TransportError) -> Unavailable:
    why = str(error) or type(error).__name__
    return Unavailable(f"expected a service at {http.base_url}, got no answer ({why}); is it running?")
