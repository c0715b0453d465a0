"""Searches for settings, one after the other here or several at once in processes; each is kept as it goes."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from neuclust.cli.tune_session import settings_text, trial_lines
from neuclust.cli.views import View, make_view
from neuclust.experiment.engines.engine import Failure, Progress, Unwatched
from neuclust.experiment.engines.processes import ProcessEngine
from neuclust.experiment.held_out import split_problem
from neuclust.experiment.tuning.space import Settings
from neuclust.experiment.tuning.tune import TuningPlan, tune


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
            return [_search(job, view, quiet) for job in jobs]
        return _in_processes(jobs, workers, view, quiet)
    finally:
        view.close()


def _search(job: SearchJob, view: View, quiet: bool) -> Best:
    if view.stopped():
        return None
    result = tune(job.plan, split_problem(job.plan.problem), job.folder, view, trial_lines(view, quiet))
    return None if result.stopped else result.best


def _in_processes(jobs: Sequence[SearchJob], workers: int, view: View, quiet: bool) -> list[Best]:
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
