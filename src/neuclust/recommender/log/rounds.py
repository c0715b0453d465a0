"""A recommender's log as logged decisions: the rounds its policy was given, how slates were drawn, what came back."""

import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from neuclust.errors import ConfigError, DataError, LogWarning, StateError, brief
from neuclust.logs.decisions import LoggedDecision
from neuclust.logs.events import RunStart
from neuclust.recommender.items.stock import Stock
from neuclust.recommender.log.history import History, HistoryReading, Past, event_lines, event_of, naming_line
from neuclust.recommender.log.offers import LoggedChoice
from neuclust.recommender.log.outcomes import outcome
from neuclust.recommender.log.refit import drafted
from neuclust.recommender.log.replay import Replay
from neuclust.recommender.log.starts import Runs, check_starts, features_of_log, settings_of_start
from neuclust.recommender.options import Settings
from neuclust.recommender.schema import Schema
from neuclust.recommender.tables.features import Features

OnBad = Callable[[str], None]


@dataclass(frozen=True)
class RecommenderLog:
    """The log of a recommender, checked: its runs, and its decisions in the order of the file.

    All decisions are encoded by one schema, drafted from the whole log as `refit` does. Slates of `fit_log`, whose
    offers are not known, empty slates, and forgotten ones of which nothing was learned are no decisions here.
    """

    path: Path
    runs: Mapping[str, RunStart]
    skipped: int  # bad lines that were passed over
    warmed: int  # slates of fit_log
    empty: int  # slates without items
    settings: Settings = field(repr=False)  # of the last start; the policy is not the logged one
    start: Mapping[str, Any] = field(repr=False)  # the event of the last start
    stock: Stock = field(repr=False)  # items and users at the end, not encoded
    schema: Schema = field(repr=False)
    history: History = field(repr=False)
    bad: frozenset[int] = field(repr=False)  # lines
    lines: int = field(repr=False)  # that were there when it was checked
    forgotten: frozenset[str] = field(repr=False, default=frozenset())  # decisions that were dropped while open

    @property
    def slate_size(self) -> int:
        """The longest slate there can be."""
        return self.settings.slate_size

    @property
    def dim(self) -> int:
        """The number of features that models read."""
        return self.schema.design.width

    @property
    def reward(self) -> str:
        """What a slate is worth: `sum`, `any`, `threshold:SHARE` or `function`."""
        return self.settings.reward.name

    def decisions(self) -> Iterator[LoggedDecision]:
        """Every decision, its round made when it is reached; the file is read anew by every call."""
        replay, runs = Replay(self.schema), Runs()
        for at, line in islice(event_lines(self.path), self.lines):
            if at in self.bad:
                continue
            event = event_of(line, self.path, at)
            with naming_line(self.path, at, event["event"], DataError):
                found = self._decision(event, replay, runs) if self._counts(event) else None
                replay.take(event)
                runs.take(event)
            if found is not None:
                yield found

    def _counts(self, event: Mapping[str, Any]) -> bool:
        if not _is_decision(event):
            return False
        id = str(event["id"])
        return id not in self.forgotten or self.history.decisions[id].rewards is not None

    def _decision(self, event: Mapping[str, Any], replay: Replay, runs: Runs) -> LoggedDecision:
        choice = LoggedChoice.of(event, replay.catalogue)
        past = self.history.decisions[str(event["id"])]
        came = outcome(past, self.settings.feedback, self.settings.reward)
        chances = choice.propensities
        return LoggedDecision(
            id=past.id, run=runs.run_of(event), round=choice.round(replay.catalogue, replay.users, self.schema),
            slate=np.array(choice.slate, np.int64),
            propensities=None if chances is None else np.array(chances, np.float64),
            design=choice.design, sizes=choice.sizes, rewards=came.rewards, slate_reward=came.slate_reward,
            shown=came.shown, time=past.time, user=past.who, version=runs.version_of(event),
        )  # fmt: skip


