"""The work of `neuclust reproduce`: play what is missing, search where that was asked for, write the page."""

import shlex
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import typer

from neuclust.analysis.inspection import ELBOW, elbow_of
from neuclust.analysis.reproduction.results import Reproduction, Search, runs_by_phase, without_settings
from neuclust.analysis.sources import read_failures
from neuclust.cli.commands.reproduce import ReproduceOptions
from neuclust.cli.interrupt import patient_interrupt
from neuclust.cli.outputs import say_bad
from neuclust.cli.provenance import commands_of
from neuclust.cli.session import conclude
from neuclust.cli.tune_session import settings_text, trial_lines
from neuclust.cli.views import View, make_view
from neuclust.errors import ConfigError
from neuclust.experiment.contestants import Contestant
from neuclust.experiment.engines.engine import Engine, Failure, Progress, Unwatched, cores
from neuclust.experiment.engines.processes import ProcessEngine
from neuclust.experiment.held_out import split_problem
from neuclust.experiment.reproduction.lines import read_runs_of
from neuclust.experiment.reproduction.phases import GRIDS, TUNED, Layout, Phase, all_tasks, phases
from neuclust.experiment.reproduction.tuning import grid_plans, tuned_plans
from neuclust.experiment.sinks import FAILURES, folder_errors
from neuclust.experiment.store import MARK, done, open_store, read_store, write_run
from neuclust.experiment.sweep import Standing, sweep
from neuclust.experiment.tasks import Task
from neuclust.experiment.tuning.space import Settings
from neuclust.experiment.tuning.tune import TuningPlan, tune
from neuclust.report.reproduction.folder import write_reproduction

RECORDS, SEARCHES = "records", "searches"
ROUGH_SECONDS = {  # per round at 10,168 arms, where no record tells
    "neuclust-online": 0.025, "linucb": 0.003, "lin-ts": 0.003, "linucb-disjoint": 0.006, "linucb-hybrid": 0.006,
    "cc-mab": 0.002, "cucb": 0.002, "uniform": 0.001, "static": 0.001, "oracle": 0.001, "cluster-oracle": 0.003,
}  # fmt: skip
ROUGH_ARMS, OTHERS, AUTHORS_TIMES = 10_168, 0.010, 3.5


@dataclass(frozen=True, slots=True)
class Request:
    """The options of one command, the problem they name, and the folder of everything."""

    options: ReproduceOptions
    layout: Layout
    folder: Path

    @property
    def records(self) -> Path:
        return self.folder / RECORDS

    @property
    def workers(self) -> int:
        """Searches at once; 1: in this process."""
        return 1 if self.options.engine == "inline" else self.options.workers or cores()

    def phases(self) -> list[Phase]:
        return phases(self.layout, authors=self.options.authors, policies=tuple(self.options.policy or ()))

    def plans(self) -> list[tuple[str, TuningPlan]]:
        """Every search with the phase it is for."""
        asked = self.options
        tuned = tuned_plans(self.layout, asked.tune, tuple(asked.policy or ())) if asked.tune else []
        grids = grid_plans(self.layout, asked.grids) if asked.grids else []
        return [*((GRIDS, plan) for plan in grids), *((TUNED, plan) for plan in tuned)]


def execute(request: Request, engine: Engine) -> int:
    """Play, write the page, search and play again, write it again; the exit code."""
    with patient_interrupt(lambda: None) as stopped:
        found = request.phases()
        _take_up(request, found)
        after = _play(request, found, engine, stopped)
        elbow, plans = _elbow(request.layout), request.plans()
        written = _write(request, found, elbow, ())
        if plans and not stopped():
            later, searches = _search(request, plans, stopped)
            found = [*found, *later]
            if not stopped():
                after = _play(request, found, engine, stopped)
            written = _write(request, found, elbow, searches)
    if written is not None:
        typer.echo(written)
    return conclude(after, stopped())


def _play(request: Request, found: Sequence[Phase], engine: Engine, stopped: Callable[[], bool]) -> Standing:
    view = make_view(stopped, request.options.quiet)
    try:
        return sweep(request.records, all_tasks(found), engine, view, retry_failed=request.options.retry_failed)
    finally:
        view.close()


def _take_up(request: Request, found: Sequence[Phase]) -> None:
    """Put runs of this very code that were played elsewhere into the store."""
    files = request.options.done or []
    for file in files:
        if not file.is_file():
            raise ConfigError(f"expected runs that were played elsewhere, got no file {file}; drop it", field="done")
    if not files:
        return
    wanted, given = {task.key for task in all_tasks(found)}, read_runs_of(files)
    taken = {key: record for key, record in given.items() if key in wanted}
    open_store(request.records, make=True)
    with folder_errors(request.records):
        for key in sorted(set(taken) - done(request.records)):
            write_run(request.records, key, taken[key])
    if not request.options.quiet:
        others = f", {len(given) - len(taken)} are of other code or of no phase" if len(given) > len(taken) else ""
        typer.echo(f"{len(taken)} runs taken up{others}", err=True)


def _elbow(layout: Layout) -> tuple[tuple[int, float], ...]:
    profiles = layout.environment.profiles.numpy(force=True).astype(np.float32)
    numbers = {*layout.scale.cluster_numbers, layout.study.clusters}
    return elbow_of(profiles, sorted(numbers if layout.scale.quick else numbers | set(ELBOW)))


