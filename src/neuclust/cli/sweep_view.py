"""What a person sees of a sweep: a moving table on a terminal, one plain line a run elsewhere."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from neuclust.analysis.estimates import number
from neuclust.cli.console import make_console
from neuclust.experiment.engines.engine import Failure, Outcome
from neuclust.experiment.sweep import Standing
from neuclust.experiment.tasks import Task


class SweepView(Protocol):
    """An engine's watch that also hears of the beginning, every outcome and the end."""

    def started(self, task: Task) -> None: ...

    def played(self, task: Task, rounds: int) -> None: ...

    def stopped(self) -> bool: ...

    def begin(self, todo: tuple[Task, ...]) -> None: ...

    def end(self, outcome: Outcome) -> None: ...

    def say(self, text: str) -> None: ...

    def close(self) -> None: ...


def make_view(stopped: Callable[[], bool], quiet: bool) -> SweepView:
    """Live on a terminal, plain elsewhere, silent but for failures when quiet."""
    console = make_console(stderr=True)
    if quiet or not console.is_terminal or console.is_dumb_terminal:
        return LineView(console, stopped, quiet)
    return LiveView(console, stopped)


class LineView:
    """One plain line a finished run."""

    def __init__(self, console: Console, stopped: Callable[[], bool], quiet: bool) -> None:
        self._console, self._quiet, self.stopped = console, quiet, stopped
        self._ended = self._total = 0

    def started(self, task: Task) -> None:
        """Nothing to say before a run is over."""

    def played(self, task: Task, rounds: int) -> None:
        """Nothing to say before a run is over."""

    def begin(self, todo: tuple[Task, ...]) -> None:
        self._total = len(todo)

    def end(self, outcome: Outcome) -> None:
        self._ended += 1
        if not self._quiet or isinstance(outcome.result, Failure):
            self.say(f"{self._ended}/{self._total} {outcome_line(outcome)}")

    def say(self, text: str) -> None:
        self._console.print(text, markup=False, soft_wrap=True)

    def close(self) -> None:
        """Nothing is held."""


class LiveView:
    """A row for all, in rounds, with the time left, and a row for every run under way."""

    def __init__(self, console: Console, stopped: Callable[[], bool]) -> None:
        self.stopped = stopped
        self._rows: dict[str, TaskID] = {}
        self._ended = self._failed = self._total = self._rounds = 0
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=20),
            MofNCompleteColumn(),
            TextColumn("rounds"),
            TimeRemainingColumn(compact=True),
            TextColumn("left"),
            console=console,
            transient=True,
            speed_estimate_period=600.0,
        )
        self._all = self._progress.add_task("")
        self._under_way: dict[str, int] = {}

    def begin(self, todo: tuple[Task, ...]) -> None:
        self._total = len(todo)
        self._progress.update(self._all, total=sum(task.rounds for task in todo))
        self._show()
        self._progress.start()

    def started(self, task: Task) -> None:
        self._drop(task)  # of an attempt that died
        self._rows[task.key] = self._progress.add_task(task.title.replace("[", "\\["), total=task.rounds)

    def played(self, task: Task, rounds: int) -> None:
        self._under_way[task.key] = rounds
        self._progress.update(self._rows[task.key], completed=rounds)
        self._show()

    def end(self, outcome: Outcome) -> None:
        self._ended += 1
        self._failed += isinstance(outcome.result, Failure)
        self._rounds += outcome.task.rounds
        self._drop(outcome.task)
        self._show()
        self.say(f"{self._ended}/{self._total} {outcome_line(outcome)}")

    def say(self, text: str) -> None:
        self._progress.console.print(text, markup=False, soft_wrap=True)

    def close(self) -> None:
        self._progress.stop()

    def _drop(self, task: Task) -> None:
        self._under_way.pop(task.key, None)
        if task.key in self._rows:
            self._progress.remove_task(self._rows.pop(task.key))

    def _show(self) -> None:
        failed = f", {self._failed} failed" if self._failed else ""
        text = f"{self._ended} of {self._total} runs{failed}"
        self._progress.update(self._all, description=text, completed=self._rounds + sum(self._under_way.values()))


def outcome_line(outcome: Outcome) -> str:
    """One run in one line."""
    result = outcome.result
    if isinstance(result, Failure):
        return f"{outcome.task.title}: FAILED, {result.error}"
    return (
        f"{outcome.task.title}: {result.rounds} rounds in {result.seconds:.1f} s, "
        f"expected regret {number(result.expected_regret)}"
    )


def standing_sentence(standing: Standing, retry_failed: bool) -> str:
    """How far the folder is."""
    total = len(standing.held) + len(standing.failed) + len(standing.missing)
    failed = ""
    if standing.failed:
        then = "tried again" if retry_failed else "left alone (--retry-failed tries them again)"
        failed = f", {len(standing.failed)} failed earlier and are {then}"
    others = ""
    if standing.others:
        others = f" {standing.others} further records are of other settings or of another version of the code."
    return f"{total} runs: {len(standing.held)} done, {len(standing.missing)} to do{failed}.{others}"
