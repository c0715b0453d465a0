"""The log of a recommender: one JSON object per line for everything that was stocked, decided, heard and learned.

The events, by the entry `event`:
- `start`, the first of every run: `format`, `run`, its name, `item_id`, `user_id`, `slate_size`, `settings`; all items
  and users follow;
- `items`, `users`: one that was added or changed, `id` and all raw `values`, also those that are not learned;
- `removed`: `ids` of items; `users-removed`: `ids` of users;
- `forgotten`: `ids` of open decisions that are dropped, of which nothing is learned any more;
- `decision`: `id`, `run`, `time`, the request as it came (`user`, `user_features`, `context`, `eligible` (null: all
  items that are there), `exclude`, `required`, `at_most`, `k`, `request_id`), the slate in order (`items`), per slot
  `propensities`, `explored`, `means` and `bonuses`, and `sizes`, |A(S)| before each slot; the `design` of the draw
  (`kind`; sequential: `base` and `pool` as item ids, `share`, `anywhere`; one-coin: `base`, `share`), `policy`,
  `version` of the schema, `model`, the lessons learned before it, `t`, `draw`; slates of `fit_log` have a `source` and
  their `source_id` in the place of what is not known of them;
- `feedback`: `decision`, `time`, `items` as pairs of id and value in the user's units, `slate`, `shown`, `partial`,
  `feedback_id` where given, and the `status`: learned, open, duplicate or late;
- `learned`: `decision`, `rewards` per slot and `slate` on the policy's scale, whether it `revised` an earlier lesson;
- `refit`: `version` and `features`.

Logs of earlier versions have no `run`, `model` and `sizes`, and of a `design` only its kind and settings.

Ids keep their type, dates are {"date": …} or {"datetime": …}, lists and vectors are lists, missing values and NaN null.
"""

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from numbers import Integral
from pathlib import Path
from typing import Any, Protocol

from neuclust.errors import ConfigError, brief
from neuclust.recommender.answers import DecisionIds
from neuclust.recommender.choices import Choice
from neuclust.recommender.drawn import UNKNOWN, Drawn
from neuclust.recommender.feedback.decisions import Lesson
from neuclust.recommender.items.rows import Rows
from neuclust.recommender.items.stock import Stock
from neuclust.recommender.log.log_file import LogFile
from neuclust.recommender.options import Settings
from neuclust.recommender.requests import Request
from neuclust.recommender.tables.values import Id, value_to_json

FORMAT = 1  # entries that were added since are optional to readers
SAME = ("item_id", "user_id", "slate_size")  # settings that all runs of one log share
START = b'{"event":"start",'  # how every log begins


class Logged(Protocol):
    """What the start of a log tells of a recommender."""

    @property
    def settings(self) -> Settings: ...

    @property
    def stock(self) -> Stock: ...

    @property
    def ids(self) -> DecisionIds: ...


class EventLog:
    """Appends events to a file; without one it does nothing."""

    def __init__(self, file: LogFile | None = None) -> None:
        self._file = file
        self._run = ""

    @classmethod
    def opened(cls, given: Any) -> "EventLog":
        """The log at a path, made or continued; None: no log."""
        if given is None:
            return cls()
        if not isinstance(given, str | Path) or not str(given):
            raise ConfigError(f"expected a path, got {brief(given)}; write log='shop.jsonl'", field="log")
        if "\0" in str(given):
            raise ConfigError(f"expected a path, got {given!r:.100}, which has a zero character", field="log")
        return cls(LogFile.opened(Path(given).absolute()))

    @property
    def path(self) -> Path | None:
        return None if self._file is None else self._file.path

    def ready(self) -> None:
        """Refuse to go on where earlier events could not be written; every call that logs begins with it."""
        if self._file is not None:
            self._file.ready()

    def close(self) -> None:
        """End writing, so that another process may."""
        if self._file is not None:
            self._file.close()

    # --- events -----------------------------------------------------------------------------------------------

    def started(self, shop: Logged) -> None:
        """A recommender that was made or loaded, with its items and users; a file of another shop is refused."""
        if self._file is None:
            return
        file, settings = self._file, shop.settings
        try:
            _check_same(file, settings)
            file.repair()
            self._run = shop.ids.token
            self._append([start_event(settings, self._run)])
            self.stocked("items", shop.stock.catalogue.ids(), shop.stock.catalogue.rows)
            self.stocked("users", shop.stock.users.ids(), shop.stock.users.rows)
            if problem := file.problem():
                raise ConfigError(problem, field="log")
        except ConfigError:
            file.close()
            raise

    def stocked(self, table: str, ids: Sequence[Id], rows: Rows) -> None:
        """Items or users that were added or changed, with all their values."""
        if self._file is not None and ids:
            self._append(stocked_event(table, id, rows) for id in ids)

    def removed(self, ids: Iterable[Id], event: str = "removed") -> None:
        """Items that were taken out; or users (`users-removed`), or open decisions that were dropped (`forgotten`)."""
        self._write(event, ids=list(ids))

    def decided(self, choice: Choice, request: Request) -> None:
        """A decision, with the request as it came."""
        if self._file is None:
            return
        self._append([decided_event(choice, request, self._run)])

    def heard(self, id: str, items: Mapping[Id, Any], details: Mapping[str, Any], status: str, now: float) -> None:
        """Feedback as it came, and what became of it."""
        if self._file is None:
            return
        said = {name: value for name, value in details.items() if value is not None}
        if "shown" in said and not isinstance(said["shown"], Integral):
            said["shown"] = list(said["shown"])
        values = [[item, float(value)] for item, value in items.items()]
        self._write("feedback", decision=id, time=now, items=values, status=status, **said)

    def learned(self, lesson: Lesson) -> None:
        """What was learned of a decision, on the policy's scale; null is unseen."""
        if self._file is not None:
            self._append([learned_event(lesson)])

    def warmed(self, past: Iterable[tuple[Lesson, Mapping[str, Any]]]) -> None:
        """Decisions of another system that were learned, each with what is known of its request."""
        if self._file is not None:
            self._append(
                each for lesson, said in past for each in (warmed_event(lesson, said, self._run), learned_event(lesson))
            )

    def refitted(self, version: int, settings: Settings) -> None:
        """A new version of the schema."""
        self._write("refit", version=version, features=settings.features.to_json())

    def _write(self, event: str, **entries: Any) -> None:
        if self._file is not None:
            self._append([{"event": event, **entries}])

    def _append(self, events: Iterable[Mapping[str, Any]]) -> None:
        if self._file is not None:
            self._file.append("".join(f"{_ENCODER.encode(event)}\n" for event in events).encode())


