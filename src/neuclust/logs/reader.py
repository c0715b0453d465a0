"""Reads logs as events: one pass that checks every row, then decisions as often as they are asked for.

Other formats are turned into the same events (`checked_log`), so that all logs are checked and joined alike.
"""

import warnings
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from hashlib import blake2b
from itertools import islice
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from neuclust.errors import DataError, LogWarning, brief, one_of
from neuclust.logs import checks
from neuclust.logs.decisions import LoggedDecision
from neuclust.logs.events import EVENTS, RunStart
from neuclust.logs.files import Row, check_suffix, rows, unit
from neuclust.logs.rounds import Heard, RunReader, heard
from neuclust.logs.runs import Runs

OnBad = Callable[[str], None]
Source = Callable[[], Iterable[Row]]
Key = tuple[str, str]  # run and decision id


@dataclass(frozen=True, slots=True)
class Log(Runs):
    """A log that was checked: its runs, and its decisions in the order of the file with all later feedback."""

    path: Path
    runs: Mapping[str, RunStart]
    skipped: int = 0  # bad rows that were passed over
    _source: Source = field(default=tuple, repr=False)
    _rows: int = 0  # events that were there when it was checked
    _bad: frozenset[int] = frozenset()  # their places among them
    _later: Mapping[Key, list[Heard]] = field(default_factory=dict, repr=False)

    def decisions(self) -> Iterator[LoggedDecision]:
        """Every decision, one in memory at a time; the source is read anew by every call."""
        readers: dict[str, RunReader] = {}
        for place, row in enumerate(islice(self._source(), self._rows)):
            event = row.event
            if event is None or place in self._bad or event["event"] == "feedback":
                continue
            if event["event"] == "start":
                readers[event["run"]] = RunReader(self.runs[event["run"]])
            elif event["event"] == "arm":
                readers[event["run"]].arm(event)
            else:
                yield readers[event["run"]].decision(event, self._later.get((event["run"], event["id"]), []))


def open_log(path: str | Path, *, skip_bad: int = 0, on_bad: OnBad | None = None) -> Log:
    """Check every row of a .jsonl or .parquet log and return it ready to be read.

    Up to `skip_bad` bad rows are passed over, counted and told to `on_bad`; one more raises a `DataError` that names
    file and line. Memory: 16 bytes per decision for its id, the catalogues, and the separate feedback events.
    """
    path = Path(path)
    check_suffix(path)
    log = checked_log(path, partial(rows, path), unit(path), skip_bad=skip_bad, on_bad=on_bad)
    if not log.runs:
        raise DataError(f"{path}: expected a log that begins with a start event, got none; is it a log?")
    return log


def checked_log(path: Path, source: Source, unit: str, *, skip_bad: int = 0, on_bad: OnBad | None = None) -> Log:
    """The log of a source of events that gives the same ones by every call; `unit` is what it counts."""
    check = _Check(path, source, unit, Tolerance(skip_bad, on_bad))
    for row in source():
        check.row(row)
    check.settle()
    runs = {name: reader.start for name, reader in check.readers.items()}
    later = {key: [each for _, _, each in parts] for key, parts in check.later.items()}
    return Log(path, MappingProxyType(runs), check.skipped, source, check.count, frozenset(check.bad), later)


@dataclass(frozen=True, slots=True)
class Tolerance:
    """How many bad rows may be passed over, and who is told of them."""

    skip_bad: int = 0
    on_bad: OnBad | None = None

    def meet(self, sentence: str, before: int) -> None:
        """Tell of one bad row more, or raise where none may be passed over any more."""
        if before >= self.skip_bad:
            raise DataError(sentence)
        if self.on_bad is not None:
            self.on_bad(sentence)


