"""Consoles and final tables: plain text wherever the stream is no terminal."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.console import Console

if TYPE_CHECKING:
    from neuclust.experiment.records import RunRecord

PIPE_WIDTH = 200  # no table is cut where there is no window


def make_console(*, stderr: bool = False) -> Console:
    """A console without any escape code where its stream is no terminal or NO_COLOR is set."""
    stream = sys.stderr if stderr else sys.stdout
    if stream.isatty() and not os.environ.get("NO_COLOR"):
        return Console(stderr=stderr, highlight=False)
    width = None if stream.isatty() or os.environ.get("COLUMNS") else PIPE_WIDTH
    return Console(stderr=stderr, color_system=None, highlight=False, width=width)


def print_tables(records: Sequence[RunRecord]) -> None:
    """The final table of each problem, with its notes."""
    from neuclust.analysis.summary import summaries
    from neuclust.report.results import rich_table, text_table

    console = make_console()
    if not console.is_terminal:
        sys.stdout.write(text_table(records))
        return
    for summary in summaries(records):
        console.print(rich_table(summary, console.width))
        for note in summary.notes:
            console.print(note, markup=False)
