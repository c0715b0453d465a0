"""MovieLens files as published: 1M and 10M (`::`, no header), 20M, 25M, 32M and latest (csv)."""

import codecs
import csv
import io
from dataclasses import dataclass

import polars as pl

from neuclust.data.raw import BadRows, Chunk, Progress, RawFile, decode, line_chunks, parsed_chunks
from neuclust.errors import ConfigError, DataError

BEST_RATING = 5.0
WORST_RATING = 0.5
GRID = 0.5  # ratings are given in half stars
RATING_TYPES = {"userId": pl.Int32, "movieId": pl.Int32, "rating": pl.Float32, "timestamp": pl.Int64}
RATING_COLUMNS = tuple(RATING_TYPES)
MOVIE_COLUMNS = ("movieId", "title", "genres")
LARGEST_ID = 2**31 - 1


@dataclass(frozen=True, slots=True)
class _Layout:
    """How a ratings or movies file is cut into columns."""

    separator: str
    columns: tuple[str, ...]  # all of them, in file order
    header_lines: int
    encoding: str

    def split(self, line: str) -> list[str]:
        return line.split("::") if self.separator == "::" else _cut(line)


def _cut(line: str) -> list[str]:
    try:
        return next(csv.reader([line]), [])
    except csv.Error as error:
        raise ValueError(f"expected comma-separated fields, got an unreadable line ({error})") from None


def read_movies(file: RawFile, encoding: str, bad: BadRows) -> dict[int, str]:
    """movieId -> genres field."""
    layout = _layout(file, MOVIE_COLUMNS, encoding)
    genres: dict[int, str] = {}
    where: dict[int, int] = {}
    for number, line in (numbered for chunk in line_chunks(file) for numbered in chunk.lines()):
        if number <= layout.header_lines:
            continue
        try:
            fields = _fields(line, layout, MOVIE_COLUMNS)
            movie = _identifier(fields["movieId"], "movieId")
            if movie in genres:
                raise ValueError(f"expected each movieId once, got {movie} as in line {where[movie]}")
            genres[movie], where[movie] = fields["genres"], number
        except ValueError as error:
            bad.report(file, number, str(error))
    if not genres:
        raise DataError(f"{file.label}: expected movies below the header, got none")
    return genres


def read_ratings(
    file: RawFile, known: dict[int, str], dates: tuple[int, int | None], encoding: str, bad: BadRows,
    progress: Progress | None = None,
) -> tuple[pl.DataFrame, int]:  # fmt: skip
    """Rows strictly between the two dates (in seconds), and how many good rows there were in all."""
    layout = _layout(file, RATING_COLUMNS, encoding)
    movies = pl.Series(sorted(known), dtype=pl.Int32)
    after, before = dates
    within = pl.col("timestamp") > after
    if before is not None:
        within &= pl.col("timestamp") < before
    pieces, read = [_ratings([])], 0
    chunks = (
        chunk if chunk.first_line > layout.header_lines else Chunk(2, chunk.data.partition(b"\n")[2])
        for chunk in line_chunks(file, progress=progress)
    )

    def row(_: int, line: bytes) -> tuple[object, ...]:
        return _rating(_fields(line, layout, RATING_COLUMNS), known)

    for frame in parsed_chunks(file, chunks, lambda c: _parse_whole(c, layout, movies), row, _ratings, bad):
        read += frame.height
        pieces.append(frame.filter(within))
    if read == 0:
        raise DataError(f"{file.label}: expected ratings below the header, got none")
    return pl.concat(pieces), read


