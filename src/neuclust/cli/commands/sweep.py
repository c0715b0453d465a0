"""`neuclust sweep`: every run of an experiment file that its folder does not hold yet."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from neuclust.cli.command import argument, flag, limit_threads, option
from neuclust.cli.folders import require_writable, say_bad
from neuclust.cli.interrupt import STOPPED, patient_interrupt
from neuclust.cli.options import engine_option, quiet_flag, retry_flag, workers_option

if TYPE_CHECKING:
    from neuclust.experiment.engines import engine as engines
    from neuclust.experiment.sweep import Standing
    from neuclust.experiment.tasks import Task


@dataclass(frozen=True, slots=True)
class SweepOptions:
    file: Path = argument(..., "An experiment: see docs/sweeps.md.", "FILE.toml")
    out: Path | None = option(None, "Folder of records. Default: results/NAME.", "DIR")
    engine: str = engine_option()
    workers: int | None = workers_option()
    address: str | None = option(None, "A Ray cluster; default: a local one for this sweep.", "ADDRESS")
    dry_run: bool = flag("Check, list what would run, and leave.")
    retry_failed: bool = retry_flag()
    quiet: bool = quiet_flag()


def sweep(options: SweepOptions) -> None:
    """Run an experiment file: what is done is skipped, so a sweep can be stopped, killed and started again.

    Exit codes: 0 all runs are there; 1 some failed; 130 stopped by Ctrl-C.
    """
    limit_threads()
    from neuclust.experiment.engines.engine import make_engine
    from neuclust.experiment.plan import rewards_sentence
    from neuclust.experiment.spec import read_spec
    from neuclust.experiment.tasks import tasks_of

    engine = make_engine(options.engine, options.workers, options.address)
    spec = read_spec(options.file)
    tasks, folder = tasks_of(spec), options.out or Path("results") / spec.name
    if options.dry_run:
        _list(folder, tasks, options.retry_failed)
        return
    require_writable("--out", folder)
    if not options.quiet:
        for problem, source in zip(spec.problems, spec.rewards, strict=True):
            typer.echo(f"{problem.name}: {rewards_sentence(source, problem.name)}", err=True)
    raise typer.Exit(execute(folder, tasks, engine, options.retry_failed, options.quiet))


def _list(folder: Path, tasks: tuple[Task, ...], retry_failed: bool) -> None:
    """What would run, one per line on stdout; nothing is written, not even the folder."""
    from neuclust.cli.sweep_view import standing_sentence
    from neuclust.experiment.store import MARK, flaws, open_store
    from neuclust.experiment.sweep import standing

    if (folder / MARK).exists():
        open_store(folder)
        for sentence in flaws(folder, (task.key for task in tasks)):
            say_bad(sentence)
    found = standing(folder, tasks)
    for task in found.missing + (found.failed if retry_failed else ()):
        typer.echo(f"{task.key}  {task.title}, {task.rounds} rounds")
    typer.echo(f"{folder}: {standing_sentence(found, retry_failed)}", err=True)


def execute(
    folder: Path, tasks: tuple[Task, ...], engine: engines.Engine, retry_failed: bool, quiet: bool, tables: bool = True
) -> int:
    """Play what is missing with progress on stderr; returns the exit code. Without `tables` no table is printed."""
    from neuclust.cli.sweep_view import make_view, standing_sentence
    from neuclust.experiment.sweep import sweep as play_missing

    pressed: list[bool] = []
    view = make_view(lambda: bool(pressed), quiet)

    def begin(found: Standing) -> None:
        if not quiet:
            view.say(f"{folder}: {standing_sentence(found, retry_failed)}")
        view.begin(found.missing + (found.failed if retry_failed else ()))

    try:
        with patient_interrupt(lambda: pressed.append(True)):
            after = play_missing(
                folder,
                tasks,
                engine,
                view,
                retry_failed=retry_failed,
                on_bad=view.say,
                on_begin=begin,
                on_end=view.end,
            )
    finally:
        view.close()
    return _conclude(folder, after, bool(pressed), quiet, tables)


def _conclude(folder: Path, after: Standing, stopped: bool, quiet: bool, tables: bool) -> int:
    if tables and not quiet and after.held:
        _print_tables(folder, after)
    total = len(after.held) + len(after.failed) + len(after.missing)
    if after.missing:
        how = "Stopped by Ctrl-C" if stopped else "Ended early"
        typer.echo(
            f"{how}: {len(after.held)} of {total} runs are in {folder}; the same command takes up the rest.", err=True
        )
        return STOPPED if stopped else 1
    if after.failed:
        typer.echo(
            f"{len(after.failed)} of {total} runs failed: {folder / 'failures'} says why; --retry-failed tries them "
            "again.",
            err=True,
        )
        return 1
    if not quiet:
        typer.echo(f"All {total} runs are in {folder}.", err=True)
    return 0


def _print_tables(folder: Path, after: Standing) -> None:
    """The table of the runs of this experiment, whatever else the folder holds."""
    from neuclust.analysis.unpaid import unpaid_notes
    from neuclust.cli.console import print_tables
    from neuclust.experiment.store import read_store

    keys = {task.key for task in after.held}
    records = list(read_store(folder, keys=keys).values())
    print_tables(records)
    for note in unpaid_notes(records):
        typer.echo(f"warning: {note}", err=True)