def _search(
    request: Request, plans: Sequence[tuple[str, TuningPlan]], stopped: Callable[[], bool]
) -> tuple[list[Phase], list[Search]]:
    """Spend every budget; the phases of what was chosen, and what each search was allowed and chose."""
    jobs = [SearchJob(plan, request.folder / SEARCHES / f"{phase}-{plan.policy}") for phase, plan in plans]
    found = best_of(jobs, request.workers, stopped, request.options.quiet)
    searches = [
        Search(phase, plan.policy, plan.preset, plan.trials, plan.tune_seeds, request.layout.rounds, best)
        for (phase, plan), best in zip(plans, found, strict=True)
    ]
    seeds = {GRIDS: request.layout.scale.runs, TUNED: request.layout.scale.our_seeds}
    players: dict[str, list[Contestant]] = {name: [] for name in seeds}
    for each in searches:
        if each.best:
            players[each.phase].append(Contestant(each.policy, each.preset, settings=each.best))
    return [request.layout.phase(name, who, seeds[name]) for name, who in players.items() if who], searches


@dataclass(frozen=True, slots=True)
class SearchJob:
    """One search and the folder that keeps its trials and runs."""

    plan: TuningPlan
    folder: Path


Best = Settings | None


def best_of(jobs: Sequence[SearchJob], workers: int, stopped: Callable[[], bool], quiet: bool) -> list[Best]:
    """The best setting of every search, None where it was stopped before its end."""
    view = make_view(stopped, quiet, sum(job.plan.most_runs for job in jobs))
    try:
        if workers == 1:
            return [_search_here(job, view, quiet) for job in jobs]
        return _search_in_processes(jobs, workers, view, quiet)
    finally:
        view.close()


def _search_here(job: SearchJob, view: View, quiet: bool) -> Best:
    if view.stopped():
        return None
    result = tune(job.plan, split_problem(job.plan.problem), job.folder, view, trial_lines(view, quiet))
    return None if result.stopped else result.best


def _search_in_processes(jobs: Sequence[SearchJob], workers: int, view: View, quiet: bool) -> list[Best]:
    """Stopping ends the processes at once, which their journals and stores survive."""
    found: dict[Path, Best] = {}
    for job, best in ProcessEngine(workers).map(_search_alone, jobs, view.stopped):
        if isinstance(best, Failure):
            raise best.error_of(job.plan.policy)
        found[job.folder] = best
        if not quiet:
            view.say(f"{job.plan.policy}: {settings_text(best or {})} ({len(jobs) - len(found)} searches left)")
    return [found.get(job.folder) for job in jobs]


def _search_alone(job: SearchJob, on_progress: Callable[[Progress], None]) -> Best:  # noqa: ARG001
    """One search in a process of its own; lines of several searches would mix, so it shows none."""
    return tune(job.plan, split_problem(job.plan.problem), job.folder, Unwatched(), lambda _: None).best


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
    given = shlex.join(["neuclust", *sys.argv[1:]])
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
        commands=(given, *(line for played in runs.values() for line in commands_of(played))),
    )
    return write_reproduction(result, request.folder)[-1]


def show_plan(request: Request) -> None:
    """What would run, a line for each contestant of each phase on stdout; nothing is written."""
    keys = {task.key for phase in request.phases() for task in phase.tasks}
    held = read_store(request.records, keys=keys, on_bad=say_bad) if (request.records / MARK).exists() else {}
    longest_last = sorted(held.values(), key=lambda record: record.rounds)  # the longest run tells most
    rates = {(record.policy, record.preset): record.seconds / record.rounds for record in longest_last}

    def seconds_of(task: Task) -> float:
        policy, preset = task.contestant.policy, task.contestant.preset
        times = AUTHORS_TIMES if preset == request.layout.study.authors else 1.0
        rough = times * ROUGH_SECONDS.get(policy, OTHERS) * request.layout.environment.n_arms / ROUGH_ARMS
        return task.rounds * rates.get((policy, preset), rough)

    seconds, seen = 0.0, set(held)
    for phase in request.phases():
        for contestant in phase.contestants:
            tasks = [task for task in phase.tasks if task.contestant == contestant]
            todo = [task for task in tasks if task.key not in seen]
            seen |= {task.key for task in tasks}
            seconds += (time := sum(map(seconds_of, todo)))
            title, runs = tasks[0].title.partition(" on ")[0], f"{len(tasks)} runs of {tasks[0].rounds} rounds"
            typer.echo(f"{phase.name:9}{title:40} {runs}, {len(todo)} to do{_about(time) if todo else ''}")
    for name, plan in request.plans():
        untouched = request.layout.phase(TUNED, [Contestant(plan.policy, plan.preset)], 1).tasks[0]
        seconds += (time := plan.most_runs * seconds_of(untouched))
        typer.echo(f"{name:9}{plan.policy:26}{plan.trials} trials, at most {plan.most_runs} runs{_about(time)}")
    several = "" if request.workers == 1 else f", with {request.workers} workers{_about(seconds / request.workers)}"
    typer.echo(f"In all{_about(seconds)} of one core{several}; rough.", err=True)


def _about(seconds: float) -> str:
    return f", about {seconds:.0f} s" if seconds < 120 else f", about {seconds / 60:.0f} min"
