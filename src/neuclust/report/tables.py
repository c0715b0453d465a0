"""Tables in general: CSV and Markdown as text, and tables for a terminal."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.table import Table


def csv_text(rows: Iterable[Iterable[object]]) -> str:
    """Rows as CSV, headings first; an empty cell where there is no number."""
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows(rows)
    return out.getvalue()


def markdown_text(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table."""
    lines = [headings, ["---"] * len(headings), *rows]
    return "".join(f"| {' | '.join(cell.replace('|', '/') for cell in line)} |\n" for line in lines)


def terminal_table(
    headings: Sequence[str],
    rows: Iterable[Sequence[str]],
    words: Iterable[str],
    *,
    title: str | None = None,
    bold: Iterable[tuple[int, int]] = (),
) -> Table:
    """A Rich table: columns of `words` on the left, numbers on the right; `bold` are cells (row, column)."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    strong, left = set(bold), set(words)
    table = Table(
        title=Text(title) if title else None, title_justify="left", caption_justify="left", box=box.SIMPLE_HEAD
    )
    for heading in headings:
        table.add_column(heading, justify="left" if heading in left else "right", no_wrap=title is not None)
    for row, cells in enumerate(rows):
        styles = ["bold" if (row, column) in strong else "" for column in range(len(cells))]
        table.add_row(*(Text(cell, style=style) for cell, style in zip(cells, styles, strict=True)))
    return table
