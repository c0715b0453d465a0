"""Writes docs/choosing.md, what to use when, and its picture from a template and docs/records/choosing.json.

    python -m tools.choosing_page                                   # the page again from the numbers kept
    python -m tools.choosing_page --take RUNS.jsonl [RUNS.jsonl …]  # keep runs of benchmarks.contest first

Taking replaces the record, or with `--onto` its runs of the same problem, horizon, policy and seed; rows of that
problem and horizon whose seeds are of another range go as well, and what else is of another range the page marks. Only
runs with seeds of `--seeds` are taken, and a range with a seed that was used for development is refused. The template
holds the words; {{...}} are filled in. A test keeps page, picture, template and numbers equal.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tools.choosing_picture import picture_text
from tools.choosing_record import (
    OWN_HORIZON,
    REPORTED,
    Contest,
    condense,
    contest,
    digest_of,
    horizons,
    merged,
    read_rows,
    record_text,
    seed_range,
    serves,
)  # fmt: skip
from tools.choosing_tables import UNMEASURED, claims_table, cost_table, measured, regret_table, tally, verdict_table
from tools.reproduction_page import DOCS, render

TEMPLATE, PAGE = Path(__file__).parent / "templates" / "choosing.md", Path("choosing.md")
RECORD, PICTURE = Path("records/choosing.json"), Path("figures/choosing.svg")


def _picture(given: Contest, *words: str) -> str:
    """The picture with its alternative text, once there is something to draw."""
    return f"![{' '.join(words)}]({PICTURE})" if given.played("own") else f"*{UNMEASURED.capitalize()}.*"


_KINDS: Mapping[str, Callable[..., str]] = {
    "regret-table": regret_table,
    "verdict-table": verdict_table,
    "claims": claims_table,
    "costs": cost_table,
    "tally": tally,
    "measured": measured,
    "picture": _picture,
}
_REASONS = re.compile(r"<!-- because\n(.*?)\n-->\n*", re.DOTALL)


def reasons_of(template: str) -> dict[str, str]:
    """Why `auto` is behind, by problem: JSON in a comment of the template that the page leaves out."""
    match = _REASONS.search(template)
    reasons: dict[str, str] = json.loads(match[1]) if match else {}
    unknown = sorted(set(reasons) - set(OWN_HORIZON))
    if unknown:
        raise SystemExit(f"because: expected problems of the suite, got {unknown[0]!r}; see `neuclust suite --help`")
    return reasons


def page_text(template: str, record: Mapping[str, Any]) -> str:
    """The page: the template with the record's numbers."""
    return render(_REASONS.sub("", template), contest(record, reasons_of(template)), _KINDS)


def kept_record(docs: Path) -> dict[str, Any]:
    """What was taken last; without a record one that holds nothing."""
    path = docs / RECORD
    empty: dict[str, Any] = {"seeds": REPORTED, "rows": []}
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else empty


def write_page(docs: Path) -> None:
    """Page and picture from template and record."""
    record = kept_record(docs)
    (docs / PAGE).write_text(page_text(TEMPLATE.read_text(encoding="utf-8"), record), encoding="utf-8")
    if record["rows"]:
        (docs / PICTURE).parent.mkdir(exist_ok=True)
        (docs / PICTURE).write_text(picture_text(contest(record), digest_of(record)), encoding="utf-8")


def take(files: Sequence[Path], seeds: range, docs: Path, onto: bool = False) -> None:
    """Keep these runs, in place of all kept before, or `onto` those they do not replace; say what was left out."""
    rows = list(read_rows(files))
    record = condense(rows, seeds)
    if onto:
        record = merged(kept_record(docs), record)
    if not record["rows"]:
        raise SystemExit(f"--take: expected runs of seeds {record['seeds']} that reach a horizon, got none")
    (docs / RECORD).parent.mkdir(exist_ok=True)
    (docs / RECORD).write_text(record_text(record), encoding="utf-8")
    inside = [row for row in rows if row["seed"] in seeds]
    idle = sum(not any(serves(row, horizon) for horizon in horizons(row["problem"])) for row in inside)
    print(f"{len(rows)} runs: {len(rows) - len(inside)} of other seeds left out, {idle} end at no horizon of the page")


def main(words: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--take", nargs="+", type=Path, metavar="FILE.jsonl", help="keep these runs first")
    parser.add_argument("--onto", action="store_true", help="with --take: keep what these runs do not replace")
    parser.add_argument("--seeds", default=REPORTED, metavar="FIRST:END", help=f"default {REPORTED}")
    parser.add_argument("--docs", type=Path, default=DOCS, help="folder of record and page")
    chosen = parser.parse_args(words)
    if chosen.take:
        take(chosen.take, seed_range(chosen.seeds), chosen.docs, chosen.onto)
    write_page(chosen.docs)
    print(f"wrote {chosen.docs / PAGE}")


if __name__ == "__main__":
    main()
