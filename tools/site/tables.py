"""Markdown tables whose cells may hold anything."""

from collections.abc import Iterable, Sequence


def cell(text: str) -> str:
    """A text as a cell: one line, bars escaped."""
    return " ".join(text.split()).replace("|", r"\|")


def code(text: str) -> str:
    """A text as code in a cell; nothing where there is nothing."""
    return f"`{text}`" if text else ""


def table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [headings, ["---"] * len(headings), *rows]
    return "\n".join(f"| {' | '.join(cell(each) for each in line)} |" for line in lines)
