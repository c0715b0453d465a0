"""CSV files as columns of typed values: the cells of a column decide what it holds.

Columns of whole numbers, of numbers, of true and false and of ISO dates become these; everything else stays text, so
that ids such as 00017 keep their zeros. The standard library reads the file: it tells repeated headings, which most
readers rename.
"""

import csv
import gzip
import re
import zlib
from collections.abc import Callable
from datetime import date, datetime
from pathlib import Path
from typing import Any, TextIO

from neuclust.errors import DataError
from neuclust.recommender.tables.texts import is_missing, is_number

_WHOLE = re.compile(r"\s*-?(0|[1-9][0-9]{0,49})\s*")
_FLAGS = {"true": True, "false": False}
_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_MOMENT = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,9})?)?(Z|[+-][0-9]{2}:?[0-9]{2})?"
)
SEPARATORS = {",": "commas", "\t": "tabs", ";": "semicolons", "|": "bars"}


def read_csv(
    path: Path, name: str, most_cells: int, separator: str = ","
) -> tuple[dict[str, list[Any]], tuple[int, ...]]:
    """Columns of a CSV file (UTF-8, a line of headings; .gz compressed) and the line on which each row begins."""
    try:
        with _opened(path) as file:
            lines = csv.reader(file, delimiter=separator, skipinitialspace=separator == ",", strict=True)
            headings = next(lines, [])
            _check_headings(headings, path, name, separator)
            rows = _rows(lines, headings, path, name, most_cells)
    except UnicodeDecodeError:
        raise DataError(f"{name}: expected a CSV file in UTF-8, got other bytes in {path}; save it as UTF-8") from None
    except (csv.Error, EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise DataError(f"{name}: expected a CSV file, got one that cannot be read at {path} ({error})") from None
    columns = [list(column) for column in zip(*rows.values(), strict=True)] if rows else [[] for _ in headings]
    return {heading: typed(column) for heading, column in zip(headings, columns, strict=True)}, tuple(rows)


def _opened(path: Path) -> TextIO:
    if path.suffix.lower() == ".gz":
        return gzip.open(path, "rt", encoding="utf-8-sig", newline="")
    return path.open(encoding="utf-8-sig", newline="")


def _check_headings(headings: list[str], path: Path, name: str, separator: str) -> None:
    if len(headings) == 1 and any(other in headings[0] for other in SEPARATORS):
        wanted, got = SEPARATORS[separator], f"got the one heading {headings[0]!r:.100} in {path}"
        raise DataError(f"{name}: expected a CSV file with {wanted} between its cells, {got}; save it with {wanted}")
    seen: set[str] = set()
    for heading in headings:
        if heading in seen:
            got = f"got {heading!r:.100} twice in {path}"
            raise DataError(f"{name}: expected every column name once, {got}; rename one of them")
        seen.add(heading)


def _rows(lines: Any, headings: list[str], path: Path, name: str, most_cells: int) -> dict[int, list[str]]:
    """All rows by the line on which they begin; empty lines are left out, a line of another length is refused."""
    rows: dict[int, list[str]] = {}
    most = most_cells // max(len(headings), 1)
    ended = lines.line_num
    for line in lines:
        number, ended = ended + 1, lines.line_num
        if not line:
            continue
        if len(line) != len(headings):
            got = f"got {len(line)} in line {number} of {path}"
            raise DataError(f"{name}: expected {len(headings)} cells per row, as there are headings, {got}")
        if len(rows) >= most:
            raise DataError(f"{name}: expected at most {most_cells:,} cells, got more in {path}; split the table")
        rows[number] = line
    return rows


def typed(cells: list[str]) -> list[Any]:
    """One column: empty cells are None, the others numbers, booleans or dates where all of them can be read so.

    Beside such values NA, NULL, - and the like (`texts.MISSING`) are None too; in a column of texts they are texts.
    """
    texts = [cell if cell and not cell.isspace() else None for cell in cells]
    present = [cell for cell in texts if cell is not None]
    convert = _converter(present)
    if convert is None:
        present = [cell for cell in present if not is_missing(cell)]
        convert = _converter(present)
    if convert is None:
        return list(texts)
    try:
        found = dict(zip(present, map(convert, present), strict=True))
    except ValueError:  # 2024-02-31 has the form of a date
        return list(texts)
    return [None if cell is None else found.get(cell) for cell in texts]


def _converter(cells: list[str]) -> Callable[[str], Any] | None:
    if not cells:
        return None
    first = cells[0]
    tests: list[tuple[Callable[[str], object], Callable[[str], Any]]] = [
        (_WHOLE.fullmatch, int),
        (is_number, float),
        (lambda cell: cell.strip().lower() in _FLAGS, lambda cell: _FLAGS[cell.strip().lower()]),
        (_DAY.fullmatch, date.fromisoformat),
        (lambda cell: _DAY.fullmatch(cell) or _MOMENT.fullmatch(cell), datetime.fromisoformat),
    ]
    for test, convert in tests:
        if test(first) and all(map(test, cells)):
            return convert
    return None
