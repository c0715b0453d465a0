"""The work of `neuclust reproduce`: play what is missing, search where that was asked for, write the page."""

import shlex
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import typer

from neuclust.analysis.inspection import ELBOW, elbow_of
from neuclust.analysis.reproduction.results import Reproduction, Search, runs_by_phase, without_settings
from neuclust.analysis.sources import read_failures
from neuclust.cli.folders import say_bad
from neuclust.cli.interrupt import patient_interrupt
from neuclust.cli.provenance import commands_of
from neuclust.cli.reproduce_search import SearchJob, best_of
from neuclust.cli.sweep_session import conclude
from neuclust.cli.views import make_view
from neuclust.experiment.contestants import Contestant
from neuclust.experiment.engines.engine import Engine
from neuclust.experiment.records import RunRecord
from neuclust.experiment.reproduction.phases import GRIDS, TUNED, Layout, Phase, all_tasks, phases
from neuclust.experiment.reproduction.tuning import grid_plans, tuned_plans
from neuclust.experiment.sinks import FAILURES
from neuclust.experiment.store import MARK, read_store
from neuclust.experiment.sweep import Standing, sweep
from neuclust.experiment.tasks import Task
from neuclust.experiment.tuning.tune import TuningPlan
from neuclust.report.reproduction.folder import write_reproduction

RECORDS, SEARCHES = "records", "searches"
ROUGH_SECONDS = {  # per round at 10,168 arms, where no record tells
    "neuclust-online": 0.025, "linucb": 0.003, "lin-ts": 0.003, "linucb-disjoint": 0.006, "linucb-hybrid": 0.006,
    "cc-mab": 0.002, "cucb": 0.002, "uniform": 0.001, "static": 0.001, "oracle": 0.001, "cluster-oracle": 0.003,
}  # fmt: skip
ROUGH_ARMS, OTHERS, AUTHORS_TIMES = 10_168, 0.010, 3.5


@dataclass(frozen=True, slots=True)
class Request:
    """The options of one command."""

    layout: Layout
    folder: Path
    authors: bool = False
    policies: tuple[str, ...] = ()
    tune: int = 0
    grids: int = 0
    retry_failed: bool = False
    quiet: bool = False
    workers: int = 1  # searches at once; 1: in this process

    @property
    def records(self) -> Path:
        return self.folder / RECORDS

    def phases(self) -> list[Phase]:
        return phases(self.layout, authors=self.authors, policies=self.policies)

    def plans(self) -> list[tuple[str, TuningPlan]]:
        """Every search with the phase it is for."""
        tuned = tuned_plans(self.layout, self.tune, self.policies) if self.tune else []
        grids = grid_plans(self.layout, self.grids) if self.grids else []
        return [*((GRIDS, plan) for plan in grids), *((TUNED, plan) for plan in tuned)]


def execute(request: Request, engine: Engine) -> int:
    """Play, write the page, search and play again, write it again; the exit code."""
    pressed: list[bool] = []
    with patient_interrupt(lambda: pressed.append(True)):
        found, searches = request.phases(), list[Search]()
        after = _play(request, found, engine, lambda: bool(pressed))
        elbow = _elbow(request.layout)
        plans = request.plans()
        written = _write(request, found, elbow, searches)
        if plans and not pressed:
            later, searches = _search(request, plans, lambda: bool(pressed))
            found = [*found, *later]
            if not pressed:
                after = _play(request, found, engine, lambda: bool(pressed))
            written = _write(request, found, elbow, searches)
    if written is not None:
        typer.echo(written)
    return conclude(after, bool(pressed))


def _play(request: Request, found: Sequence[Phase], engine: Engine, stopped: Callable[[], bool]) -> Standing:
    view = make_view(stopped, request.quiet)
    try:
        return sweep(request.records, all_tasks(found), engine, view, retry_failed=request.retry_failed)
    finally:
        view.close()


def _elbow(layout: Layout) -> tuple[tuple[int, float], ...]:
    profiles = layout.environment.profiles.numpy(force=True).astype(np.float32)
    numbers = {*layout.scale.cluster_numbers, layout.study.clusters}
    return elbow_of(profiles, sorted(numbers if layout.scale.quick else numbers | set(ELBOW)))


