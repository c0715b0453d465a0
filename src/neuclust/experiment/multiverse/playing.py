"""Plays what is missing of a grid: cells → tasks → engine → lines, until all is there or the time is over."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from neuclust.experiment.engines.engine import Engine, Failure, Unwatched
from neuclust.experiment.multiverse.grid import ROLES, Cell, Grid
from neuclust.experiment.multiverse.rows import RunKey, key_of_task, row_of, who_of
from neuclust.experiment.problem import Problem
from neuclust.experiment.spec import SweepSpec
from neuclust.experiment.tasks import Task, opened_problem, tasks_of

Say = Callable[[str], None]
FAILED = "failed: "  # how a line about a failed run begins


@dataclass(frozen=True, slots=True)
class Plan:
    """The cells to play and their runs."""

    grid: Grid
    cells: tuple[Cell, ...]
    tasks: tuple[Task, ...]

    def who(self, task: Task) -> str:
        """The role of a run and the first cell that needs it."""
        pairs = ((cell, role) for cell in self.cells for role in ROLES)
        cell, role = next(pair for pair in pairs if self.grid.contestant(*pair) == task.contestant)
        return f"{role} of {self.grid.title(cell)}"


def plan_of(grid: Grid, problem: Problem, cells: Sequence[Cell]) -> Plan:
    """Every run of these cells once, the runs of the first cell first; a problem that cannot be opened is refused."""
    problem = replace(problem, rounds=grid.rounds, slate_size=grid.slate_size)
    spec = SweepSpec(grid.name, (problem,), (grid.rounds,), tuple(grid.contestants(cells)), grid.seeds)
    tasks = tasks_of(spec)
    opened_problem(tasks[0])  # too few rounds in the file, say: here, and not run by run
    return Plan(grid, tuple(cells), tasks)


def cells_for(grid: Grid, engine: str, marked: str | None = None) -> tuple[Cell, ...]:
    """The cells an engine plays: a device those declared for it, others all, or those with the given mark."""
    kind = marked or ("device" if engine.partition(":")[0] == "device" else None)
    return tuple(cell for cell in grid.cells if kind is None or cell.engine == kind)


@dataclass(slots=True)
class Progress:
    """Counts the runs of every cell as they end and says when a cell is complete."""

    plan: Plan
    held: Collection[RunKey]
    say: Say
    left: list[set[RunKey]] = field(default_factory=list)
    began: float = field(default_factory=time.monotonic)
    last: float = field(default_factory=time.monotonic)
    played: int = 0
    failed: int = 0
    waiting: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        by_who: dict[str, set[RunKey]] = {}
        for task in self.plan.tasks:
            key = key_of_task(task)
            by_who.setdefault(key.who, set()).add(key)
        held = set(self.held)
        for cell in self.plan.cells:
            names = (who_of(self.plan.grid.contestant(cell, role)) for role in ROLES)
            self.left.append(set().union(*(by_who[name] for name in names)) - held)

    @property
    def complete(self) -> int:
        return sum(not keys for keys in self.left)

    def ended(self, key: RunKey) -> None:
        """Take a finished run off the cells that wait for it."""
        for cell, keys in zip(self.plan.cells, self.left, strict=True):
            if key in keys:
                keys.remove(key)
                if not keys:
                    self.waiting.append(self.plan.grid.title(cell))
        if self.waiting:
            now = time.monotonic()
            text = f"{now - self.last:6.1f} s, {now - self.began:6.1f} s in all"
            self.say(f"{self.complete} of {len(self.left)} cells, {text}: {'; '.join(self.waiting)}")
            self.waiting, self.last = [], now


def play_plan(
    plan: Plan, engine: Engine, name: str, held: Collection[RunKey], write: Callable[[dict[str, Any]], None],
    say: Say, stopped: Callable[[], bool] = bool,
) -> Progress:  # fmt: skip
    """Play the runs that are not held and write each as it ends; a failed run is said and not written."""
    progress = Progress(plan, held, say)
    todo = [task for task in plan.tasks if key_of_task(task) not in held]
    for outcome in engine(todo, Unwatched(stopped)) if todo else ():
        if isinstance(outcome.result, Failure):
            progress.failed += 1
            who = f"{plan.who(outcome.task)}, seed {outcome.task.seed}"
            say(f"{FAILED}{who}: {outcome.result.error}")
        elif not outcome.interrupted:
            write(row_of(outcome.task, outcome.result, name))
            progress.played += 1
            progress.ended(key_of_task(outcome.task))
    return progress
