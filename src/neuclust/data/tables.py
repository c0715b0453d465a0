"""Comma-separated tables with a header, read in chunks: columns found by name, every row checked, bad ones named."""

import csv
import io
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal, Self

import polars as pl

from neuclust.data.raw import BadRows, Chunk, Progress, RawFile, decode, line_chunks, parsed_chunks
from neuclust.errors import DataError

LINE = "line"  # the number of a row's line in its file, beside the columns asked for
LARGEST = 2**63 - 1
_WHOLE = re.compile(r" *[+-]?\d{1,30} *", re.ASCII)  # blanks and signs as Polars takes them
_NUMBER = re.compile(r" *[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)? *", re.ASCII)

Kind = Literal["whole", "flag", "number", "text"]
TYPES: dict[str, type[pl.DataType]] = {"whole": pl.Int64, "flag": pl.Int64, "number": pl.Float64, "text": pl.String}


@dataclass(frozen=True, slots=True)
class Table:
    """The columns a reader needs and what each holds.

    - whole: a whole number from 0 to 2⁶³ − 1;
    - flag: 0 or 1;
    - number: a finite number, null where the field is empty;
    - text: anything, null where the field is empty.
    """

    columns: Mapping[str, Kind]

    @classmethod
    def of(cls, **names: Sequence[str]) -> Self:
        """The names of the columns of each kind."""
        kinds: dict[str, Kind] = {"whole": "whole", "flag": "flag", "number": "number", "text": "text"}
        return cls({name: kinds[kind] for kind, columns in names.items() for name in columns})

    @property
    def schema(self) -> dict[str, type[pl.DataType]]:
        return {LINE: pl.Int64} | {name: TYPES[kind] for name, kind in self.columns.items()}


def read_table(file: RawFile, table: Table, bad: BadRows, progress: Progress | None = None) -> Iterator[pl.DataFrame]:
    """Frames of `table.schema`, one for each chunk of the file; other columns are ignored."""
    header = _header(file, table)
    chunks = (_below_header(chunk) for chunk in line_chunks(file, progress=progress))
    frame_of = partial(pl.DataFrame, schema=table.schema, orient="row")
    yield from parsed_chunks(
        file, chunks, partial(_whole_chunk, header, table), partial(_row, header, table), frame_of, bad
    )


def whole_table(
    file: RawFile, table: Table, bad: BadRows, keep: pl.Expr | None = None, progress: Progress | None = None
) -> pl.DataFrame:
    """All rows of a file, or those that `keep` selects, in one frame."""
    frames = (frame if keep is None else frame.filter(keep) for frame in read_table(file, table, bad, progress))
    return pl.concat([pl.DataFrame(schema=table.schema), *frames])


def one_per_id(frame: pl.DataFrame, key: str, file: RawFile, bad: BadRows) -> pl.DataFrame:
    """The first row of every id, ascending by id; a second one is bad."""
    again = frame.filter(~pl.col(key).is_first_distinct())
    for number, value in again.select(LINE, key).iter_rows():
        bad.report(file, number, f"expected each {key} once, got {value} again")
    return frame.unique(key, keep="first", maintain_order=True).sort(key)


def _header(file: RawFile, table: Table) -> tuple[str, ...]:
    first = next(line_chunks(file, chunk_bytes=2**16), None)
    if first is None:
        raise DataError(f"{file.label}:1: expected the columns {', '.join(table.columns)}, the file is empty")
    line = first.data.split(b"\n", 1)[0].rstrip(b"\r").removeprefix(b"\xef\xbb\xbf")
    try:
        names = tuple(name.strip() for name in _cut(line))
    except ValueError as error:
        raise DataError(f"{file.label}:1: {error}") from None
    missing = [name for name in table.columns if name not in names]
    if missing:
        got = f"{','.join(names)[:200]!r} without {', '.join(missing)}"
        raise DataError(f"{file.label}:1: expected the columns {', '.join(table.columns)}, got {got}")
    twice = [name for name in table.columns if names.count(name) > 1]
    if twice:
        raise DataError(f"{file.label}:1: expected every column once, got {twice[0]} twice; rename one")
    return names


def _below_header(chunk: Chunk) -> Chunk:
    return chunk if chunk.first_line > 1 else Chunk(2, chunk.data.partition(b"\n")[2])


def _whole_chunk(header: tuple[str, ...], table: Table, chunk: Chunk) -> pl.DataFrame | None:
    """All rows at once, or None where anything at all is off."""
    lines = chunk.data.count(b"\n") + (not chunk.data.endswith(b"\n"))
    places = {f"column_{header.index(name) + 1}": name for name in table.columns}
    types = {place: TYPES[table.columns[name]] for place, name in places.items()}
    schema = {f"column_{i}": types.get(f"column_{i}", pl.String) for i in range(1, len(header) + 1)}
    try:
        frame = pl.read_csv(io.BytesIO(chunk.data), has_header=False, schema=schema)
    except pl.exceptions.PolarsError:
        return None
    if frame.height != lines or b"\r" in chunk.data.replace(b"\r\n", b"\n"):
        return None  # blank lines, or line ends inside of quotes: line numbers would be off
    frame = frame.select(pl.col(place).alias(name) for place, name in places.items())
    fine = [_fine(name, kind) for name, kind in table.columns.items()]
    if not frame.select(pl.all_horizontal(fine).all()).item():
        return None
    numbers = pl.int_range(chunk.first_line, chunk.first_line + frame.height, dtype=pl.Int64).alias(LINE)
    return frame.select(numbers, *table.columns)


def _fine(name: str, kind: Kind) -> pl.Expr:
    column = pl.col(name)
    if kind == "whole":
        return (column >= 0).fill_null(False)
    if kind == "flag":
        return column.is_between(0, 1).fill_null(False)
    return column.is_finite().fill_null(True) if kind == "number" else pl.lit(True)


def _row(header: tuple[str, ...], table: Table, number: int, line: bytes) -> tuple[object, ...]:
    values = _cut(line)
    if len(values) != len(header):
        raise ValueError(f"expected {len(header)} fields, got {len(values)}")
    fields = dict(zip(header, values, strict=True))
    return (number, *(_value(fields[name], name, kind) for name, kind in table.columns.items()))


def _value(text: str, name: str, kind: Kind) -> object:
    if kind == "text":
        return text or None
    if kind == "number":
        return _number(text, name)
    value = int(text) if _WHOLE.fullmatch(text) else -1
    if not 0 <= value <= LARGEST:
        raise ValueError(f"expected a whole number from 0 to {LARGEST} for {name}, got {text[:40]!r}")
    if kind == "flag" and value > 1:
        raise ValueError(f"expected 0 or 1 for {name}, got {text!r}")
    return value


def _number(text: str, name: str) -> float | None:
    if not text:
        return None
    value = float(text) if _NUMBER.fullmatch(text) else math.inf
    if not math.isfinite(value):
        raise ValueError(f"expected a finite number or nothing for {name}, got {text[:40]!r}")
    return value


def _cut(line: bytes) -> list[str]:
    try:
        return next(csv.reader([decode(line, "utf-8")], strict=True), [])
    except csv.Error as error:
        raise ValueError(f"expected comma-separated fields, got an unreadable line ({error})") from None