def _parse_whole(chunk: Chunk, layout: _Layout, movies: pl.Series) -> pl.DataFrame | None:
    """All rows at once, or None where anything at all is off."""
    if layout.separator == "::" and b"," in chunk.data:
        return None  # a comma would be taken for a separator below
    data = chunk.data.replace(b"::", b",") if layout.separator == "::" else chunk.data
    schema = {name: RATING_TYPES.get(name, pl.String) for name in layout.columns}
    try:
        frame = pl.read_csv(io.BytesIO(data), has_header=False, schema=schema, quote_char=None).select(RATING_COLUMNS)
    except pl.exceptions.PolarsError:
        return None
    fine = (
        pl.col("rating").is_between(WORST_RATING, BEST_RATING)
        & (pl.col("userId") >= 0)
        & (pl.col("timestamp") >= 0)
        & pl.col("movieId").is_in(movies.implode())
    )
    return frame if frame.select(fine.fill_null(False).all()).item() else None


def _ratings(rows: list[tuple[object, ...]]) -> pl.DataFrame:
    return pl.DataFrame(rows, schema=RATING_TYPES, orient="row")


def _rating(fields: dict[str, str], known: dict[int, str]) -> tuple[int, int, float, int]:
    user, movie = _identifier(fields["userId"], "userId"), _identifier(fields["movieId"], "movieId")
    try:
        rating = float(fields["rating"])
    except ValueError:
        rating = float("nan")
    if not WORST_RATING <= rating <= BEST_RATING:
        raise ValueError(f"expected a rating from {WORST_RATING} to {BEST_RATING}, got {fields['rating']!r}")
    if not _is_whole(fields["timestamp"]):
        raise ValueError(f"expected a timestamp in seconds since 1970, got {fields['timestamp']!r}")
    if movie not in known:
        raise ValueError(f"expected a movie of the movies file, got the unknown movieId {movie}")
    return user, movie, rating, int(fields["timestamp"])


def check_encoding(name: str) -> None:
    """Refuse unknown encodings and those whose line end is not one byte."""
    try:
        fits = name == "auto" or codecs.encode("\n", name) == b"\n"
    except LookupError:
        fits = False
    if not fits:
        raise ConfigError(f"expected an encoding such as utf-8 or latin-1, got {name!r}", field="encoding")


def _layout(file: RawFile, wanted: tuple[str, ...], encoding: str) -> _Layout:
    """Separator, columns and encoding, from the first line: `::` and no header in MovieLens 1M and 10M."""
    first = next(line_chunks(file, chunk_bytes=2**16), None)
    if first is None:
        raise DataError(f"{file.label}:1: expected {','.join(wanted)}, the file is empty")
    line = first.data.split(b"\n", 1)[0].rstrip(b"\r").removeprefix(b"\xef\xbb\xbf")
    if b"::" in line:
        return _Layout("::", wanted, 0, "latin-1" if encoding == "auto" else encoding)
    name = "utf-8" if encoding == "auto" else encoding
    try:
        columns = tuple(column.strip() for column in _cut(decode(line, name)))
    except ValueError as error:
        raise DataError(f"{file.label}:1: {error}") from None
    missing = [column for column in wanted if column not in columns]
    if missing or len(set(columns)) != len(columns):
        why = f"missing {', '.join(missing)}" if missing else "a name twice"
        got = f"{','.join(columns)[:200]!r} ({why})"
        raise DataError(f"{file.label}:1: expected columns {','.join(wanted)}, got {got}")
    return _Layout(",", columns, 1, name)


def _fields(line: bytes, layout: _Layout, wanted: tuple[str, ...]) -> dict[str, str]:
    values = layout.split(decode(line, layout.encoding))
    if len(values) != len(layout.columns):
        names = layout.separator.join(layout.columns)
        raise ValueError(f"expected {len(layout.columns)} fields {names}, got {len(values)}")
    fields = dict(zip(layout.columns, values, strict=True))
    return {name: fields[name] for name in wanted}


def _identifier(text: str, name: str) -> int:
    if not _is_whole(text) or int(text) > LARGEST_ID:
        raise ValueError(f"expected a whole number from 0 to {LARGEST_ID} for {name}, got {text!r}")
    return int(text)


def _is_whole(text: str) -> bool:
    """Digits only: int() alone would also take 1_000 and ١٢."""
    return text.strip().isascii() and text.strip().isdigit() and len(text) < 19
