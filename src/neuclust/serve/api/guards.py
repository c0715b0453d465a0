"""What stands before every route: size of bodies, rate per client, names of the host, headers of safety.

Plain ASGI, so that a request that is turned away costs little.
"""

import ipaddress
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from neuclust.serve.api.problems import Overloaded, Refused, respond

SMALL, LARGE = 1 << 20, 1 << 26  # bytes of a body; of a batch
BATCHES = ("items:batch", "users:batch", "history:batch", "feedback:batch", "recommendations:batch")
SLATES = ("/recommendations", "/recommendations:batch")
MOST_CLIENTS = 10_000  # whose rate is known
SAFE = [
    (b"x-content-type-options", b"nosniff"), (b"x-frame-options", b"DENY"), (b"referrer-policy", b"no-referrer"),
    (b"content-security-policy", b"default-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'self'"),
    (b"cache-control", b"no-store"),
]  # fmt: skip


def is_loopback(host: str) -> bool:
    """Whether an address can only be reached from its own machine."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


@dataclass
class Rates:
    """Token buckets by client: `rate` requests per second, two seconds' worth at once; 0: no limit."""

    rate: float
    _left: OrderedDict[str, tuple[float, float]] = field(default_factory=OrderedDict)

    def wait(self, client: str, now: float, cost: float = 1.0) -> float:
        """0 where a request may pass, else the seconds until it may."""
        if self.rate <= 0:
            return 0.0
        most = 2 * self.rate
        left, last = self._left.pop(client, (most, now))
        left = min(most, left + (now - last) * self.rate)
        passes = left >= cost
        self._left[client] = (left - cost if passes else left, now)
        while len(self._left) > MOST_CLIENTS:
            self._left.popitem(last=False)
        return 0.0 if passes else (cost - left) / self.rate


class Guards:
    """Turns away what is too large, too often, or meant for another host; adds the headers of safety."""

    def __init__(
        self, app: ASGIApp, rates: Rates, hosts: Sequence[str] | None, full: Callable[[], bool] = lambda: False
    ) -> None:
        self.app, self.rates, self.full = app, rates, full
        self.hosts = None if hosts is None else {host.lower() for host in hosts}  # None: any

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        try:
            self._check(scope)
            limited = _Limited(receive, LARGE if scope["path"].endswith(BATCHES) else SMALL)
            await self.app(scope, limited, _safe(send))
        except Refused as error:
            await respond(error)(scope, receive, _safe(send))

    def _check(self, scope: Scope) -> None:
        headers = Headers(scope=scope)
        if self.hosts is not None and _host(headers.get("host", "")) not in self.hosts:
            # a page of another name that resolves to this machine must not speak to the service
            wanted = f"expected one of {', '.join(sorted(self.hosts))}"
            raise Refused(421, f"Host: {wanted}, got {headers.get('host', '')!r:.100}")
        client = headers.get("authorization") or (scope.get("client") or ("unknown",))[0]
        wait = self.rates.wait(client, time.monotonic())
        if wait > 0:
            raise Refused(429, f"expected at most {self.rates.rate:g} requests per second, got more", after=wait)
        if scope["path"].endswith(SLATES) and self.full():  # before the body is read
            raise Overloaded("expected fewer requests at once: this one would wait too long; try later")
        length = headers.get("content-length", "")
        most = LARGE if scope["path"].endswith(BATCHES) else SMALL
        if length.isdigit() and int(length) > most:
            raise too_large(most)


def too_large(most: int) -> Refused:
    """The refusal of a body that is too long."""
    return Refused(413, f"body: expected at most {most:,} bytes, got more; send it in parts")


class _Limited:
    """Receives a body up to a size, whatever its header says."""

    def __init__(self, receive: Receive, most: int) -> None:
        self.receive, self.most, self.got = receive, most, 0

    async def __call__(self) -> Message:
        message = await self.receive()
        self.got += len(message.get("body", b""))
        if self.got > self.most:
            raise HTTPException(413, str(too_large(self.most)))
        return message


def _host(header: str) -> str:
    """The name without its port."""
    if header.startswith("["):
        return header[: header.find("]") + 1].lower()
    return header.rsplit(":", 1)[0].lower() if header.count(":") == 1 else header.lower()


def _safe(send: Send) -> Send:
    async def wrapped(message: Message) -> None:
        if message["type"] == "http.response.start":
            known = {name.lower() for name, _ in message["headers"]}
            message["headers"] = [*message["headers"], *(each for each in SAFE if each[0] not in known)]
        await send(message)

    return wrapped