def _search(
    request: Request, plans: Sequence[tuple[str, TuningPlan]], stopped: Callable[[], bool]
) -> tuple[list[Phase], list[Search]]:
    """Spend every budget; the phases of what was chosen, and what each search was allowed and chose."""
    jobs = [SearchJob(plan, request.folder / SEARCHES / f"{phase}-{plan.policy}") for phase, plan in plans]
    found = best_of(jobs, request.workers, stopped, request.quiet)
    searches = [
        Search(phase, plan.policy, plan.preset, plan.trials, plan.tune_seeds, request.layout.rounds, best)
        for (phase, plan), best in zip(plans, found, strict=True)
    ]
    seeds = {GRIDS: request.layout.scale.runs, TUNED: request.layout.scale.our_seeds}
    players = {name: [_player(each) for each in searches if each.phase == name and each.best] for name in seeds}
    return [request.layout.phase(name, who, seeds[name]) for name, who in players.items() if who], searches


def _player(search: Search) -> Contestant:
    return Contestant(search.policy, search.preset, settings=search.best or {})


def _write(
    request: Request, found: Sequence[Phase], elbow: tuple[tuple[int, float], ...], searches: Sequence[Search]
) -> Path | None:
    """The page from what the folder holds; None where it holds nothing yet."""
    keys = {task.key for phase in found for task in phase.tasks}
    records = read_store(request.records, keys=keys)
    if not records:
        return None
    layout = request.layout
    runs, missing = runs_by_phase(found, records)
    result = Reproduction(
        study=layout.study,
        source=None if layout.problem.data is None else layout.problem.data.name,
        rounds=layout.rounds,
        slate_size=layout.problem.slate_size,
        scale=layout.scale,
        runs=without_settings(runs, layout.scale.settings),
        missing=missing,
        elbow=elbow,
        searches=tuple(searches),
        failures=read_failures(request.records / FAILURES, set(records), keys),
        commands=_commands(runs),
    )
    return write_reproduction(result, request.folder)[-1]


def _commands(runs: Mapping[str, Sequence[RunRecord]]) -> tuple[str, ...]:
    """This command as it was given, and the runs one by one."""
    given = shlex.join(["neuclust", *sys.argv[1:]])
    return (given, *(line for records in runs.values() for line in commands_of(records)))


def show_plan(request: Request) -> None:
    """What would run, a line for each contestant of each phase on stdout; nothing is written."""
    keys = {task.key for phase in request.phases() for task in phase.tasks}
    held = read_store(request.records, keys=keys, on_bad=say_bad) if (request.records / MARK).exists() else {}
    rates = _rates(held.values())
    seconds, seen = 0.0, set(held)
    for phase in request.phases():
        for contestant in phase.contestants:
            tasks = [task for task in phase.tasks if task.contestant == contestant]
            todo = [task for task in tasks if task.key not in seen]
            seen |= {task.key for task in tasks}
            time = sum(_seconds(request.layout, task, rates) for task in todo)
            seconds += time
            typer.echo(_plan_line(phase.name, tasks, len(todo), time))
    for name, plan in request.plans():
        time = plan.most_runs * _seconds(request.layout, _stand_in(request, plan), rates)
        seconds += time
        typer.echo(f"{name:9}{plan.policy:26}{plan.trials} trials, at most {plan.most_runs} runs{_about(time)}")
    several = "" if request.workers == 1 else f", with {request.workers} workers{_about(seconds / request.workers)}"
    typer.echo(f"In all{_about(seconds)} of one core{several}; rough.", err=True)


def _plan_line(phase: str, tasks: Sequence[Task], todo: int, time: float) -> str:
    title = tasks[0].title.partition(" on ")[0]
    runs = f"{len(tasks)} runs of {tasks[0].rounds} rounds"
    return f"{phase:9}{title:40} {runs}, {todo} to do{_about(time) if todo else ''}"


def _about(seconds: float) -> str:
    size = f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"
    return f", about {size}"


def _rates(records: Iterable[RunRecord]) -> dict[tuple[str, str], float]:
    """Seconds per round by policy and preset, from what has been played; the longest runs tell most."""
    found: dict[tuple[str, str], float] = {}
    for record in sorted(records, key=lambda each: each.rounds):
        found[record.policy, record.preset] = record.seconds / record.rounds
    return found


def _seconds(layout: Layout, task: Task, rates: Mapping[tuple[str, str], float]) -> float:
    policy, preset = task.contestant.policy, task.contestant.preset
    times = AUTHORS_TIMES if preset == layout.study.authors else 1.0
    rough = times * ROUGH_SECONDS.get(policy, OTHERS) * layout.environment.n_arms / ROUGH_ARMS
    return task.rounds * rates.get((policy, preset), rough)


def _stand_in(request: Request, plan: TuningPlan) -> Task:
    """A run of the untouched preset, for the time a trial takes."""
    return request.layout.phase(TUNED, [Contestant(plan.policy, plan.preset)], 1).tasks[0]
