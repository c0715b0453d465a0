"""JSON lines: one object per line, lines without anything are passed over; dates are {"date": "2026-01-31"}."""

import json
from collections.abc import Callable, Iterable
from typing import Any

from neuclust.errors import DataError, StateError
from neuclust.recommender.tables.values import shown, value_from_json

Parse = Callable[[bytes, int], Any]


def read_json_lines(lines: Iterable[bytes], parse: Parse) -> dict[int, Any]:
    """What the lines hold, by their numbers from 1; `parse` is given each with its number and refuses it."""
    return {at: parse(line, at) for at, line in enumerate(lines, 1) if line.strip()}


def parse_row(line: bytes, at: int) -> dict[str, Any]:
    """The row of a line, its dates as dates."""
    try:
        found = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise DataError(f"line {at}: expected JSON, got other text ({error!s:.100}); mend or drop the line") from None
    if not isinstance(found, dict):
        raise DataError(f"line {at}: expected an object with the values by column, got {shown(found)}; mend the line")
    return {name: _value(value) for name, value in found.items()}


def _value(value: Any) -> Any:
    try:
        return value_from_json(value) if isinstance(value, dict) else value
    except StateError:  # refused with its column where all values are
        return value
