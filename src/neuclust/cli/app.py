"""The commands and nothing heavy: torch, matplotlib and polars load inside the commands that need them."""

from __future__ import annotations

from typing import Annotated

import typer

from neuclust import __version__
from neuclust.cli import clusters, compare, data, listing, report, reproduce, run, suite, sweep, tune

app = typer.Typer(
    help="Choose K of many, again and again, and learn: neural combinatorial clustered bandits.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},  # commands inherit them
)
app.command("run")(run.run)
app.command("report")(report.report)
app.command("sweep")(sweep.sweep)
app.command("suite")(suite.suite)
app.command("compare")(compare.compare)
app.command("tune")(tune.tune)
app.command("reproduce")(reproduce.reproduce)
app.command("clusters")(clusters.clusters)
app.command("policies")(listing.policies)
app.command("envs")(listing.envs)
app.add_typer(data.app, name="data")


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
