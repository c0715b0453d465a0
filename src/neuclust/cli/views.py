"""Progress of runs on stderr: moving rows on a terminal, one plain line per run elsewhere."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from time import monotonic
from typing import Protocol

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, ProgressColumn, TaskID, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Rows

from neuclust.analysis.estimates import number
from neuclust.cli.console import make_console
from neuclust.cli.interrupt import patient_interrupt
from neuclust.experiment.engines.engine import Failure, Outcome, Progress
from neuclust.experiment.records import RunRecord
from neuclust.experiment.sweep import Standing, SweepWatch
from neuclust.experiment.tasks import Task

ROOM_FOR_A_BAR = 120
REFRESH_SECONDS = 0.1
ONE_MORE_ROUND = "Ctrl-C: stopping after this round; press it again to stop at once."


class View(SweepWatch, Protocol):
    """Sees everything of a command's runs, from the first task to the end."""

    def close(self) -> None: ...


def make_view(stopped: Callable[[], bool], quiet: bool, runs: int | None = None) -> View:
    """Live on a terminal, plain elsewhere, failures alone when quiet; `runs` (the most) one by one, else a sweep."""
    console = make_console(stderr=True)
    if quiet or not console.is_terminal or console.is_dumb_terminal:
        return LineView(console, stopped, quiet, finished_line if runs is not None else None)
    return LiveView(console, stopped) if runs is None else LiveRuns(console, stopped, runs)


@contextmanager
def watched(quiet: bool, runs: int | None = None, notice: str = "") -> Iterator[View]:
    """A view that Ctrl-C stops, after saying `notice`, and that is closed at the end."""
    pressed: list[bool] = []
    view = make_view(lambda: bool(pressed), quiet, runs)

    def on_request() -> None:
        pressed.append(True)
        if notice:
            view.say(notice)

    try:
        with patient_interrupt(on_request):
            yield view
    finally:
        view.close()


class LineView:
    """One plain line per finished run: `line` of its record, or its count and outcome."""

    def __init__(
        self, console: Console, stopped: Callable[[], bool], quiet: bool, line: Callable[[RunRecord], str] | None = None
    ) -> None:
        self._console, self._quiet, self._line, self.stopped = console, quiet, line, stopped
        self._ended = self._total = 0

    def started(self, task: Task) -> None:
        """Nothing is shown before a run is over."""

    def played(self, task: Task, progress: Progress) -> None:
        """Nothing is shown before a run is over."""

    def begin(self, before: Standing, todo: Sequence[Task]) -> None:
        self._total = len(todo)
        if not self._quiet:
            self.say(standing_sentence(before, todo))

    def ended(self, outcome: Outcome) -> None:
        self._ended += 1
        if self._line is None:
            if not self._quiet or isinstance(outcome.result, Failure):
                self.say(f"{self._ended}/{self._total} {outcome_line(outcome)}")
        elif not self._quiet and isinstance(outcome.result, RunRecord):
            self.say(self._line(outcome.result))

    def say(self, text: str) -> None:
        self._console.print(text, markup=False, soft_wrap=True)

    def close(self) -> None:
        """Nothing is held."""


class LiveRuns:
    """A row for the run under way: policy, seed, round, regret, reward, rounds per second, time left."""

    def __init__(self, console: Console, stopped: Callable[[], bool], runs: int) -> None:
        self._runs, self._begun, self.stopped = runs, 0, stopped
        self._shown = self._started = 0.0
        self._row: TaskID | None = None
        bar = [BarColumn(bar_width=20)] if console.width >= ROOM_FOR_A_BAR else []
        state = (TextColumn("round {task.completed:.0f}/{task.total:.0f}"), TextColumn("{task.fields[state]}"))
        self._rows = _rows(console, [*bar, *state], seconds=30.0)
        self._rows.start()

    def begin(self, before: Standing, todo: Sequence[Task]) -> None:
        """The number of runs is known already."""

    def started(self, task: Task) -> None:
        self._begun += 1
        self._started = monotonic()
        name = f"{self._begun}/{self._runs} {task.contestant.title}, seed {task.seed}".replace("[", "\\[")
        self._row = self._rows.add_task(name, total=task.rounds, state="")

    def played(self, task: Task, progress: Progress) -> None:  # noqa: ARG002
        now = monotonic()
        if self._row is None or now - self._shown < REFRESH_SECONDS:
            return
        self._shown = now
        speed = progress.rounds / max(now - self._started, 1e-9)
        state = f"regret {number(progress.expected_regret)}, reward {progress.successes:.0f}, {speed:.0f} rounds/s"
        self._rows.update(self._row, completed=progress.rounds, state=state)

    def ended(self, outcome: Outcome) -> None:
        if self._row is not None:
            self._rows.remove_task(self._row)
            self._row = None
        if isinstance(outcome.result, RunRecord):
            self.say(finished_line(outcome.result))

    def say(self, text: str) -> None:
        self._rows.console.print(text, markup=False, soft_wrap=True)

    def close(self) -> None:
        self._rows.stop()


