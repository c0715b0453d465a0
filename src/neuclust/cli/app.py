"""The commands and nothing heavy: torch, matplotlib and polars load inside the commands that need them."""

from __future__ import annotations

from typing import Annotated

import typer

from neuclust import __version__
from neuclust.cli import clusters, compare, listing, report, reproduce, run, suite, sweep, tune
from neuclust.cli.command import Command
from neuclust.cli.data.commands import app as data_app

app = typer.Typer(
    help="Choose K of many, again and again, and learn: neural combinatorial clustered bandits.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},  # commands inherit them
)
app.command("run", cls=Command)(run.run)
app.command("report", cls=Command)(report.report)
app.command("sweep", cls=Command)(sweep.sweep)
app.command("suite", cls=Command)(suite.suite)
app.command("compare", cls=Command)(compare.compare)
app.command("tune", cls=Command)(tune.tune)
app.command("reproduce", cls=Command)(reproduce.reproduce)
app.command("clusters", cls=Command)(clusters.clusters)
app.command("policies", cls=Command)(listing.policies)
app.command("envs", cls=Command)(listing.envs)
app.add_typer(data_app, name="data")


@app.command()
def version() -> None:
    """Print the version."""
    typer.echo(f"neuclust {__version__}")


def _print_version(wanted: bool) -> None:
    if wanted:
        version()
        raise typer.Exit


@app.callback()
def root(
    show_version: Annotated[
        bool,
        typer.Option("--version", help="Print the version and leave.", callback=_print_version, is_eager=True),
    ] = False,
) -> None:
    """Choose K of many, again and again, and learn: neural combinatorial clustered bandits."""
