"""Writes a log: JSON lines as they happen, or a Parquet file that is made of them when the writer is closed."""

import json
import os
import threading
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypedDict, Unpack

from neuclust.core import Feedback, Round, Slate
from neuclust.errors import ConfigError, DataError, brief, not_written
from neuclust.logs.catalogue import WrittenArms
from neuclust.logs.events import (
    Event,
    RunStart,
    arm_event,
    choice_entries,
    feedback_entries,
    feedback_event,
    flags,
    start_event,
)
from neuclust.logs.files import PARQUET, SPOOL, check_suffix, log_runs, repair, to_parquet

_MODE = os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_BINARY", 0)
_ENCODER = json.JSONEncoder(separators=(",", ":"), allow_nan=False)


class Details(TypedDict, total=False):
    """What a decision may be told besides: its id (else a running number), seconds, the user, the model's version, and
    which slots were really shown."""

    id: str
    time: float
    user: str | int
    version: str
    shown: Iterable[bool]


class LateDetails(TypedDict, total=False):
    """What late feedback may be told besides: `partial` says that more will come."""

    slate_reward: float
    time: float
    shown: Iterable[bool]
    partial: bool


class LogWriter:
    """Appends the events of runs to a file, one run after the other, whole rows only.

    A .jsonl file that is there is continued; each event is handed to the system at once, so that it outlives a killed
    process. A .parquet file must be new; until `close` its rows are in NAME.parquet.jsonl, which is itself a log.
    Several threads may write.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        check_suffix(self.path)
        self._columns = self.path.suffix == PARQUET
        if self._columns and self.path.exists():
            said = f"expected a new file, got {self.path}, and Parquet files cannot be continued"
            raise ConfigError(f"{said}; name another one or a .jsonl file", field="log")
        self._lines = self.path.with_name(self.path.name + SPOOL) if self._columns else self.path
        self._lock = threading.Lock()
        self.runs: set[str] = set()  # that the file holds
        self._start: RunStart | None = None
        self._arms, self._count = WrittenArms(), 0
        self._file = self._opened()

    def _opened(self) -> int:
        try:
            if self._lines.exists():
                repair(self._lines)
                self.runs |= log_runs(self._lines)
            return os.open(self._lines, _MODE, 0o644)
        except OSError as error:
            raise ConfigError(not_written(self.path, error, kind="log"), field="log") from None

    # --- events -----------------------------------------------------------------------------------------------

    def start(self, start: RunStart) -> None:
        """Begin a run, to which all decisions and feedback belong until the next one begins."""
        if start.run in self.runs:
            said = f"expected a run that is not in {self.path} yet, got {brief(start.run)}"
            raise ConfigError(f"{said}; name the run or the file otherwise", field="log")
        with self._lock:
            self._write([start_event(start)])
            self.runs.add(start.run)
            self._start, self._arms, self._count = start, WrittenArms(), 0

    def decided(self, round: Round, slate: Slate, feedback: Feedback | None = None, **details: Unpack[Details]) -> str:
        """Write a decision, with its feedback where that came at once; its id, by which later feedback is told."""
        with self._lock:
            run = self._run()
            self._count += 1
            id = str(details.get("id", self._count))
            events = [arm_event(run, arm, profile) for arm, profile in self._arms.new(round)]
            user = details.get("user")
            events.append({
                "event": "decision", "run": run, "id": id, "time": details.get("time"),
                "user": str(user) if self._columns and user is not None else user,
                **choice_entries(round, slate, self._arms.whole),
                "version": details.get("version"), **feedback_entries(feedback, details.get("shown")),
            })  # fmt: skip
            self._write(events)
        return id

    def heard(self, decision: str, values: Mapping[int, float], **details: Unpack[LateDetails]) -> None:
        """Write feedback for an earlier decision of this run: values by arm id, NaN where unseen."""
        with self._lock:
            event = feedback_event(self._run(), decision, values, details.get("slate_reward"))
            event |= {"time": details.get("time"), "shown": flags(details.get("shown"))}
            self._write([event | {"partial": details.get("partial", False)}])

    def _run(self) -> str:
        if self._start is None:
            raise ConfigError("expected a run that was begun, got none; call `start` first", field="log")
        return self._start.run

    def _write(self, events: Iterable[Event]) -> None:
        """All events in one piece."""
        if self._file < 0:
            raise ConfigError(f"expected an open log, got {self.path}, which was closed; open another", field="log")
        try:
            rest = memoryview("".join(f"{_ENCODER.encode(event)}\n" for event in events).encode())
        except (TypeError, ValueError) as error:  # nothing of these events is written
            self._arms = WrittenArms()
            said = f"{self.path}: expected finite numbers and plain texts in a log, got others ({error!s:.100})"
            raise DataError(f"{said}; correct the call, which wrote nothing") from None
        try:
            while rest:
                rest = rest[os.write(self._file, rest) :]
        except OSError as error:
            raise ConfigError(not_written(self.path, error, kind="log"), field="log") from None

    # --- the end ----------------------------------------------------------------------------------------------

    def close(self) -> None:
        """End writing; a .parquet file is made here, whole or not at all."""
        with self._lock:
            if self._file < 0:
                return
            os.close(self._file)
            self._file = -1
            if self._columns:
                to_parquet(self._lines, self.path)
                self._lines.unlink()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: Any, trace: TracebackType | None) -> None:
        self.close()
