"""`neuclust policies` and `neuclust envs`: what can be named on the command line."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def policies() -> None:
    """List the policies and their presets."""
    from neuclust.presets import POLICIES

    rows = [(spec.name, spec.summary, ", ".join(spec.presets)) for spec in POLICIES.values()]
    _print_rows(("policy", "what it does", "presets"), rows)


def envs() -> None:
    """List the built-in problems."""
    from neuclust.environments.catalogue import ENVIRONMENTS

    _print_rows(("problem", "what it is"), [(spec.name, spec.summary) for spec in ENVIRONMENTS.values()])


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
