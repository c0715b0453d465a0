"""The commands and nothing heavy: torch, matplotlib and polars load inside the commands that need them."""

from typing import Annotated

import typer

from neuclust import __version__
from neuclust.cli.command import add_commands
from neuclust.cli.commands.backup import backup, restore
from neuclust.cli.commands.describe import clusters, envs, policies
from neuclust.cli.commands.evaluate import evaluate
from neuclust.cli.commands.keys import app as keys_app
from neuclust.cli.commands.multiverse import multiverse
from neuclust.cli.commands.replay import replay
from neuclust.cli.commands.reproduce import reproduce
from neuclust.cli.commands.results import compare, report
from neuclust.cli.commands.run import run
from neuclust.cli.commands.serve import serve
from neuclust.cli.commands.shop import shop
from neuclust.cli.commands.suite import suite
from neuclust.cli.commands.sweep import sweep
from neuclust.cli.commands.theory import theory
from neuclust.cli.commands.tune import tune
from neuclust.cli.data.commands import app as data_app

SUMMARY = "Choose K of many, again and again, and learn: neural combinatorial clustered bandits."

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},  # commands inherit them
)
add_commands(app, shop=shop, evaluate=evaluate)
add_commands(app, serve=serve, replay=replay, backup=backup, restore=restore)
add_commands(app, run=run, report=report, sweep=sweep, suite=suite, compare=compare, tune=tune, reproduce=reproduce)
add_commands(app, multiverse=multiverse, theory=theory, clusters=clusters, policies=policies)
app.command()(envs)
app.add_typer(data_app, name="data")
app.add_typer(keys_app, name="keys")


@app.command()
def version() -> None:
    """Print the version."""
    typer.echo(f"neuclust {__version__}")


def _print_version(wanted: bool) -> None:
    if wanted:
        version()
        raise typer.Exit


@app.callback(help=SUMMARY)
def root(
    show_version: Annotated[
        bool, typer.Option("--version", help="Print the version and leave.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    """Options of `neuclust` itself."""
