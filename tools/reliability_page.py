"""Writes docs/reliability.md from its template and the counts that `make soak` keeps.

    make soak                                 # attacks everything and keeps counts in docs/records/reliability.json
    python -m tools.reliability_page     # the page again from the counts kept

A test keeps page, template and counts equal.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tools.reproduction_page import DOCS, kept_records, render, table

TEMPLATE, PAGE = Path(__file__).parent / "templates" / "reliability.md", DOCS / "reliability.md"


def _counts(records: Mapping[str, Any]) -> str:
    """One line per attack."""
    found: Mapping[str, Mapping[str, int]] = records["reliability"]
    return table(
        ["attack", "counts"],
        [[name, ", ".join(f"{value:,} {key}" for key, value in counts.items())] for name, counts in found.items()],
        rule="---",
    )


KINDS: Mapping[str, Callable[..., str]] = {"counts": _counts}


def main() -> None:
    PAGE.write_text(render(TEMPLATE.read_text(encoding="utf-8"), kept_records(), KINDS), encoding="utf-8")
    print(f"wrote {PAGE.relative_to(DOCS.parent)}")


if __name__ == "__main__":
    main()
