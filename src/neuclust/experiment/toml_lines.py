"""Where in a TOML file an entry stands, since `tomllib` does not say."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from neuclust.errors import ConfigError

_HEADER = re.compile(r"\s*\[\[?\s*([\w.\"'-]+)\s*\]")


@dataclass(frozen=True, slots=True)
class TomlPlaces:
    """The text of a file, asked for the line of an entry."""

    file: Path
    text: str

    def line(self, table: str | None, index: int, keys: Sequence[str]) -> int:
        """The line (from 1) of the innermost of `keys` found in the index-th `[[table]]`, else of its header."""
        lines = self.text.splitlines()
        start, end = self._span(lines, table, index)
        found = start
        for key in keys:
            found = _first(lines, found, end, key) or _first(lines, found, end, key.rsplit(".", 1)[-1]) or found
        return found + 1

    def refuse(self, table: str | None, index: int, keys: Sequence[str], text: str) -> NoReturn:
        raise ConfigError(f"{self.file}:{self.line(table, index, keys)}: {text}")

    def _span(self, lines: Sequence[str], table: str | None, index: int) -> tuple[int, int]:
        """First line and end of the index-th table of that name, sub-tables included; of the top without a name."""
        headers = [(n, match[1]) for n, line in enumerate(lines) if (match := _HEADER.match(line))]
        if table is None:
            return 0, headers[0][0] if headers else len(lines)
        starts = [n for n, name in headers if name == table]
        if index >= len(starts):
            return 0, len(lines)
        start = starts[index]
        ends = [n for n, name in headers if n > start and not name.startswith(f"{table}.")]
        return start, ends[0] if ends else len(lines)


def _first(lines: Sequence[str], start: int, end: int, key: str) -> int | None:
    """The first line that gives `key` a value, bare, quoted or dotted, or opens a sub-table of that name."""
    name = re.escape(key)
    entry = re.compile(rf"(?<![\w-])[\"']?{name}[\"']?\s*[=.]|\.{name}\s*\]")
    return next((n for n in range(start, end) if entry.search(lines[n].split("#", 1)[0])), None)
