"""A bar on stderr for long reads and writes; silent where stderr is no terminal."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

Show = Callable[[int, int | None], None]  # how much is done, and of how much where that is known by now


@contextmanager
def bar(label: str, total: int | None, *, unit: str = "bytes") -> Iterator[Show]:
    """Yields the function to call as work goes on."""
    if not sys.stderr.isatty():
        yield _say_nothing
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, MofNCompleteColumn, Progress, TextColumn
    from rich.progress import TimeRemainingColumn as TimeLeft

    amount = DownloadColumn() if unit == "bytes" else MofNCompleteColumn()
    columns = (TextColumn("{task.description}"), BarColumn(), amount, TimeLeft(compact=True))
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(label.replace("[", "\\["), total=total)
        yield lambda done, of: progress.update(task, completed=done, total=of)


def _say_nothing(_done: int, _of: int | None) -> None:
    """There is no terminal."""
