"""A whole report on disk: report.html, figures/PROBLEM-PICTURE.svg and .pdf, tables/PROBLEM.tex and .csv."""

import re
from collections.abc import Sequence
from pathlib import Path

from neuclust.analysis.groups import ProblemRuns
from neuclust.analysis.sources import Source
from neuclust.analysis.summary import summaries
from neuclust.experiment.records import RunRecord
from neuclust.files import write_text
from neuclust.report.drawing import write_picture
from neuclust.report.html import Provenance, Section, page, page_versions, run_versions
from neuclust.report.pictures import pictures
from neuclust.report.results import csv_table, latex_table

PAGE = "report.html"
RESERVED = ("failures", "reading", "made")  # ids of the page itself


def write_report(source: Source, out: Path, *, title: str, command: str, again: Sequence[str] = ()) -> list[Path]:
    """Draw and write everything, the page last; `command` makes the page, `again` are commands that play its runs."""
    parts = sections(source.records)
    made = Provenance(command, run_versions(source.records), page_versions(), again)
    document = page(title, parts, source.failures, made)
    for folder in (out / "figures", out / "tables"):
        folder.mkdir(parents=True, exist_ok=True)
    drawn = [
        file
        for section in parts
        for picture in section.pictures
        for file in write_picture(picture.figure, out / "figures", f"{section.slug}-{picture.name}", "svg", "pdf")
    ]
    tables = {
        out / "tables" / f"{section.slug}.{ending}": text
        for section in parts
        for ending, text in (("tex", latex_table(section.summary)), ("csv", csv_table([section.summary])))
    }
    for file, text in (tables | {out / PAGE: document}).items():
        write_text(file, text)
    return [*drawn, *tables, out / PAGE]


def sections(records: Sequence[RunRecord]) -> list[Section]:
    """Every problem with its table and pictures drawn."""
    found = summaries(records)
    names = slugs([summary.problem for summary in found])
    named = zip(names, found, strict=True)
    return [Section(slug, summary, tuple(pictures(summary.problem))) for slug, summary in named]


def slugs(found: Sequence[ProblemRuns]) -> list[str]:
    """A name per problem that is safe in files and links, and given once: `clusters`, `clusters-2`."""
    given: list[str] = []
    for problem in found:
        plain = re.sub(r"[^a-z0-9]+", "-", problem.env.lower()).strip("-")[:60] or "problem"
        name = f"p-{plain}" if plain[0].isdigit() or plain in RESERVED else plain
        number = 2
        while name in given:
            name, number = f"{plain}-{number}", number + 1
        given.append(name)
    return given
