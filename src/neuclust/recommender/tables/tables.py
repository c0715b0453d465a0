"""Tables of items and users as columns of plain values, from pandas, Polars, Arrow, dictionaries or a file."""

import gzip
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np

from neuclust.errors import DataError, close_names
from neuclust.extras import extra
from neuclust.recommender.tables.csv_tables import read_csv
from neuclust.recommender.tables.ids import distinct, other_form
from neuclust.recommender.tables.json_lines import parse_row, read_json_lines
from neuclust.recommender.tables.values import Id, Value, check_name, kind_of, plain_column, plain_id, shown

MOST_CELLS = 100_000_000  # of one table; an iterator without an end stops here
MOST_COLUMNS = 10_000
MOST_LISTED = 12  # columns in one sentence

FILES = "CSV, JSON lines or Parquet"
KNOWN = f"a pandas, Polars or Arrow table, a list of dictionaries, a dictionary of columns, or a path to {FILES}"
CSV, TSV, LINES = (".csv", ".csv.gz"), (".tsv", ".tsv.gz"), (".jsonl", ".ndjson", ".jsonl.gz", ".ndjson.gz")
PARQUET = (".parquet", ".pq")
_SINGLE = (str, int, float, bool, date, np.generic, type(None))  # of one row
Columns = dict[str, Any]  # name -> list, as it was given


@dataclass(frozen=True)
class Table:
    """Columns of plain values, all of `length` rows; of a file of text also the lines on which they stand."""

    columns: Mapping[str, list[Value]]
    length: int
    lines: tuple[int, ...] = ()

    def __len__(self) -> int:
        return self.length

    def place(self, row: int) -> str:
        """Where a row (0, 1, …) is found: `row 0`, `line 2`."""
        return f"line {self.lines[row]}" if self.lines else f"row {row}"

    def row(self, index: int) -> dict[str, Value]:
        """One row by column name."""
        return {name: values[index] for name, values in self.columns.items()}


def read_table(source: Any, name: str) -> Table:
    """Any table as plain values; `name` ("items", "users") begins the sentences of refusals.

    pandas: named index levels count as columns, an unnamed index is dropped. Lists of dictionaries: what a row does not
    have is missing in it. Strings may have any length here; the encoders limit those that are learned from.
    """
    lines: tuple[int, ...] = ()
    if isinstance(source, str | Path):
        columns, length, lines = _from_file(Path(source), name)
    else:
        columns, length = _columns(source, name)
    if len(columns) > MOST_COLUMNS or len(columns) * length > MOST_CELLS:
        got = f"got {length:,} rows of {len(columns):,} columns"
        raise DataError(f"{name}: expected at most {MOST_CELLS:,} cells and {MOST_COLUMNS:,} columns, {got}; split it")
    for column in columns:
        check_name(column, name)
    place = Table({}, length, lines).place
    plain = {str(column): plain_column(values, name, column, place) for column, values in columns.items()}
    return Table(plain, length, lines)


def _columns(source: Any, name: str) -> tuple[Columns, int]:
    """Columns by name, and the number of rows."""
    library = _library(source)
    if library == "pandas" and hasattr(source, "columns"):
        return _from_pandas(source, name)
    if library == "polars" and (hasattr(source, "collect") or hasattr(source, "columns")):
        return _from_polars(source, name)
    if library == "pyarrow" and (hasattr(source, "column_names") or hasattr(source, "read_all")):
        return _from_arrow(source.read_all() if hasattr(source, "read_all") else source, name)
    if isinstance(source, Mapping):
        return _from_columns(source, name)
    if isinstance(source, list | tuple | Iterator):
        return _from_rows(source, name)
    raise DataError(f"{name}: expected {KNOWN}, got {kind_of(source)}")


def _library(source: Any) -> str:
    """The library a table is of, told without importing it: subclasses too."""
    roots = [kind.__module__.partition(".")[0] for kind in type(source).__mro__]
    return next((root for root in roots if root in ("pandas", "polars", "pyarrow")), "")


def _from_pandas(frame: Any, name: str) -> tuple[Columns, int]:
    _check_once(list(frame.columns), name)
    levels = [level for level in frame.index.names if isinstance(level, str) and level]
    columns = {level: frame.index.get_level_values(level).tolist() for level in levels}
    return columns | {column: frame[column].tolist() for column in frame.columns}, len(frame)


def _from_polars(source: Any, name: str) -> tuple[Columns, int]:
    try:
        frame = source.collect() if hasattr(source, "collect") else source
    except Exception as error:  # a lazy frame has not been computed before: its files, names and types may be wrong
        raise DataError(f"{name}: expected a lazy frame that can be collected ({error!s:.200})") from None
    return {column: frame[column].to_list() for column in frame.columns}, len(frame)


def _from_arrow(table: Any, name: str) -> tuple[Columns, int]:
    names = list(table.column_names if hasattr(table, "column_names") else table.schema.names)
    _check_once(names, name)
    return {column: table.column(at).to_pylist() for at, column in enumerate(names)}, table.num_rows


def _check_once(names: list[Any], name: str) -> None:
    twice = [column for column, times in Counter(names).items() if times > 1]
    if twice:
        raise DataError(f"{name}: expected every column name once, got {shown(twice[0])} twice; rename one of them")


def _from_columns(source: Mapping[Any, Any], name: str) -> tuple[Columns, int]:
    """A dictionary of columns: lists, arrays or series of one length; one of single values is one row."""
    if source and all(isinstance(value, _SINGLE) for value in source.values()):
        return {column: [value] for column, value in source.items()}, 1
    columns = {column: _listed(values, name, column) for column, values in source.items()}
    lengths = {column: len(values) for column, values in columns.items()}
    if len(set(lengths.values())) > 1:
        first, *others = lengths
        odd = next(column for column in others if lengths[column] != lengths[first])
        got = f"got {lengths[first]} in {shown(first)} and {lengths[odd]} in {shown(odd)}"
        raise DataError(f"{name}: expected columns of one length, {got}")
    return columns, next(iter(lengths.values()), 0)


