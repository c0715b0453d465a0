"""Load for the service, from a process of its own: `python -m benchmarks.http_load < SPEC.json > FIGURES.json`.

Open loop: requests are due at times drawn before (Poisson, or evenly), whatever the service does, and a latency is
counted from the time a request was due. Waiting in a queue shows, in ours too: nothing is omitted in coordination with
a slow server. Raw keep-alive connections of asyncio; no retries.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
import sys
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import asdict, dataclass, field
from typing import Any

from benchmarks.serve_shop import Requests, clicked, with_id

MOST_CONNECTIONS = 400
PATIENCE = 30.0  # seconds for one answer
FAILED, UNSENT = 0, -1  # statuses of requests without an answer, and of those that found no free connection in time
LONGEST_QUEUE = 1.0  # seconds for one; otherwise an overload would go on in our own queue after its end


@dataclass(frozen=True)
class Spec:
    """What is sent."""

    port: int
    recommender: str
    rate: float  # per second
    seconds: float
    items: int = 10_000
    users: int = 1_000
    eligible: int | None = 300
    feedback: float = 0.5  # share of slates that are answered
    poisson: bool = True
    seed: int = 0
    decisions: list[tuple[str, str]] = field(default_factory=list)  # id and first item: feedback in batches instead
    batch: int = 100
    key: str | None = None


@dataclass
class Kind:
    """Answers to one kind of request: when each was due, what it took, its status."""

    due: list[float] = field(default_factory=list)
    took: list[float] = field(default_factory=list)
    status: list[int] = field(default_factory=list)

    def note(self, due: float, took: float, status: int) -> None:
        self.due.append(due)
        self.took.append(took)
        self.status.append(status)


class Connections:
    """Keep-alive connections; a request takes an idle one, opens another, or waits where there are too many."""

    def __init__(self, port: int, key: str | None) -> None:
        self.port, self.opened = port, 0
        self.idle: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []
        self.room = asyncio.Semaphore(MOST_CONNECTIONS)
        self.head = f"Host: 127.0.0.1:{port}\r\nContent-Type: application/json\r\n"
        self.head += "" if key is None else f"Authorization: Bearer {key}\r\n"

    async def post(self, path: str, body: bytes) -> tuple[int, bytes]:
        """Status and body of an answer."""
        try:
            await asyncio.wait_for(self.room.acquire(), LONGEST_QUEUE)
        except TimeoutError:
            return UNSENT, b""
        try:
            return await asyncio.wait_for(self._post(path, body), PATIENCE)
        except (OSError, asyncio.IncompleteReadError, TimeoutError, ValueError):
            return FAILED, b""
        finally:
            self.room.release()

    async def _post(self, path: str, body: bytes) -> tuple[int, bytes]:
        while self.idle:
            reader, writer = self.idle.pop()
            if reader.at_eof() or writer.is_closing():  # idle for so long that the service closed it
                writer.close()
                continue
            with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
                return await self._exchange(reader, writer, path, body)  # else closed while the request was on its way
        self.opened += 1
        return await self._exchange(*await asyncio.open_connection("127.0.0.1", self.port), path, body)

    async def _exchange(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, path: str, body: bytes
    ) -> tuple[int, bytes]:
        try:
            head = f"POST {path} HTTP/1.1\r\n{self.head}Content-Length: {len(body)}\r\n\r\n"
            writer.write(head.encode() + body)
            lines = (await reader.readuntil(b"\r\n\r\n")).lower()
            status = int(lines[9:12])
            at = lines.find(b"content-length:")
            length = int(lines[at + 15 : lines.find(b"\r\n", at)]) if at >= 0 else 0
            content = await reader.readexactly(length) if length else b""
        except BaseException:
            writer.close()
            raise
        if b"connection: close" in lines:
            writer.close()
        else:
            self.idle.append((reader, writer))
        return status, content


def arrivals(spec: Spec, rate: float) -> Iterator[float]:
    """Seconds after the start at which requests are due."""
    coins = random.Random(f"arrivals {spec.seed}")
    at = 0.0
    while True:
        at += coins.expovariate(rate) if spec.poisson else 1.0 / rate
        if at > spec.seconds:
            return
        yield at


async def paced(spec: Spec, rate: float, send: Callable[[int, float, float], Awaitable[None]]) -> None:
    """Call `send` with number, due time and start for every arrival, without waiting for answers."""
    begun = time.perf_counter()
    running: set[asyncio.Task[None]] = set()
    for number, due in enumerate(arrivals(spec, rate)):
        early = begun + due - time.perf_counter()
        if early > 0:
            await asyncio.sleep(early)
        elif number % 20 == 0:
            await asyncio.sleep(0)  # behind time: answers must still be read
        task = asyncio.ensure_future(send(number, due, begun))
        running.add(task)
        task.add_done_callback(running.discard)
    while running:
        await asyncio.wait(running)


async def recommend(spec: Spec, connections: Connections) -> dict[str, Kind]:
    """Requests for slates at a rate, and feedback on some of them."""
    requests = Requests(spec.items, spec.users, spec.eligible, spec.seed)
    bodies, people = requests.bodies(), [each["user"] for each in requests.arguments()]
    base = f"/v1/recommenders/{spec.recommender}"
    slates, clicks = Kind(), Kind()
    coins = random.Random(f"clicks {spec.seed}")
    run = f"{spec.seed}-{time.time_ns():x}"

    async def send(number: int, due: float, begun: float) -> None:
        body = with_id(bodies[number % len(bodies)], f"{run}-{number}")
        status, content = await connections.post(f"{base}/recommendations", body)
        slates.note(due, time.perf_counter() - begun - due, status)
        if status != 200 or coins.random() >= spec.feedback:
            return
        answer = json.loads(content)
        values = {
            slot["item"]: 1.0 for slot in answer["slate"] if clicked(people[number % len(people)], slot["item"], coins)
        }
        told = {"feedback_id": f"f{run}-{number}", "decision_id": answer["decision_id"], "items": values}
        asked = time.perf_counter()
        status, _ = await connections.post(f"{base}/feedback", json.dumps(told).encode())
        clicks.note(asked - begun, time.perf_counter() - asked, status)

    await paced(spec, spec.rate, send)
    return {"recommendations": slates, "feedback": clicks}


async def feedback(spec: Spec, connections: Connections) -> dict[str, Kind]:
    """Feedback on known decisions, each once, in batches at a rate of single ones."""
    run = f"{spec.seed}-{time.time_ns():x}"
    messages = [
        {"feedback_id": f"f{run}-{at}", "decision_id": id, "items": {item: float(at % 20 == 0)}}
        for at, (id, item) in enumerate(spec.decisions)
    ]
    parts = [messages[at : at + spec.batch] for at in range(0, len(messages), spec.batch)]
    bodies = [json.dumps({"feedback": part}, separators=(",", ":")).encode() for part in parts]
    kind = Kind()

    async def send(number: int, due: float, begun: float) -> None:
        if number >= len(bodies):
            return
        status, content = await connections.post(f"/v1/recommenders/{spec.recommender}/feedback:batch", bodies[number])
        refused = status == 200 and b'"problem"' in content
        kind.note(due, time.perf_counter() - begun - due, 422 if refused else status)

    await paced(spec, spec.rate / spec.batch, send)
    return {"feedback batches": kind}


def figures(kind: Kind) -> dict[str, Any]:
    """Counts by status, and milliseconds of the answers that were no refusals, in all and by second."""
    done = sorted(took for took, status in zip(kind.took, kind.status, strict=True) if 200 <= status < 300)
    by_second: dict[int, list[float]] = {}
    for due, took, status in zip(kind.due, kind.took, kind.status, strict=True):
        if 200 <= status < 300:
            by_second.setdefault(int(due), []).append(took)
    return {
        "sent": len(kind.status),
        "statuses": {str(status): count for status, count in sorted(Counter(kind.status).items())},
        **{f"p{percent}_ms": at_percent(done, percent) for percent in (50, 90, 99)},
        "p99.9_ms": at_percent(done, 99.9),
        "max_ms": round(1e3 * done[-1], 2) if done else None,
        "p99_ms_by_second": {second: at_percent(sorted(each), 99) for second, each in sorted(by_second.items())},
        "answered_by_second": {second: len(each) for second, each in sorted(by_second.items())},
    }


def at_percent(ordered: list[float], percent: float) -> float | None:
    """Milliseconds below which so many percent are: the nearest rank."""
    if not ordered:
        return None
    rank = min(len(ordered) - 1, max(0, -(-len(ordered) * percent // 100) - 1))
    return round(1e3 * ordered[int(rank)], 2)


async def load(spec: Spec) -> dict[str, Any]:
    """Send it all; the figures by kind of request."""
    connections = Connections(spec.port, spec.key)
    kinds = await (feedback(spec, connections) if spec.decisions else recommend(spec, connections))
    told = asdict(spec) | {"decisions": len(spec.decisions), "key": spec.key is not None}
    return {"spec": told, "connections": connections.opened, **{name: figures(kind) for name, kind in kinds.items()}}


def main() -> None:
    """Read a specification from stdin, write figures to stdout."""
    spec = Spec(**json.load(sys.stdin))
    with contextlib.suppress(ImportError):
        import uvloop

        asyncio.set_event_loop_policy(uvloop.EventLoopPolicy())
    json.dump(asyncio.run(load(spec)), sys.stdout)


if __name__ == "__main__":
    main()
