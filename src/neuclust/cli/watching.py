"""A moving row on a terminal while a command works: what it does, how much of it is done; nothing elsewhere."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from neuclust.cli.console import make_console

Watch = Callable[[str, int, int], None]  # what is done, how much of it, out of how much
REFRESH_SECONDS = 0.1


@contextmanager
def watching(quiet: bool) -> Iterator[Watch]:
    """A moving row on a terminal, nothing elsewhere."""
    console = make_console(stderr=True)
    if quiet or not console.is_terminal or console.is_dumb_terminal:
        yield lambda *_: None
        return
    columns = TextColumn("{task.description}"), BarColumn(bar_width=30), MofNCompleteColumn()
    with Progress(*columns, TimeRemainingColumn(compact=True), console=console, transient=True) as rows:
        row, shown = rows.add_task("reading", total=None), 0.0

        def watch(what: str, done: int, total: int) -> None:
            nonlocal shown
            if monotonic() - shown >= REFRESH_SECONDS or done == total:
                shown = monotonic()
                rows.update(row, description=what, completed=done, total=total)

        yield watch
