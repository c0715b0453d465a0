"""The log of a recommender: one JSON object per line for everything that was stocked, decided, heard and learned."""

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import IO, Any, Protocol

from neuclust.errors import ConfigError, not_written
from neuclust.recommender.choices import Choice
from neuclust.recommender.decisions import Lesson
from neuclust.recommender.requests import Request
from neuclust.recommender.rows import Rows
from neuclust.recommender.values import Id

FORMAT = 1


class Logged(Protocol):
    """What the first line of a log tells of a recommender."""

    @property
    def settings(self) -> Any: ...

    @property
    def stock(self) -> Any: ...


class EventLog:
    """Appends events to a file; without one it does nothing."""

    def __init__(self, file: IO[str] | None = None, path: Path | None = None) -> None:
        self.path, self._file = path, file

    @classmethod
    def opened(cls, given: Any) -> "EventLog":
        """The log at a path, made or continued; None: no log."""
        if given is None:
            return cls()
        if not isinstance(given, str | Path):
            raise ConfigError(f"expected a path, got {given!r:.100}; write log='shop.jsonl'", field="log")
        path = Path(given)
        try:
            return cls(open(path, "a", encoding="utf-8"), path)
        except OSError as error:
            raise ConfigError(not_written(path, error, kind="log"), field="log") from None

    def started(self, shop: Logged) -> None:
        """A new recommender, with its items and users."""
        if self._file is None:
            return
        settings = shop.settings
        said = {"item_id": settings.item_id, "user_id": settings.user_id, "slate_size": settings.slate_size}
        self._write("start", format=FORMAT, policy=settings.policy.name, seed=settings.policy.seed, **said)
        self.stocked("items", shop.stock.catalogue.ids(), shop.stock.catalogue.rows)
        self.stocked("users", shop.stock.users.ids(), shop.stock.users.rows)

    def stocked(self, table: str, ids: Sequence[Id], rows: Rows) -> None:
        """Items or users that were added or changed, with all their values."""
        if self._file is None:
            return
        for id in ids:
            self._write(table, id=id, values=rows.raw(rows.codes[id]))

    def removed(self, ids: Iterable[Id]) -> None:
        """Items that were taken out."""
        self._write("removed", ids=list(ids))

    def decided(self, choice: Choice, request: Request) -> None:
        """A decision, with the request as it came."""
        if self._file is None:
            return
        self._write(
            "decision", id=choice.id, time=choice.time, request_id=request.request_id, user=request.user,
            user_features=request.user_features, context=request.context,
            eligible=None if request.eligible is None else list(request.eligible), exclude=list(request.exclude),
            required=list(request.required), at_most=request.at_most, k=request.k, items=choice.items,
            propensities=choice.propensities, means=choice.means, bonuses=choice.bonuses, explored=choice.explored,
            policy=choice.policy, version=choice.version, t=0 if choice.shown is None else choice.shown.t,
            draw=0 if choice.shown is None else choice.shown.draw,
        )  # fmt: skip

    def heard(self, id: str, items: Mapping[Id, Any], details: Mapping[str, Any], status: str, now: float) -> None:
        """Feedback as it came, and what became of it."""
        if self._file is None:
            return
        said = {name: value for name, value in details.items() if value is not None}
        if "shown" in said and not isinstance(said["shown"], int):
            said["shown"] = list(said["shown"])
        values = [[item, float(value)] for item, value in items.items()]
        self._write("feedback", decision=id, time=now, items=values, status=status, **said)

    def learned(self, lesson: Lesson) -> None:
        """What was learned of a decision, on the policy's scale; null is unseen."""
        if self._file is None:
            return
        rewards = [None if math.isnan(reward) else reward for reward in lesson.rewards.tolist()]
        slate = None if math.isnan(lesson.slate_reward) else lesson.slate_reward
        self._write(
            "learned", decision=lesson.decision.id, rewards=rewards, slate=slate, revised=lesson.before is not None
        )

    def _write(self, event: str, **entries: Any) -> None:
        if self._file is None:
            return
        self._file.write(json.dumps({"event": event, **entries}, default=_plain, separators=(",", ":")) + "\n")
        self._file.flush()


def _plain(value: Any) -> Any:
    """Dates as ISO text, numbers of other libraries as Python's."""
    if isinstance(value, date):
        return {"date": value.isoformat()}
    if hasattr(value, "item"):
        return value.item()
    raise TypeError(f"no JSON for a {type(value).__name__}")
