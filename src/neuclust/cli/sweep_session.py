"""Tasks played into a folder of records on the command line: progress, table, exit code."""

from collections.abc import Sequence
from pathlib import Path

import typer

from neuclust.analysis.unpaid import unpaid_notes
from neuclust.cli.console import print_tables
from neuclust.cli.interrupt import STOPPED
from neuclust.cli.views import watched
from neuclust.experiment.engines.engine import Engine
from neuclust.experiment.sinks import FAILURES
from neuclust.experiment.store import read_store
from neuclust.experiment.sweep import Standing, sweep
from neuclust.experiment.tasks import Task


def execute(
    folder: Path, tasks: Sequence[Task], engine: Engine, retry_failed: bool, quiet: bool, tables: bool = True
) -> int:
    """Play what is missing and return the exit code; without `tables` the caller shows its own."""
    with watched(quiet) as view:
        after = sweep(folder, tasks, engine, view, retry_failed=retry_failed)
    if tables and not quiet and after.held:
        _print_tables(after)
    code = conclude(after, view.stopped() and bool(after.missing))
    if code == 0 and not quiet:
        typer.echo(f"All {after.total} runs are in {folder}.", err=True)
    return code


def conclude(after: Standing, stopped: bool) -> int:
    """What is missing or failed, on stderr; the exit code."""
    if stopped or after.missing:
        how = "Stopped by Ctrl-C" if stopped else "Ended early"
        kept = f"{len(after.held)} of {after.total} runs are in {after.folder}"
        typer.echo(f"{how}: {kept}; the same command takes up the rest.", err=True)
        return STOPPED if stopped else 1
    if after.failed:
        failed = f"{len(after.failed)} of {after.total} runs failed: {after.folder / FAILURES} says why"
        typer.echo(f"{failed}; --retry-failed tries them again.", err=True)
        return 1
    return 0


def _print_tables(after: Standing) -> None:
    """The table of the runs of this experiment, whatever else the folder holds."""
    records = list(read_store(after.folder, keys={task.key for task in after.held}).values())
    print_tables(records)
    for note in unpaid_notes(records):
        typer.echo(f"warning: {note}", err=True)
