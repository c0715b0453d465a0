"""Commands as functions of one frozen record of options; errors name the option instead of the field.

A field is an option or argument, `rounds: int = option(1000, "Rounds per run.", "T")`, or a record that commands share.
"""

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from copy import copy
from dataclasses import MISSING, field, fields, is_dataclass
from functools import wraps
from inspect import Parameter, Signature
from types import EllipsisType
from typing import Any, TypeVar, get_type_hints

import typer
from typer.core import TyperCommand

from neuclust.errors import NeuclustError

Value = TypeVar("Value")
SEE = {"settings": "`neuclust policies NAME`"}  # the command that shows what a group of fields holds


def option(
    default: Value | EllipsisType,
    help: str,
    metavar: str | None = None,
    *names: str,
    heading: str | None = None,
    min: float | None = None,
) -> Value:
    """An option, required where the default is `...`; `names` where the field is called otherwise.

    The heading holds for the options after it, too.
    """
    return _field(default, typer.Option(default, *names, help=help, metavar=metavar, rich_help_panel=heading, min=min))


def flag(help: str, *names: str, heading: str | None = None) -> bool:
    """A field that is an option without a value."""
    return option(False, help, None, *names, heading=heading)


def argument(default: Value | EllipsisType, help: str, metavar: str) -> Value:
    """A field that is an argument, required where the default is `...`."""
    return _field(default, typer.Argument(default, help=help, metavar=metavar, show_default=False))


def _field(default: Value | EllipsisType, info: Any) -> Value:
    given: Any = MISSING if default is ... else default
    entry: Value = field(default=given, metadata={"info": info})  # what a dataclass takes for a default of this type
    return entry


def group(**helps: str) -> Any:
    """A field that is a group, with the help of the options that mean something else in this command."""
    return field(metadata={"helps": helps})


def add_commands(app: typer.Typer, **functions: Callable[[Any], None]) -> None:
    """Register functions of one record of options as commands; their docstrings are the help."""
    for name, function in functions.items():
        app.command(name, cls=Command)(_with_signature(function))


def _with_signature(function: Callable[[Any], None]) -> Callable[..., None]:
    """The function as one of all the options, which Typer reads off its signature."""
    (record,) = (kind for name, kind in get_type_hints(function).items() if name != "return")

    @wraps(function)
    def call(**values: Any) -> None:
        function(_filled(record, values))

    vars(call)["__signature__"] = Signature(_parameters(record))
    return call


def _parameters(record: Any) -> list[Parameter]:
    found, heading = [], None
    for name, kind, info in _flat(record, {}):
        heading = info.rich_help_panel = info.rich_help_panel or heading
        if kind is bool and not info.param_decls:
            info.param_decls = (f"--{name.replace('_', '-')}",)  # or Typer adds a --no- to it
        found.append(Parameter(name, Parameter.KEYWORD_ONLY, default=info, annotation=kind))
    return found


def _flat(record: Any, helps: Mapping[str, str]) -> Iterator[tuple[str, Any, Any]]:
    """Every option with its name, its type and a copy of what is said of it; `helps` replaces the help of some."""
    kinds = get_type_hints(record)
    for entry in fields(record):
        kind = kinds[entry.name]
        if is_dataclass(kind):
            yield from _flat(kind, entry.metadata.get("helps", {}))
        else:
            info = copy(entry.metadata["info"])
            info.help = helps.get(entry.name, info.help)
            yield entry.name, kind, info


def _filled(record: Any, values: Mapping[str, Any]) -> Any:
    """The record and the groups in it from flat values."""
    kinds = get_type_hints(record).items()
    return record(**{name: _filled(kind, values) if is_dataclass(kind) else values[name] for name, kind in kinds})


class Command(TyperCommand):
    """A command that puts `--slate-size` for `slate_size` in front of an error about it."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except NeuclustError as error:
            option = self._option(error.group or error.field)
            if option is None:
                raise
            named = f"{option} {error.field}" if error.group else option
            see = f" (see {SEE[error.group]})" if error.group in SEE else ""
            raise type(error)(f"{error.message}{see}", field=named) from error

    def _option(self, field: str | None) -> str | None:
        """The long option of this command that fills the field or is called like it, if it has one."""
        named = f"--{(field or '').replace('_', '-')}"
        names = [name for each in self.params if each.name == field or named in each.opts for name in each.opts]
        return next((name for name in names if name.startswith("--")), None)


@contextmanager
def advice(sentence: str) -> Iterator[None]:
    """Inside, errors end with what to do about them at the command line."""
    try:
        yield
    except NeuclustError as error:
        raise type(error)(f"{error.message}; {sentence}", field=error.field, group=error.group) from error


def limit_threads(threads: int = 1) -> None:
    """Before the libraries load: most read these once, at import."""
    for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ[name] = str(threads)
    import torch

    torch.set_num_threads(threads)
