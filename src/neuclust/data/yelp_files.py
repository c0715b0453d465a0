"""Yelp's business and review files as published: one JSON object per line, read in chunks of bounded memory."""

import io
import json
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import polars as pl

from neuclust.data.raw import BadRows, Chunk, Progress, RawFile, line_chunks, parsed_chunks
from neuclust.errors import DataError

DATE_FORMATS = ("%Y-%m-%d %H:%M:%S", "%Y-%m-%d")  # later and earlier rounds of the dataset
REVIEW_TYPES = {"user_id": pl.String, "business_id": pl.String, "stars": pl.Float64, "date": pl.String}
_PLAIN_DATE = r"^\d{4}-\d\d-\d\d( \d\d:\d\d:[0-5]\d)?$"  # Polars would also take blanks in odd places, and second 60


@dataclass(frozen=True, slots=True)
class Restaurant:
    """One business that lists exactly `Restaurants` among its categories."""

    line: int  # of the business file; it serves as the arm's id
    business_id: str
    categories: tuple[str, ...]


def read_restaurants(file: RawFile, cities: tuple[str, ...], bad: BadRows) -> tuple[list[Restaurant], frozenset[str]]:
    """The restaurants (of these cities, where any are named) in file order, and every business id."""
    wanted = {city.casefold() for city in cities}
    restaurants: list[Restaurant] = []
    every: set[str] = set()
    for number, line in (numbered for chunk in line_chunks(file) for numbered in chunk.lines()):
        try:
            business, business_id, categories = _business(line)
            if business_id in every:
                raise ValueError(f"expected each business_id once, got {business_id} again")
        except ValueError as error:
            bad.report(file, number, str(error))
            continue
        every.add(business_id)
        here = not wanted or str(business.get("city", "")).strip().casefold() in wanted
        if here and "Restaurants" in categories:
            restaurants.append(Restaurant(number, business_id, categories))
    if not every:
        raise DataError(f"{file.label}:1: expected one business per line, the file is empty")
    if not restaurants:
        where = f" in {', '.join(cities)}" if cities else ""
        raise DataError(f"{file.label}: expected restaurants{where}, got none in {len(every):,} businesses")
    return restaurants, frozenset(every)


def review_chunks(
    file: RawFile, businesses: frozenset[str], bad: BadRows, progress: Progress | None = None
) -> Iterator[pl.DataFrame]:
    """Every valid review as (line, user_id, business_id, stars, moment), one chunk at a time."""
    known = pl.Series(sorted(businesses), dtype=pl.String).implode()
    any_row = False
    for frame in parsed_chunks(
        file,
        line_chunks(file, progress=progress),
        lambda chunk: _parse_whole(chunk, known),
        lambda number, line: (number, *_review(line, businesses)),
        lambda rows: _with_moments(pl.DataFrame(rows, schema={"line": pl.UInt32, **REVIEW_TYPES}, orient="row")),
        bad,
    ):
        any_row |= frame.height > 0
        yield frame
    if not any_row:
        raise DataError(f"{file.label}:1: expected one review per line, got none")


def _parse_whole(chunk: Chunk, known: pl.Series) -> pl.DataFrame | None:
    """All rows at once, or None where anything at all is off."""
    try:
        raw = pl.read_ndjson(io.BytesIO(chunk.data), schema=REVIEW_TYPES)
    except pl.exceptions.PolarsError:
        return None
    if raw.height != chunk.data.count(b"\n") + (not chunk.data.endswith(b"\n")):
        return None  # blank lines: line numbers would no longer be row numbers
    if not raw.select(pl.col("date").str.contains(_PLAIN_DATE).fill_null(False).all()).item():
        return None
    frame = _with_moments(raw.with_row_index("line", offset=chunk.first_line))
    fine = (
        pl.col("user_id").is_not_null()
        & pl.col("moment").is_not_null()
        & pl.col("stars").is_between(1, 5)
        & pl.col("business_id").is_in(known)
    )
    return frame if frame.select(fine.fill_null(False).all()).item() else None


def _with_moments(frame: pl.DataFrame) -> pl.DataFrame:
    moments = [pl.col("date").str.to_datetime(form, strict=False, time_unit="ms") for form in DATE_FORMATS]
    line, moment = pl.col("line").cast(pl.Int64), pl.coalesce(moments).alias("moment")
    return frame.select(line, "user_id", "business_id", "stars", moment)


def _business(line: bytes) -> tuple[dict[str, Any], str, tuple[str, ...]]:
    record = _record(line)
    business_id, categories = record.get("business_id"), record.get("categories")
    if not isinstance(business_id, str) or not business_id:
        raise ValueError(f"expected a business_id, got {_short(business_id)}")
    if categories is None:  # published so for about a hundred businesses
        return record, business_id, ()
    if isinstance(categories, list):  # the layout of earlier rounds of the dataset
        categories = ",".join(str(name) for name in categories)
    if not isinstance(categories, str):
        raise ValueError(f"expected categories as text, got {_short(categories)}")
    return record, business_id, tuple(name.strip() for name in categories.split(",") if name.strip())


def _review(line: bytes, businesses: frozenset[str]) -> tuple[str, str, float, str]:
    record = _record(line)
    user, business, stars, date = (record.get(name) for name in ("user_id", "business_id", "stars", "date"))
    if not isinstance(user, str) or not user:
        raise ValueError(f"expected a user_id, got {_short(user)}")
    if not isinstance(stars, int | float) or isinstance(stars, bool) or not 1 <= stars <= 5:
        raise ValueError(f"expected stars from 1 to 5, got {_short(stars)}")
    if not isinstance(date, str) or not _is_date(date):
        raise ValueError(f"expected a date such as 2018-07-07 22:09:11, got {_short(date)}")
    if business not in businesses:
        raise ValueError(f"expected a business of the business file, got {_short(business)}")
    return user, str(business), float(stars), date


def _record(line: bytes) -> dict[str, Any]:
    try:
        record = json.loads(line)
    except UnicodeDecodeError as error:
        raise ValueError(f"expected utf-8 text, got byte 0x{line[error.start]:02x}") from None
    except (json.JSONDecodeError, RecursionError) as error:
        raise ValueError(f"expected one whole JSON object, got a broken one ({error})") from None
    if not isinstance(record, dict):
        raise ValueError(f"expected one JSON object, got {_short(record)}")
    return record


def _is_date(text: str) -> bool:
    for form in DATE_FORMATS:
        with suppress(ValueError):
            return bool(datetime.strptime(text, form))
    return False


def _short(value: object) -> str:
    return "nothing" if value is None else repr(value)[:60]
