"""What a person sees: results on stdout, progress on stderr, plain text wherever nobody looks on."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from time import monotonic
from typing import Protocol

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from neuclust.analysis.estimates import number
from neuclust.analysis.summary import summaries
from neuclust.experiment.records import RunRecord
from neuclust.experiment.run import Tally
from neuclust.report.results import rich_table, text_table

PIPE_WIDTH = 200  # no table is cut where there is no window
ROOM_FOR_A_BAR = 120
REFRESH_SECONDS = 0.1


def make_console(*, stderr: bool = False) -> Console:
    """A console without any escape code where its stream is no terminal or NO_COLOR is set."""
    stream = sys.stderr if stderr else sys.stdout
    plain = bool(os.environ.get("NO_COLOR")) or not stream.isatty()
    width = None if stream.isatty() or os.environ.get("COLUMNS") else PIPE_WIDTH
    if plain:
        return Console(stderr=stderr, color_system=None, highlight=False, width=width)
    return Console(stderr=stderr, highlight=False)


def print_tables(records: Sequence[RunRecord]) -> None:
    """The final table of each problem, with its notes."""
    console = make_console()
    if not console.is_terminal:
        sys.stdout.write(text_table(records))
        return
    for summary in summaries(records):
        console.print(rich_table(summary, console.width))
        for note in summary.notes:
            console.print(note, markup=False)


class Reporter(Protocol):
    """Told of every run: when it begins, after each round, and when it ends."""

    def begin(self, title: str, seed: int, rounds: int) -> None: ...

    def on_round(self, tally: Tally) -> None: ...

    def finish(self, record: RunRecord) -> None: ...

    def say(self, text: str) -> None: ...

    def close(self) -> None: ...


def make_reporter(runs: int, quiet: bool) -> Reporter:
    """Live on a terminal, one line a finished run elsewhere, only what must be said when quiet."""
    console = make_console(stderr=True)
    if quiet or not console.is_terminal or console.is_dumb_terminal:
        return LineReporter(console, quiet)
    return LiveReporter(console, runs)


class LineReporter:
    """One plain line a finished run."""

    def __init__(self, console: Console, quiet: bool) -> None:
        self._console, self._quiet = console, quiet

    def begin(self, title: str, seed: int, rounds: int) -> None:
        """Nothing to say before a run is over."""

    def on_round(self, tally: Tally) -> None:
        """Nothing to say before a run is over."""

    def finish(self, record: RunRecord) -> None:
        if not self._quiet:
            self.say(finished_line(record))

    def say(self, text: str) -> None:
        self._console.print(text, markup=False, soft_wrap=True)

    def close(self) -> None:
        """Nothing is held."""


class LiveReporter:
    """A line that moves: policy, seed, round, regret, reward, rounds a second, time left."""

    def __init__(self, console: Console, runs: int) -> None:
        self._runs, self._begun = runs, 0
        self._shown = self._started = 0.0
        self._task: TaskID | None = None
        bar = [BarColumn(bar_width=20)] if console.width >= ROOM_FOR_A_BAR else []
        self._progress = Progress(
            TextColumn("{task.description}"),
            *bar,
            TextColumn("round {task.completed:.0f}/{task.total:.0f}"),
            TextColumn("{task.fields[state]}"),
            TimeRemainingColumn(compact=True),
            TextColumn("left"),
            console=console,
            transient=True,
        )
        self._progress.start()

    def begin(self, title: str, seed: int, rounds: int) -> None:
        self._begun += 1
        self._started = monotonic()
        name = f"{self._begun}/{self._runs} {title}, seed {seed}".replace("[", "\\[")
        self._task = self._progress.add_task(name, total=rounds, state="")

    def on_round(self, tally: Tally) -> None:
        now = monotonic()
        if self._task is None or now - self._shown < REFRESH_SECONDS:
            return
        self._shown = now
        speed = tally.rounds / max(now - self._started, 1e-9)
        state = f"regret {number(tally.expected_regret)}, reward {tally.successes:.0f}, {speed:.0f} rounds/s"
        self._progress.update(self._task, completed=tally.rounds, state=state)

    def finish(self, record: RunRecord) -> None:
        if self._task is not None:
            self._progress.remove_task(self._task)
        self.say(finished_line(record))

    def say(self, text: str) -> None:
        self._progress.console.print(text, markup=False, soft_wrap=True)

    def close(self) -> None:
        self._progress.stop()


def finished_line(record: RunRecord) -> str:
    """One run in one line."""
    preset = "" if record.preset == "default" else f" {record.preset}"
    stopped = f" (stopped; {record.rounds_asked} asked)" if record.interrupted else ""
    return (
        f"{record.policy}{preset}, seed {record.seed}: "
        f"{record.rounds} rounds{stopped} in {record.seconds:.1f} s, "
        f"expected regret {number(record.expected_regret)}, "
        f"reward {record.successes:g} (the best slates: {number(record.best_expected)} on average)"
    )
