"""`neuclust sweep`: every run of an experiment file that its folder does not hold yet."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from neuclust.cli.command import argument, flag, limit_threads, option
from neuclust.cli.options import engine_option, quiet_flag, retry_flag, workers_option
from neuclust.cli.outputs import require_writable, say_bad

if TYPE_CHECKING:
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
    mlflow: str | None = option(None, "An MLflow store that gets every record, such as sqlite:///mlflow.db.", "URI")
    quiet: bool = quiet_flag()


def sweep(options: SweepOptions) -> None:
    """Run an experiment file: what is done is skipped, so a sweep can be stopped, killed and started again.

    Exit codes: 0 all runs are there; 1 some failed; 130 stopped by Ctrl-C.
    """
    limit_threads()
    from neuclust.cli.session import sweep_tasks
    from neuclust.experiment.engines.engine import make_engine
    from neuclust.experiment.problem import rewards_sentence
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
    if options.mlflow is None:
        raise typer.Exit(sweep_tasks(folder, tasks, engine, options.retry_failed, options.quiet))
    from neuclust.cli.mlflow_session import sent_to_mlflow

    with sent_to_mlflow(options.mlflow, spec.name, folder, tasks) as sink:
        code = sweep_tasks(folder, tasks, engine, options.retry_failed, options.quiet, also=sink)
    raise typer.Exit(code)


def _list(folder: Path, tasks: tuple[Task, ...], retry_failed: bool) -> None:
    """What would run, one per line on stdout; nothing is written, not even the folder."""
    from neuclust.cli.views import standing_sentence
    from neuclust.experiment.store import MARK, flaws, open_store
    from neuclust.experiment.sweep import standing

    if (folder / MARK).exists():
        open_store(folder)
        for sentence in flaws(folder, (task.key for task in tasks)):
            say_bad(sentence)
    found = standing(folder, tasks)
    todo = found.missing + (found.failed if retry_failed else ())
    for task in todo:
        typer.echo(f"{task.key}  {task.title}, {task.rounds} rounds")
    typer.echo(standing_sentence(found, todo), err=True)
