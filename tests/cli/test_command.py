"""A command is a function of one record: its fields are the options, and errors name them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import pytest
import typer
from typer.main import get_command
from typer.testing import CliRunner

from neuclust.cli.app import app as neuclust
from neuclust.cli.command import Command, add_commands, advice, argument, flag, group, option
from neuclust.errors import ConfigError, DataError


@dataclass(frozen=True, slots=True)
class Shared:
    rounds: int = option(3, "Rounds.", "T", heading="The problem", min=1)
    slate_size: int | None = option(None, "Arms.", "K")


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    file: str = argument(..., "A file.", "FILE")
    out: str = option(..., "A folder.", "DIR")
    shared: Shared = group(rounds="Rounds of this one.")
    settings: list[str] | None = option(None, "Settings.", "KEY=VALUE", "--set", heading="More")
    dry_run: bool = flag("Only look.")
    quiet: bool = flag("Say less.", "--quiet", "-q")


GIVEN: list[Options] = []


def play(options: Options) -> None:
    """Play a file."""
    GIVEN.append(options)
    if options.quiet and options.dry_run:
        raise ConfigError("expected a number", field="alpha", group="settings")
    if options.quiet:
        raise ConfigError("expected noise", field="slate_size")


def other(options: Shared) -> None:
    """Play nothing."""
    with advice("`neuclust run` makes some"):
        raise DataError("expected records, found none", field="place")


APP = typer.Typer()
add_commands(APP, play=play, other=other)


def test_the_record_is_filled_from_options_and_defaults() -> None:
    plain = Options(file="a", out="b", shared=Shared(3, None), settings=None, dry_run=False, quiet=False)
    cases: tuple[tuple[list[str], Options], ...] = (
        ([], plain),
        (["--rounds", "5", "--slate-size", "2"], replace(plain, shared=Shared(5, 2))),
        (["--set", "x=1", "--set", "y=2", "--dry-run"], replace(plain, settings=["x=1", "y=2"], dry_run=True)),
    )
    for more, expected in cases:
        assert CliRunner().invoke(APP, ["play", "a", "--out", "b", *more]).exit_code == 0
        assert GIVEN.pop() == expected
    for wrong in (["a"], ["--out", "b"], ["a", "--out", "b", "--rounds", "0"], ["a", "--out", "b", "--no-dry-run"]):
        assert CliRunner().invoke(APP, ["play", *wrong]).exit_code == 2
    assert GIVEN == []


def test_options_stand_in_order_under_the_heading_before_them() -> None:
    commands: Any = get_command(APP)
    parameters = commands.commands["play"].params
    assert [parameter.name for parameter in parameters] == [
        *("file", "out", "rounds", "slate_size", "settings", "dry_run", "quiet")
    ]
    panels = [parameter.rich_help_panel for parameter in parameters]
    assert panels == [None, None, "The problem", "The problem", "More", "More", "More"]
    assert [parameters[2].help, commands.commands["other"].params[0].help] == ["Rounds of this one.", "Rounds."]
    assert commands.commands["play"].help == "Play a file."


def test_errors_name_the_option_of_their_field() -> None:
    error = CliRunner().invoke(APP, ["play", "a", "--out", "b", "-q"]).exception
    assert (type(error), str(error)) == (ConfigError, "--slate-size: expected noise")
    error = CliRunner().invoke(APP, ["play", "a", "--out", "b", "--dry-run", "-q"]).exception
    assert str(error) == "--set alpha: expected a number (see `neuclust policies NAME`)"
    error = CliRunner().invoke(APP, ["other"]).exception
    assert (type(error), str(error)) == (DataError, "place: expected records, found none; `neuclust run` makes some")


def leaves(command: Any, name: str = "neuclust") -> Iterator[tuple[str, Any]]:
    """Every command with its whole name."""
    if not hasattr(command, "commands"):
        yield name.removeprefix("neuclust "), command
    for key, inner in getattr(command, "commands", {}).items():
        yield from leaves(inner, f"{name} {key}")


COMMANDS = dict(leaves(get_command(neuclust)))
PROBLEM = ("env", "data", "rounds", "slate_size", "slate_reward", "arms_per_round", "start_ratings")
FIELDS = {
    "run": (*PROBLEM, "policy", "preset", "clusters", "settings", "seeds", "device", "save"),
    "tune": (*PROBLEM, "policy", "settings", "param", "grid", "trials", "tune_seeds", "report_seeds", "out"),
    "sweep": ("engine", "workers", "address", "out"),
    "suite": ("engine", "workers", "policy", "problem", "settings", "data", "out"),
    "reproduce": ("engine", "workers", "data", "policy", "clusters", "rounds", "out"),
    "clusters": ("env", "data", "choose"),
    "compare": ("baseline", "confidence"),
    "data prepare movielens": ("after", "before", "min_ratings", "min_movie_ratings", "skip_rounds", "skip_bad"),
    "data prepare replay": ("after", "before", "split", "shrink", "threshold", "min_arms", "encoding"),
    "data prepare kuairand": (
        *("reward", "pool", "rows", "after", "before", "levels", "shrink", "seed", "skip_bad", "out", "contexts"),
    ),
    "data prepare obd": ("logger", "campaign", "levels", "skip_bad", "out"),
    "data generate kuairand": ("rows", "users", "videos", "seed"),
    "data prepare yelp": ("after", "before", "min_term_weight", "rounds", "skip_rounds", "skip_bad"),
}
RENAMED = {("run", "settings"): "--set", ("suite", "settings"): "--set", ("tune", "settings"): "--param"}


@pytest.mark.parametrize("name", sorted(FIELDS))
def test_what_the_library_calls_a_field_is_an_option_of_the_command(name: str) -> None:
    command = COMMANDS[name]
    assert isinstance(command, Command)
    for field in FIELDS[name]:
        expected = RENAMED.get((name, field), f"--{field.replace('_', '-')}")
        assert command._option(field) == expected


def test_every_command_with_options_names_them_in_errors() -> None:
    assert [name for name, command in COMMANDS.items() if command.params and not isinstance(command, Command)] == []
