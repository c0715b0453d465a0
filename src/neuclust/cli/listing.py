"""`neuclust policies` and `neuclust envs`: what can be named on the command line."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Annotated

import typer


def policies(
    name: Annotated[
        str | None,
        typer.Argument(metavar="NAME[:PRESET]", help="One policy: every setting, for --set.", show_default=False),
    ] = None,
) -> None:
    """List the policies and their presets, or the settings of one."""
    from neuclust.registry import policies as known

    if name is not None:
        _settings(name)
        return
    rows = [(spec.name, spec.summary, ", ".join(spec.presets)) for spec in known().values()]
    _print_rows(("policy", "what it does", "presets"), rows)


def _settings(name: str) -> None:
    from neuclust.configuration import entries
    from neuclust.registry import policy_config, split_name

    policy, preset = split_name(name)
    values = entries(policy_config(policy, preset or "default"))
    _print_rows(("setting", "value"), [(key, _shown(value)) for key, value in values.items()])


def _shown(value: object) -> str:
    """A value as --set would take it."""
    if isinstance(value, bool) or value is None:
        return str(value).lower()
    return ",".join(map(str, value)) if isinstance(value, tuple) else str(value)


def envs() -> None:
    """List the problems that can be named."""
    from neuclust.environments.catalogue import environments

    _print_rows(("problem", "what it is"), [(spec.name, spec.summary) for spec in environments().values()])


def _print_rows(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    from neuclust.cli.console import make_console

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for index, heading in enumerate(headings):
        table.add_column(heading, no_wrap=index == 0)
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    make_console().print(table)