def _check_same(file: LogFile, settings: Settings) -> None:
    """Refuse a file that is no log, or the log of another shop."""
    head = file.head()
    unfinished = not head.endswith(b"\n")
    if unfinished and (head.startswith(START) or START.startswith(head)):  # new, or killed while it was begun
        return
    try:
        found = json.loads(head)
        known = found["event"] == "start" and type(found["format"]) is int
    except (ValueError, KeyError, TypeError, RecursionError):
        known = False
    if not known or unfinished:
        got = f"got {file.path}, which begins with {head[:60]!r}"
        raise ConfigError(f"expected the log of a recommender or a new file, {got}; name another file", field="log")
    if found["format"] > FORMAT:
        got = f"got {file.path} of format {found['format']}; name another file or update neuclust"
        raise ConfigError(f"expected a log of format {FORMAT}, {got}", field="log")
    for name in SAME:
        if found.get(name) != getattr(settings, name):
            got = f"got {file.path} of a shop with {name}={found.get(name)!r:.100}"
            wanted = f"expected the log of a shop with {name}={getattr(settings, name)!r:.100}"
            raise ConfigError(f"{wanted}, {got}; name another file", field="log")


# --- parts of events ------------------------------------------------------------------------------------------


def start_event(settings: Settings, run: str) -> dict[str, Any]:
    """The first event of a run."""
    said = {name: getattr(settings, name) for name in SAME}
    return {"event": "start", "format": FORMAT, "run": run, **said, "settings": _settings(settings)}


def stocked_event(table: str, id: Id, rows: Rows) -> dict[str, Any]:
    """An item or a user with all values."""
    return {"event": table, "id": id, "values": _values(rows.raw(rows.codes[id]))}


def decided_event(choice: Choice, request: Request, run: str) -> dict[str, Any]:
    """A decision, with the request as it came."""
    shown, design = choice.shown, choice.design or Drawn(UNKNOWN)
    means, bonuses = choice.logged()
    return {
        "event": "decision", "id": choice.id, "run": run, "time": choice.time, "user": request.user, **_asked(request),
        "items": choice.items, "propensities": choice.propensities, "design": design.to_json(), "sizes": design.sizes,
        "explored": choice.explored, "means": _numbers(means), "bonuses": _numbers(bonuses),
        "policy": choice.policy, "version": choice.version, "model": choice.model,
        "t": 0 if shown is None else shown.t, "draw": 0 if shown is None else shown.draw,
    }  # fmt: skip


def _settings(settings: Settings) -> dict[str, Any]:
    """All but functions, of which the names are kept."""
    policy = settings.policy
    explores = None if policy.exploration is None else asdict(policy.exploration)
    return {
        "policy": policy.name, "settings": dict(policy.settings or {}), "seed": policy.seed, "exploration": explores,
        "features": settings.features.to_json(), "feedback": asdict(settings.feedback), "reward": settings.reward.name,
    }  # fmt: skip


def _asked(request: Request) -> dict[str, Any]:
    return {
        "request_id": request.request_id, "user_features": _values(request.user_features),
        "context": _values(request.context), "eligible": request.eligible, "exclude": request.exclude,
        "required": request.required, "at_most": request.at_most, "k": request.k,
    }  # fmt: skip


def learned_event(lesson: Lesson) -> dict[str, Any]:
    """A lesson as the log has it; null is unseen."""
    return {
        "event": "learned", "decision": lesson.decision.id, "rewards": _numbers(lesson.rewards.tolist()),
        "slate": _finite(lesson.slate_reward), "revised": lesson.before is not None,
    }  # fmt: skip


def warmed_event(lesson: Lesson, said: Mapping[str, Any], run: str) -> dict[str, Any]:
    """A decision of another system that was learned."""
    decision, shown = lesson.decision, lesson.decision.payload
    context = _values(said.get("context", {}))
    return {
        "event": "decision", "id": decision.id, "run": run, "time": decision.time, "user": said.get("user"),
        "context": context, "items": decision.items, "propensities": None, "design": {"kind": UNKNOWN},
        "version": shown.version, "t": shown.t, "draw": shown.draw, "source": "fit_log",
        "source_id": said.get("source_id"),
    }  # fmt: skip


def _values(row: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value_to_json(value) for name, value in row.items()}


def _numbers(values: Iterable[float]) -> list[float | None]:
    return [_finite(value) for value in values]


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _plain(value: Any) -> Any:
    """Numbers of other libraries as Python's."""
    if hasattr(value, "item"):
        return value.item()
    raise TypeError(f"no JSON for a {type(value).__name__}")


_ENCODER = json.JSONEncoder(default=_plain, separators=(",", ":"))
