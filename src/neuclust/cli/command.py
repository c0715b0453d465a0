"""Commands as functions of one frozen record of options, with errors that name the option instead of the field.

A field of the record is an option or an argument: its name, type and default are those of the parameter, and `option`,
`flag` or `argument` in its `Annotated` says the rest; a `Heading` behind it begins a panel of the help. A field whose
type is itself such a record is a group that commands share: its options take its place.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from copy import copy
from dataclasses import MISSING, Field, fields, is_dataclass
from functools import wraps
from inspect import Parameter, Signature
from typing import Annotated, Any, TypeVar, get_type_hints

import typer
from typer.core import TyperCommand

from neuclust.errors import NeuclustError

Record = TypeVar("Record")


class Heading(str):
    """The title of a panel of the help, which this option and those after it share."""


def option(help: str, metavar: str | None = None, *names: str, min: float | None = None) -> Any:
    """What `--help` says of an option; `names` where the field is called otherwise."""
    return typer.Option(*names, help=help, metavar=metavar, min=min)


def flag(help: str, *names: str) -> Any:
    """An option that is given or not; with a name Typer adds no `--no-` to it."""
    return typer.Option(*names, help=help)


def argument(help: str, metavar: str) -> Any:
    """What `--help` says of an argument."""
    return typer.Argument(help=help, metavar=metavar, show_default=False)


def add_command(app: typer.Typer, name: str, function: Callable[[Record], None]) -> None:
    """Register a function of one record of options as a command; its docstring is the help."""
    (record,) = (kind for key, kind in get_type_hints(function).items() if key != "return")

    @wraps(function)
    def call(**values: Any) -> None:
        function(_filled(record, values))

    vars(call)["__signature__"] = Signature(_parameters(record))  # what Typer makes options of
    app.command(name, cls=Command)(call)


def _parameters(record: Any) -> list[Parameter]:
    annotated: Any = Annotated  # with types that are known at run time only
    found, heading = [], None
    for entry, kind, (info, *begun) in _flat(record, {}):
        heading = info.rich_help_panel = begun[0] if begun else heading
        default = Parameter.empty if entry.default is MISSING else entry.default
        found.append(Parameter(entry.name, Parameter.KEYWORD_ONLY, default=default, annotation=annotated[kind, info]))
    return found


def _flat(record: Any, helps: Mapping[str, str]) -> Iterator[tuple[Field[Any], Any, list[Any]]]:
    """Every option with its type and what is said of it; `helps` replaces the help of some."""
    kinds, hints = get_type_hints(record), get_type_hints(record, include_extras=True)
    for entry in fields(record):
        kind = kinds[entry.name]
        said: tuple[Any, ...] = getattr(hints[entry.name], "__metadata__", ({},))
        if is_dataclass(kind):
            yield from _flat(kind, said[0])
        else:
            info = copy(said[0])  # commands share it
            info.help = helps.get(entry.name, info.help)
            yield entry, kind, [info, *said[1:]]


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
            raise type(error)(error.message, field=named) from error

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
        raise type(error)(f"{error.message}; {sentence}", field=error.field) from error


def limit_threads(threads: int = 1) -> None:
    """Before the libraries load: most read these once, at import."""
    for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ[name] = str(threads)
    import torch

    torch.set_num_threads(threads)
