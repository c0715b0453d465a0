"""Tables of any kind as JSON lines in parts: what the front door reads, the client sends."""

import json
from collections.abc import Iterator
from typing import Any

from neuclust.errors import DataError

MOST_ROWS = 5_000  # in one part
MOST_BYTES = 4_000_000


def parts(table: Any, name: str, id: str) -> Iterator[bytes]:
    """The rows as JSON lines with their ids under "id", a few thousand at a time."""
    lines: list[bytes] = []
    size = 0
    for line in _lines(table, name, id):
        if lines and (len(lines) == MOST_ROWS or size + len(line) > MOST_BYTES):
            yield b"\n".join(lines)
            lines, size = [], 0
        lines.append(line)
        size += len(line) + 1
    if lines:
        yield b"\n".join(lines)


def _lines(table: Any, name: str, id: str) -> Iterator[bytes]:
    from neuclust.recommender.tables.tables import ids_of, read_table  # needs numpy, which a caller may not use
    from neuclust.recommender.tables.values import value_to_json

    read = read_table(table, name)
    ids = ids_of(read, id, name)
    columns = {column: values for column, values in read.columns.items() if column != id}
    if "id" in columns:
        raise DataError(f"{name}: expected no other column named id beside {id!r:.100}, got one; rename it")
    for at, each in enumerate(ids):
        row = {column: value_to_json(values[at]) for column, values in columns.items()}
        yield json.dumps({"id": str(each), **row}, separators=(",", ":"), allow_nan=False).encode()
