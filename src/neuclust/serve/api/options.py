"""The settings of a service."""

from dataclasses import dataclass
from typing import Literal

from neuclust.configuration import NON_NEGATIVE, POSITIVE, checked


@dataclass(frozen=True, slots=True)
@checked(port=(0, 65_535), rate=NON_NEGATIVE, longest_wait=POSITIVE)
class ServeOptions:
    """Where a service keeps its data and where it listens.

    `role`: all (on SQLite: the API and its learner), api or learner (on PostgreSQL, one process each). `rate`: requests
    per second of one client, 0: no limit. `longest_wait`: seconds a request for a slate may wait for those before it;
    beyond that it is turned away.
    """

    db: str = "sqlite:neuclust.db"
    host: str = "127.0.0.1"
    port: int = 8000
    role: Literal["all", "api", "learner"] = "all"
    rate: float = 0.0
    longest_wait: float = 0.25
    log_level: str = "info"