class LiveView:
    """A row for all, in rounds, with the time left, and a row for every run under way."""

    def __init__(self, console: Console, stopped: Callable[[], bool]) -> None:
        self.stopped = stopped
        self._row_of: dict[str, TaskID] = {}
        self._under_way: dict[str, int] = {}
        self._ended = self._failed = self._total = self._played = 0
        self._rows = _rows(console, [BarColumn(bar_width=20), MofNCompleteColumn(), TextColumn("rounds")], 600.0)
        self._all = self._rows.add_task("")

    def begin(self, before: Standing, todo: Sequence[Task]) -> None:
        self.say(standing_sentence(before, todo))
        self._total = len(todo)
        self._rows.update(self._all, total=sum(task.rounds for task in todo))
        self._show()
        self._rows.start()

    def started(self, task: Task) -> None:
        self._drop(task)  # of an attempt that died
        self._row_of[task.key] = self._rows.add_task(task.title.replace("[", "\\["), total=task.rounds)

    def played(self, task: Task, progress: Progress) -> None:
        self._under_way[task.key] = progress.rounds
        self._rows.update(self._row_of[task.key], completed=progress.rounds)
        self._show()

    def ended(self, outcome: Outcome) -> None:
        self._ended += 1
        self._failed += isinstance(outcome.result, Failure)
        self._played += outcome.task.rounds
        self._drop(outcome.task)
        self._show()
        self.say(f"{self._ended}/{self._total} {outcome_line(outcome)}")

    def say(self, text: str) -> None:
        self._rows.console.print(text, markup=False, soft_wrap=True)

    def close(self) -> None:
        self._rows.stop()

    def _drop(self, task: Task) -> None:
        self._under_way.pop(task.key, None)
        if task.key in self._row_of:
            self._rows.remove_task(self._row_of.pop(task.key))

    def _show(self) -> None:
        text = f"{self._ended} of {self._total} runs" + (f", {self._failed} failed" if self._failed else "")
        self._rows.update(self._all, description=text, completed=self._played + sum(self._under_way.values()))


def _rows(console: Console, columns: Sequence[ProgressColumn], seconds: float) -> Rows:
    """Rows that begin with a description and end with the time left, by the speed of the last `seconds`."""
    left = (TimeRemainingColumn(compact=True), TextColumn("left"))
    first = TextColumn("{task.description}")
    return Rows(first, *columns, *left, console=console, transient=True, speed_estimate_period=seconds)


def finished_line(record: RunRecord) -> str:
    """One run in one line, with its rewards."""
    preset = "" if record.preset == "default" else f" {record.preset}"
    stopped = f" (stopped; {record.rounds_asked} asked)" if record.interrupted else ""
    return (
        f"{record.policy}{preset}, seed {record.seed}: "
        f"{record.rounds} rounds{stopped} in {record.seconds:.1f} s, "
        f"expected regret {number(record.expected_regret)}, "
        f"reward {record.successes:g} (the best slates: {number(record.best_expected)} on average)"
    )


def outcome_line(outcome: Outcome) -> str:
    """One run of a sweep in one line."""
    title, result = outcome.task.title, outcome.result
    if isinstance(result, Failure):
        return f"{title}: FAILED, {result.error}"
    regret = number(result.expected_regret)
    return f"{title}: {result.rounds} rounds in {result.seconds:.1f} s, expected regret {regret}"


def standing_sentence(standing: Standing, todo: Sequence[Task]) -> str:
    """How far a folder is, and what is done about runs that failed."""
    text = f"{standing.folder}: {standing.total} runs: {len(standing.held)} done, {len(standing.missing)} to do"
    if standing.failed:
        then = "tried again" if standing.failed[0] in todo else "left alone (--retry-failed tries them again)"
        text += f", {len(standing.failed)} failed earlier and are {then}"
    others = f" {standing.others} further records are of other settings or of another version of the code."
    return f"{text}.{others if standing.others else ''}"
