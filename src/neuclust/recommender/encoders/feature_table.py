"""How every column is read, as a table for a terminal or a notebook."""

from collections.abc import Iterator
from dataclasses import astuple, dataclass
from html import escape

WIDEST, LONGEST = 60, 160  # characters of a cell in the text, and of the last one of a row
HEADINGS = ("table", "column", "kind", "columns", "how", "why")
NUMBER = 3  # the column that is a number


@dataclass(frozen=True)
class FeatureRow:
    """One column: how many columns of numbers it makes, how they are made, and why it is read so."""

    table: str
    column: str
    kind: str
    width: int
    detail: str
    reason: str


@dataclass(frozen=True)
class FeatureTable:
    """Rows for all columns, and a line for each way in which user and item columns meet."""

    rows: tuple[FeatureRow, ...]
    crosses: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[FeatureRow]:
        return iter(self.rows)

    def __str__(self) -> str:
        lines = [list(HEADINGS), *(_cells(row) for row in self.rows)]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        lines.insert(1, ["-" * width for width in widths])
        text = ["  ".join(_aligned(line, widths)).rstrip() for line in lines]
        return "\n".join([*text, *(f"crossed: {_printable(cross)}" for cross in self.crosses)])

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{heading}</th>" for heading in HEADINGS)
        body = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in _cells(row))}</tr>" for row in self.rows)
        crosses = "".join(f"<p>crossed: {escape(_printable(cross))}</p>" for cross in self.crosses)
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{crosses}"


def _aligned(line: list[str], widths: list[int]) -> list[str]:
    pairs = enumerate(zip(line, widths, strict=True))
    return [cell.rjust(width) if at == NUMBER else cell.ljust(width) for at, (cell, width) in pairs]


def _cells(row: FeatureRow) -> list[str]:
    *cells, why = map(str, astuple(row))
    return [*(_shown(cell, WIDEST) for cell in cells), _shown(why, LONGEST)]


def _shown(text: str, most: int) -> str:
    whole = _printable(text)
    return whole if len(whole) <= most else whole[: most - 1] + "…"


def _printable(text: str) -> str:
    """Names come from data: line breaks and control characters would break the table or the terminal."""
    return "".join(letter if letter.isprintable() else "?" for letter in text)
