"""Tables in general: CSV, Markdown and plain LaTeX as text, and tables for a terminal."""

import csv
import io
from collections.abc import Iterable, Sequence

from rich import box
from rich.table import Table
from rich.text import Text

SPECIAL = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": "$<$", ">": "$>$", "|": "$|$", '"': "''",
    "±": r"$\pm$", "−": "$-$", "–": "--", "…": r"\ldots{}", "γ": r"$\gamma$", "λ": r"$\lambda$",
}  # fmt: skip


def csv_text(rows: Iterable[Iterable[object]]) -> str:
    """Rows as CSV, headings first; an empty cell where there is no number."""
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows(rows)
    return out.getvalue()


def markdown_text(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table."""
    lines = [headings, ["---"] * len(headings), *rows]
    return "".join(f"| {' | '.join(cell.replace('|', '/') for cell in line)} |\n" for line in lines)


def latex_escape(text: str) -> str:
    """Text that LaTeX prints as it stands; what its plain fonts lack is named by its code point."""
    plain = (" " if letter.isspace() else letter for letter in text)
    return "".join(SPECIAL.get(each) or (each if " " <= each <= "~" else f"(U+{ord(each):04X})") for each in plain)


def latex_tabular(columns: str, rows: Iterable[Sequence[str]], notes: Iterable[str]) -> str:
    """A `tabular` whose first row holds the headings; notes stand before it as comments of one line each."""
    head, *lines = [" & ".join(cells) + r" \\" for cells in rows]
    comments = [f"% {' '.join(note.split())}" for note in notes]
    begin, end = rf"\begin{{tabular}}{{{columns}}}", r"\end{tabular}"
    return "\n".join([*comments, begin, r"\hline", head, r"\hline", *lines, r"\hline", end, ""])


def terminal_table(
    headings: Sequence[str],
    rows: Iterable[Sequence[str]],
    words: Iterable[str],
    *,
    title: str | None = None,
    bold: Iterable[tuple[int, int]] = (),
) -> Table:
    """A Rich table: columns of `words` on the left, numbers on the right; `bold` are cells (row, column)."""
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