def _listed(values: Any, name: str, column: Any) -> list[Any]:
    if isinstance(values, np.ndarray) and values.ndim:
        return [*values] if values.dtype.kind in "Mm" else list(values.tolist())  # dates keep their unit
    for method in ("tolist", "to_pylist", "to_list"):
        listed = getattr(values, method, None)
        found = listed() if callable(listed) else None
        if isinstance(found, list):
            return found
    if isinstance(values, list | tuple | Iterator | range):
        return list(values)
    got = f"got {kind_of(values)} in {shown(column)}"
    raise DataError(f"{name}: expected a list of values for every column, {got}; give rows as a list of dictionaries")


def _from_rows(source: Iterable[Any], name: str) -> tuple[Columns, int]:
    """Dictionaries, one per row; the columns are all of their keys, in the order in which they appear."""
    rows: list[Mapping[Any, Any]] = []
    names: dict[Any, None] = {}
    cells = 0
    for at, row in enumerate(source):
        if not isinstance(row, Mapping):
            got = f"got {kind_of(row)} in row {at}"
            raise DataError(f"{name}: expected a dictionary for every row, {got}")
        cells += max(len(row), 1)
        if cells > MOST_CELLS:
            raise DataError(f"{name}: expected at most {MOST_CELLS:,} cells, got more by row {at:,}; split the table")
        rows.append(row)
        if not row.keys() <= names.keys():
            names |= dict.fromkeys(row)
    return {column: [row.get(column) for row in rows] for column in names}, len(rows)


def _from_file(path: Path, name: str) -> tuple[Columns, int, tuple[int, ...]]:
    """Columns by name, the number of rows, and the lines on which they stand in a file of text."""
    ending = path.name.lower()
    if not ending.endswith(CSV + TSV + LINES + PARQUET):
        endings, advice = ", ".join(CSV + TSV + LINES + PARQUET), "save it as CSV, or read it with pandas and give that"
        raise DataError(f"{name}: expected a path that ends in {endings}, got {str(path)!r:.200}; {advice}")
    try:
        if not path.is_file():
            raise DataError(f"{name}: expected a file, got {str(path)!r:.200}, which is none; check the path")
        if ending.endswith(PARQUET):
            return (*_from_parquet(path, name), ())
        if ending.endswith(LINES):
            return _from_lines(path, name)
        columns, lines = read_csv(path, name, MOST_CELLS, "\t" if ending.endswith(TSV) else ",")
        return columns, len(lines), lines
    except (OSError, ValueError) as error:
        raise DataError(f"{name}: expected a file that can be read, got {str(path)!r:.200} ({error!s:.200})") from None


def _from_lines(path: Path, name: str) -> tuple[Columns, int, tuple[int, ...]]:
    """JSON lines; .gz compressed."""
    try:
        with gzip.open(path, "rb") if path.suffix.lower() == ".gz" else path.open("rb") as file:
            rows = read_json_lines(file, parse_row)
    except (DataError, EOFError, zlib.error) as error:
        raise DataError(f"{name}: {path}: {error}") from None
    return (*_from_rows(rows.values(), name), tuple(rows))


def _from_parquet(path: Path, name: str) -> tuple[Columns, int]:
    with extra(f"{name}: reading Parquet"):
        import polars as pl
    try:
        frame = pl.read_parquet(path, glob=False)
    except Exception as error:  # Polars has many ways to say that a file is none
        raise DataError(f"{name}: expected a Parquet file, got {str(path)!r:.200} ({error!s:.200})") from None
    return _from_polars(frame, name)


def closest(name: str, known: Iterable[str]) -> str:
    """The column that was probably meant by a name that is none, else the first few there are."""
    names = [each[:100] for each in known]
    close = close_names(name[:100], names)
    if close:
        return f"did you mean {' or '.join(close)}?"
    more = ", …" if len(names) > MOST_LISTED else ""
    return f"the columns are {', '.join(names[:MOST_LISTED])}{more}" if names else "there are no columns"


def ids_of(table: Table, column: str, name: str) -> list[Id]:
    """The ids in a column, each a str or int, every one once; 17.0, which pandas makes of 17, becomes 17."""
    if not isinstance(column, str) or column not in table.columns:
        wanted = f"expected the column {shown(column)} with the ids"
        raise DataError(
            f"{name}: {wanted}, and there is none; {closest(column if isinstance(column, str) else '', table.columns)}"
        )
    ids = [_id(value, name, column, row, table) for row, value in enumerate(table.columns[column])]
    if len(distinct(ids)) < len(ids):
        raise _twice(ids, name, column, table)
    return ids


def _twice(ids: list[Id], name: str, column: str, table: Table) -> DataError:
    seen: set[Id] = set()
    for row, each in enumerate(ids):
        other = other_form(each)
        if each in seen or (other is not None and other in seen):
            same = "" if each in seen else f", which is the same id as {other!r:.100}"
            got = f"got {each!r:.100} again in {table.place(row)}{same}"
            return DataError(f"{name}: column {column!r:.100}: expected every id once, {got}; keep one row of it")
        seen.add(each)
    raise ValueError("expected an id that comes twice, got none")


def _id(value: Value, name: str, column: str, row: int, table: Table) -> Id:
    if type(value) is str and 0 < len(value) <= 100:  # nearly all: no text for a sentence that is not needed
        return value
    return plain_id(value, f"{name}: column {column!r:.100}, {table.place(row)}")