class _Check:
    """The first pass: every event is checked at its line; ids and feedback are collected."""

    def __init__(self, path: Path, source: Source, unit: str, tolerance: "Tolerance") -> None:
        self.path, self.source, self.unit, self.tolerance = path, source, unit, tolerance
        self.readers: dict[str, RunReader] = {}
        self.later: dict[Key, list[tuple[int, int, Heard]]] = {}  # line, decisions before it, content
        self.hashes = array("Q")  # of (run, id), one per decision in order
        self.bad: set[int] = set()  # places of events that are not to be read
        self.skipped = self.count = 0

    def refuse(self, number: int, sentence: str) -> None:
        """Count a bad row, or raise where no more may be passed over."""
        self.tolerance.meet(f"{self.path}, {self.unit} {number}: {sentence}", self.skipped)
        self.skipped += 1

    def row(self, row: Row) -> None:
        self.count += 1
        if row.event is None:
            if row.problem:
                self.refuse(row.number, row.problem)
            else:
                said = "the last line was not finished, as after a killed process; it is passed over"
                warnings.warn(f"{self.path}, line {row.number}: {said}", LogWarning, stacklevel=3)
            return
        try:
            self._event(row.number, row.event)
        except DataError as error:
            self.refuse(row.number, str(error))
            self.bad.add(self.count - 1)

    def _event(self, number: int, event: dict[str, Any]) -> None:
        kind = event.get("event")
        if kind not in EVENTS:
            raise DataError(f"event: {one_of(kind, EVENTS)}; repair or remove it")
        if kind == "start":
            self._start(event)
            return
        run = checks.text(event, "run")
        if run not in self.readers:
            raise DataError(f"expected an event of a run that was started, got run {brief(run)}; write its start first")
        if kind == "arm":
            self.readers[run].arm(event)
        elif kind == "feedback":
            key = run, checks.text(event, "decision")
            self.later.setdefault(key, []).append((number, len(self.hashes), heard(event)))
        else:
            self.readers[run].check(event)
            self.hashes.append(_hash((run, event["id"])))

    def _start(self, event: dict[str, Any]) -> None:
        start = checks.run_start(event)
        if start.run in self.readers:
            raise DataError(f"expected the run {brief(start.run)} to start once, got it twice; name one of them anew")
        self.readers[start.run] = RunReader(start)

    # --- what one line alone does not show --------------------------------------------------------------------

    def settle(self) -> None:
        """Refuse decisions whose id came before, and feedback that no earlier decision of its run fits."""
        ordered = np.sort(np.frombuffer(self.hashes, np.uint64))
        suspects = set(ordered[1:][ordered[1:] == ordered[:-1]].tolist())
        if not suspects and not self.later:
            return
        met: set[Key] = set()
        found: set[Key] = set()
        for order, (place, number, event) in enumerate(self._decisions()):
            key = event["run"], event["id"]
            if suspects and _hash(key) in suspects:
                if key in met:
                    said = f"expected every decision id of a run once, got {brief(key[1])} again"
                    self.refuse(number, f"{said}; number decisions anew or drop the row")
                    self.bad.add(place)
                met.add(key)
            if key in self.later and key not in found:
                found.add(key)
                self._fit(key, order, event["slate"])
        for key in self.later.keys() - found:
            self._orphans(key, self.later.pop(key))

    def _decisions(self) -> Iterator[tuple[int, int, dict[str, Any]]]:
        """Place, number and event of every decision that was found good."""
        for place, row in enumerate(islice(self.source(), self.count)):
            if row.event is not None and place not in self.bad and row.event["event"] == "decision":
                yield place, row.number, row.event

    def _fit(self, key: Key, order: int, slate: list[int]) -> None:
        """Keep the feedback that came after its decision and names arms of its slate."""
        kept = []
        for number, before, part in self.later[key]:
            strange = next((arm for arm in part.values if arm not in slate), None)
            if before <= order:
                self._orphans(key, [(number, before, part)])
            elif strange is not None:
                said = f"expected values of arms of the slate of decision {brief(key[1])}, got arm {strange}"
                self.refuse(number, f"{said}; correct the arm or the decision")
            elif part.shown is not None and len(part.shown) != len(slate):
                said = f"expected {len(slate)} entries of shown, one per slot, got {len(part.shown)}"
                self.refuse(number, f"{said}; give one for each")
            else:
                kept.append((number, before, part))
        self.later[key] = kept

    def _orphans(self, key: Key, parts: list[tuple[int, int, Heard]]) -> None:
        for number, _, _ in parts:
            said = f"expected feedback for an earlier decision of its run, got decision {brief(key[1])}"
            self.refuse(number, f"{said}, which is not there; write the decision first or drop the row")


def _hash(key: Key) -> int:
    """64 bits of a run and a decision id; equal ones are compared in full."""
    return int.from_bytes(blake2b("\0".join(key).encode(), digest_size=8).digest())
