"""The figures of the service from their records: `python -m benchmarks.serve_tables` prints what docs/service.md shows.

Every row says what was aimed at, what came out and whether it held, and how busy the machine was with other work.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from benchmarks.tables import markdown

RECORDS = Path(__file__).parents[1] / "docs" / "records"
MOST_MS = 50.0  # p99
FLAT = 1.1  # memory at the end of the overload, by that near its beginning
BACK = 5.0  # seconds
Record = dict[str, Any]
Row = tuple[str, str, bool]  # what was aimed at, what came out, whether it held
HEADER = ["what", "aim", "measured", "held", "load before", "command"]


def load(what: str) -> Callable[[Record], Row]:
    """A row of slates at a rate."""

    def row(record: Record) -> Row:
        each, spec, least = record["recommendations"], record["spec"], record["floor"]
        errors = each["sent"] - each["statuses"].get("200", 0)
        told = f"p50 {each['p50_ms']}, p99 {each['p99_ms']} ms, {errors:,} of {each['sent']:,} not answered; "
        told += f"scoring alone {least.get('median_ms', '-')} ms ({least.get('processor_ms', '-')} of the processor), "
        told += f"{least.get('per_second', '-')} per second"
        return f"{what} {spec['rate']:g}/s, p99 {MOST_MS:g} ms", told, not errors and each["p99_ms"] <= MOST_MS

    return row


def feedback(record: Record) -> Row:
    each, spec = record["feedback batches"], record["spec"]
    errors = each["sent"] - sum(each["statuses"].get(status, 0) for status in ("200", "202"))
    told = f"p50 {each['p50_ms']}, p99 {each['p99_ms']} ms, {errors:,} of {each['sent']:,} batches refused; "
    told += f"{record['lessons_per_second']} lessons/s, peak lag {record['peak_lag']:,} events, drained in "
    told += f"{record['drain_s']} s"
    return f"{spec['rate']:,.0f}/s in batches, p99 {MOST_MS:g} ms", told, not errors and each["p99_ms"] <= MOST_MS


def overload(record: Record) -> Row:
    during = record["during"]["recommendations"]
    strange = set(during["statuses"]) - {"200", "429", "503", "-1"}  # -1: never sent, for want of connections
    first, last, back = record["memory_first_mb"], record["memory_last_mb"], record["back_s"]
    told = f"{during['sent']:,} sent: {_counts(during)}; memory {first} to {last} MB, back after {back:g} s"
    return "429 or 503, flat memory, back in 5 s", told, not strange and last <= FLAT * first and back <= BACK


def upload(record: Record) -> Row:
    took = f"{record['rows']:,} items in {record['seconds']:.1f} s"
    return "100,000 items in a minute", took, record["rows"] >= 100_000 and record["seconds"] <= 60


def kills(record: Record) -> Row:
    told = f"{record['kills']} kills ({_named(record['killed'])}), {record['acknowledged_decisions']:,} decisions and "
    told += f"{record['acknowledged_feedback']:,} feedbacks acknowledged; {len(record['faults'])} faults"
    return "nothing lost or learned twice, replay equal", told, not record["faults"]


def cases(record: Record) -> Row:
    told = f"{record['cases']:,} cases: {_counts(record)}; {len(record['faults'])} faults"
    held = record["cases"] >= 100_000 and not record["faults"]
    return "100,000 cases, no 5xx, no answer the document does not allow", told, held


def _counts(kind: Record) -> str:
    return ", ".join(f"{count:,} × {status}" for status, count in kind["statuses"].items())


def _named(killed: dict[str, int]) -> str:
    return ", ".join(f"{name} {count}" for name, count in sorted(killed.items()))


ROWS: dict[str, tuple[str, Callable[[Record], Row]]] = {
    "serve_auto": ("`auto`, 300 of 10,000 items eligible", load("slates")),
    "serve_linucb": ("`linucb`, 300 of 10,000 items eligible", load("slates")),
    "serve_all_eligible": ("`auto`, all 10,000 items eligible", load("slates")),
    "serve_auto_twice": ("`auto` at twice the rate", load("slates")),
    "serve_linucb_twice": ("`linucb` at twice the rate", load("slates")),
    "serve_all_eligible_twice": ("`auto`, all 10,000, at twice the rate", load("slates")),
    "serve_feedback": ("feedback", feedback),
    "serve_overload": ("five times what it can hold", overload),
    "serve_upload": ("a catalogue", upload),
    "serve_kills_sqlite": ("the service killed, SQLite", kills),
    "serve_kills_postgres": ("the service killed, PostgreSQL", kills),
    "serve_schemathesis": ("requests made from the OpenAPI document", cases),
}


def table(folder: Path = RECORDS) -> str:
    """All records that are there, a row each."""
    rows: list[Sequence[str]] = []
    for name, (what, row) in ROWS.items():
        file = folder / f"{name}.json"
        if file.is_file():
            record = json.loads(file.read_text(encoding="utf-8"))
            aim, told, held = row(record)
            busy = str(record["machine"]["load"])
            rows.append([what, aim, told, "yes" if held else "**no**", busy, f"`{record['command']}`"])
    return markdown(HEADER, rows, words=len(HEADER)) if rows else "No records yet."


if __name__ == "__main__":
    print(table())