def logged_decisions(
    path: str | Path, *, features: Features | None = None, skip_bad: int = 0, on_bad: OnBad | None = None
) -> RecommenderLog:
    """Check every line of a recommender's log and return it ready to be read.

    `features` takes the place of those in the log. Up to `skip_bad` bad lines are passed over, counted and told to
    `on_bad`; one more raises a `DataError` that names file and line. Memory: the items, the users, and of every
    decision its slate and what came back.
    """
    if isinstance(skip_bad, bool) or not isinstance(skip_bad, int) or skip_bad < 0:
        raise ConfigError(f"expected a whole number from 0, got {brief(skip_bad)}", field="skip_bad")
    if features is not None and not isinstance(features, Features):
        raise ConfigError(f"expected Features, got {brief(features)}", field="features")
    check = _Check(Path(path), skip_bad, on_bad)
    try:
        for at, line in event_lines(check.path):
            check.line(at, line)
    except StateError as error:  # no such file
        raise DataError(str(error)) from None
    return check.log(features)


class _Check:
    """The first pass: every event is checked at its line, and what came back is collected."""

    def __init__(self, path: Path, skip_bad: int, on_bad: OnBad | None) -> None:
        self.path, self.skip_bad, self.on_bad = path, skip_bad, on_bad
        self.history, self.replay, self.runs = HistoryReading(), Replay(), Runs()
        self.bad: set[int] = set()
        self.forgotten: set[str] = set()
        self.lines = self.warmed = self.empty = 0

    def line(self, at: int, line: bytes) -> None:
        """Take in a line; the last one may be unfinished."""
        if not line.endswith(b"\n"):
            said = "the last line was not finished, as after a killed process; it is passed over"
            warnings.warn(f"{self.path}, line {at}: {said}", LogWarning, stacklevel=3)
            return
        self.lines = at
        try:
            event = event_of(line, self.path, at)
            with naming_line(self.path, at, event["event"]):
                self._event(event)
        except StateError as error:
            self._refuse(at, str(error))

    def _refuse(self, at: int, said: str) -> None:
        if not self.runs.starts and not self.history.history.decisions:
            raise DataError(f"{said}; is it the log of a recommender?")
        if len(self.bad) >= self.skip_bad:
            raise DataError(said)
        self.bad.add(at)
        if self.on_bad is not None:
            self.on_bad(said)

    def _event(self, event: dict[str, Any]) -> None:
        if event["event"] == "decision":
            self._decision(event)
        elif event["event"] == "forgotten":
            self.forgotten.update(map(str, event["ids"]))
        self.history.take(event)
        self.replay.take(event)
        self.runs.take(event)

    def _decision(self, event: Mapping[str, Any]) -> None:
        if str(event["id"]) in self.history.history.decisions:
            raise DataError(f"expected every decision id once, got {event['id']!r:.100} again")
        self.runs.run_of(event)
        self.warmed += "source" in event
        self.empty += not event["items"]
        if _is_decision(event):
            LoggedChoice.of(event, self.replay.catalogue)

    def log(self, features: Features | None) -> RecommenderLog:
        """The log with its schema, after the last line."""
        if not self.runs.starts:
            raise DataError(f"{self.path}: expected a log that begins with a start event, got none; is it a log?")
        check_starts(self.runs.starts)
        start = list(self.runs.starts.values())[-1]
        settings = settings_of_start(start, features_of_log(self.runs.features) if features is None else features)
        stock, history = Stock(settings, self.replay.catalogue, self.replay.users), self.history.history
        schema = drafted(settings.features, stock, _shown(history), version=1)
        return RecommenderLog(
            path=self.path, runs=self.runs.told(schema.design.width), skipped=len(self.bad), warmed=self.warmed,
            empty=self.empty, settings=settings, start=start, stock=stock, schema=schema, history=history,
            bad=frozenset(self.bad), lines=self.lines, forgotten=frozenset(self.forgotten),
        )  # fmt: skip


def _is_decision(event: Mapping[str, Any]) -> bool:
    """Whether it is a slate with items whose offer is known."""
    return event["event"] == "decision" and "source" not in event and bool(event["items"])


def _shown(history: History) -> list[Past]:
    return [past for past in history.decisions.values() if past.items]
