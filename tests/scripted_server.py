"""A real HTTP server that answers by a script and keeps what it was sent, for what a service does rarely."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

DROP = None  # close the connection instead of an answer


@dataclass(frozen=True)
class Scripted:
    """One answer."""

    status: int
    body: Any = None
    headers: dict[str, str] = field(default_factory=dict)


@dataclass
class Seen:
    """What came in, in order, as (method, path with query, headers, body)."""

    address: str
    calls: list[tuple[str, str, dict[str, str], bytes]] = field(default_factory=list)

    def bodies(self) -> list[Any]:
        return [json.loads(body) for *_, body in self.calls]


@contextmanager
def scripted(answers: Sequence[Scripted | None]) -> Iterator[Seen]:
    """A server on a port of its own that gives these answers one after another, the last one for ever."""
    seen = Seen("")
    lock = threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            with lock:
                answer = answers[min(len(seen.calls), len(answers) - 1)]
                seen.calls.append((self.command, self.path, dict(self.headers), body))
            if answer is None:
                self.close_connection = True
                self.connection.shutdown(socket.SHUT_RDWR)
                return
            content = answer.body if isinstance(answer.body, bytes) else json.dumps(answer.body).encode()
            self.send_response(answer.status)
            for name, value in answer.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_PUT = do_POST = do_PATCH = do_DELETE = _answer

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    seen.address = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        yield seen
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
