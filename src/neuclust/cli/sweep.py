"""`neuclust sweep`: every run of an experiment file that its folder does not hold yet."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from neuclust.cli.folders import require_writable
from neuclust.cli.run import limit_threads

if TYPE_CHECKING:
    from neuclust.experiment.spec import SweepSpec
    from neuclust.experiment.tasks import Task


def sweep(
    file: Annotated[Path, typer.Argument(metavar="FILE.toml", help="An experiment: see docs/sweeps.md.")],
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Folder of records. Default: results/NAME.", show_default=False)
    ] = None,
    engine: Annotated[str, typer.Option(metavar="NAME", help="process, inline or ray.")] = "process",
    workers: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Runs at once. Default: one for each core.")
    ] = None,
    address: Annotated[
        str | None, typer.Option(metavar="ADDRESS", help="A Ray cluster; default: a local one for this sweep.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Check, list what would run, and leave.")] = False,
    retry_failed: Annotated[bool, typer.Option("--retry-failed", help="Try runs that failed earlier again.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Say nothing but failures.")] = False,
) -> None:
    """Run an experiment file: what is done is skipped, so a sweep can be stopped, killed and started again.

    Exit codes: 0 all runs are there; 1 some failed; 130 stopped by Ctrl-C.
    """
    limit_threads(1)
    from neuclust.cli.sweep_session import execute
    from neuclust.experiment.engines.engine import make_engine
    from neuclust.experiment.spec import read_spec
    from neuclust.experiment.tasks import tasks_of

    chosen = make_engine(engine, workers, address)
    spec = read_spec(file)
    tasks, folder = tasks_of(spec), out or Path("results") / spec.name
    if dry_run:
        _list(folder, tasks, retry_failed)
        return
    require_writable("--out", folder)
    if not quiet:
        _say_rewards(spec)
    raise typer.Exit(execute(folder, tasks, chosen, retry_failed, quiet))


def _say_rewards(spec: SweepSpec) -> None:
    """Whose rewards are played, one line per problem."""
    from neuclust.experiment.problem import rewards_sentence

    for problem, source in zip(spec.problems, spec.rewards, strict=True):
        typer.echo(f"{problem.name}: {rewards_sentence(source, problem.name)}", err=True)


def _list(folder: Path, tasks: tuple[Task, ...], retry_failed: bool) -> None:
    """What would run, one a line on stdout; nothing is written, not even the folder."""
    from neuclust.cli.folders import say_bad
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
