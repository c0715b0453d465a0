"""A whole report from a folder of records: the page, and pictures and tables for a paper.

OUT/report.html
OUT/figures/PROBLEM-PICTURE.svg, .pdf
OUT/tables/PROBLEM.tex, .csv
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from neuclust.analysis.groups import ProblemRuns, problems
from neuclust.errors import DataError
from neuclust.experiment.records import RunRecord
from neuclust.experiment.store import read_records
from neuclust.files import write_bytes, write_text
from neuclust.report.columns import Picture, pictures
from neuclust.report.html import Failure, Provenance, Section, page
from neuclust.report.latex import latex_table
from neuclust.report.provenance import page_versions, run_versions
from neuclust.report.tables import csv_table, summaries
from neuclust.report.vectors import pdf_bytes, svg_text

FAILURES, PAGE = "failures", "report.html"
RESERVED = ("failures", "reading", "made")  # ids of the page itself


@dataclass(frozen=True, slots=True)
class Source:
    """What a report is made of."""

    records: tuple[RunRecord, ...]
    failures: tuple[Failure, ...]


def read_source(path: Path, *, on_bad: Callable[[str], None] | None = None) -> Source:
    """A store of records, a folder with runs.json, or such a file; refused where nothing was played or failed.

    A damaged record of a store is refused too, or told to `on_bad` and left out.
    """
    records = read_records(path, on_bad=on_bad)
    folder = path if path.is_dir() else path.parent
    source = Source(tuple(records.values()), read_failures(folder / FAILURES, settled=set(records)))
    if not source.failures and not any(record.rounds for record in source.records):
        raise DataError(f"{path}: expected at least one run of at least one round, got none; run something first")
    return source


def read_failures(folder: Path, settled: set[str], asked: set[str] | None = None) -> tuple[Failure, ...]:
    """Notes of failed runs (of those `asked` for), without those that a later attempt has played after all."""
    files = [file for file in sorted(folder.glob("*.json")) if asked is None or file.stem in asked]
    return tuple(_failure(file) for file in files if file.stem not in settled)


def _failure(file: Path) -> Failure:
    """A damaged note of a failure is still a failure, and is shown as such."""
    try:
        note = json.loads(file.read_text(encoding="utf-8"))
        return Failure(str(note.get("run", file.stem)), str(note["error"]), str(note.get("traceback") or ""))
    except (OSError, ValueError, KeyError, AttributeError, TypeError):
        return Failure(file.stem, "its note could not be read")


def write_report(source: Source, out: Path, *, title: str, command: str) -> list[Path]:
    """Draw everything, then write it, each file whole, the page last; answers what was written."""
    parts = sections(source.records)
    made = Provenance(command, run_versions(source.records), page_versions())
    document = page(title, parts, source.failures, made)
    for folder in (out / "figures", out / "tables"):
        folder.mkdir(parents=True, exist_ok=True)
    written = [file for section in parts for file in _write_section(section, out)]
    write_text(out / PAGE, document)
    return [*written, out / PAGE]


def sections(records: Sequence[RunRecord]) -> list[Section]:
    """Every problem with its table and pictures drawn."""
    found = problems(records)
    names = slugs(found)
    return [
        Section(slug, problem, summary, tuple(pictures(problem)))
        for slug, problem, summary in zip(names, found, summaries(records), strict=True)
    ]


def slugs(found: Sequence[ProblemRuns]) -> list[str]:
    """A name a problem that is safe in files and links, and given once: `clusters`, `clusters-2`."""
    given: list[str] = []
    for problem in found:
        plain = re.sub(r"[^a-z0-9]+", "-", problem.env.lower()).strip("-")[:60] or "problem"
        name = f"p-{plain}" if plain[0].isdigit() or plain in RESERVED else plain
        number = 2
        while name in given:
            name, number = f"{plain}-{number}", number + 1
        given.append(name)
    return given


def _write_section(section: Section, out: Path) -> list[Path]:
    tables = {
        out / "tables" / f"{section.slug}.tex": latex_table(section.problem, section.summary),
        out / "tables" / f"{section.slug}.csv": csv_table(_runs(section.problem)),
    }
    for file, text in tables.items():
        write_text(file, text)
    drawn = [file for picture in section.pictures for file in _write_picture(section.slug, picture, out / "figures")]
    return [*tables, *drawn]


def _runs(problem: ProblemRuns) -> list[RunRecord]:
    return [run for contender in problem.contenders for run in contender.runs]


def _write_picture(slug: str, picture: Picture, folder: Path) -> list[Path]:
    svg, pdf = (folder / f"{slug}-{picture.name}.{ending}" for ending in ("svg", "pdf"))
    write_text(svg, svg_text(picture.figure))
    write_bytes(pdf, pdf_bytes(picture.figure))
    return [svg, pdf]
