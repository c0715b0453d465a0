"""Searches for settings, one after the other here or several at once in processes; each is kept as it goes."""

from __future__ import annotations

import signal
from collections.abc import Callable, Sequence
from multiprocessing import TimeoutError as NothingYet
from multiprocessing import get_context
from pathlib import Path

from neuclust.cli.console import Reporter, make_reporter
from neuclust.cli.tune_session import settings_text, trial_line
from neuclust.experiment.records import RunRecord
from neuclust.experiment.run import Tally
from neuclust.experiment.tuning.held_out import split_problem
from neuclust.experiment.tuning.space import Settings
from neuclust.experiment.tuning.trials import TrialResult
from neuclust.experiment.tuning.tune import TuningPlan, Watch, tune

POLL_SECONDS = 0.2
Job = tuple[TuningPlan, Path]
Best = Settings | None


def best_of(jobs: Sequence[Job], workers: int, stopped: Callable[[], bool], quiet: bool) -> list[Best]:
    """The best setting of every search, None where it was stopped before its end."""
    reporter = make_reporter(sum(plan.most_runs for plan, _ in jobs), quiet)
    try:
        if workers == 1:
            return [_here(job, reporter, stopped, quiet) for job in jobs]
        return _in_processes(jobs, workers, reporter, stopped, quiet)
    finally:
        reporter.close()


def _here(job: Job, reporter: Reporter, stopped: Callable[[], bool], quiet: bool) -> Best:
    plan, folder = job

    def say_trial(result: TrialResult) -> None:
        if not quiet:
            reporter.say(trial_line(result))

    if stopped():
        return None
    result = tune(plan, split_problem(plan.problem), folder, Watch(reporter, say_trial, stopped, reporter.say))
    return None if result.stopped else result.best


def _in_processes(
    jobs: Sequence[Job], workers: int, reporter: Reporter, stopped: Callable[[], bool], quiet: bool
) -> list[Best]:
    """Leaving ends the processes at once, which their journals and stores survive."""
    found: list[Best] = [None] * len(jobs)
    with get_context("spawn").Pool(min(workers, len(jobs)), initializer=_deaf) as pool:
        ended = pool.imap_unordered(_alone, enumerate(jobs))
        left = len(jobs)
        while left and not stopped():
            try:
                place, best = ended.next(timeout=POLL_SECONDS)
            except NothingYet:
                continue
            found[place] = best
            left -= 1
            if not quiet:
                reporter.say(f"{jobs[place][0].policy}: {settings_text(best or {})} ({left} searches left)")
    return found


def _deaf() -> None:
    """Ctrl-C reaches the whole group, but the command alone decides what it means."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _alone(job: tuple[int, Job]) -> tuple[int, Best]:
    """One search in a process of its own, which nobody watches."""
    import torch

    torch.set_num_threads(1)
    place, (plan, folder) = job
    return place, tune(plan, split_problem(plan.problem), folder, Watch(Unseen(), _nothing, _never)).best


class Unseen:
    """Hears of every run and says nothing."""

    def begin(self, title: str, seed: int, rounds: int) -> None: ...

    def on_round(self, tally: Tally) -> None: ...

    def finish(self, record: RunRecord) -> None: ...


def _nothing(result: TrialResult) -> None:
    """No line a trial: several searches would mix theirs."""


def _never() -> bool:
    return False
