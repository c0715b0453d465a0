"""A reproduction on disk, each file whole, the page last.

OUT/index.html       everything on one page
OUT/summary.json     every number of it
OUT/table1.csv, .md, .tex
OUT/figures/*.svg, .png
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from neuclust.analysis.claims import JudgedClaim
from neuclust.experiment.reproduction.phases import OURS, TUNED
from neuclust.files import write_text
from neuclust.report.columns import Picture
from neuclust.report.figures import save_figure
from neuclust.report.folder import sections
from neuclust.report.html import Section
from neuclust.report.reproduction import (
    Reproduction,
    csv_text,
    label,
    latex_text,
    markdown_text,
    summary_rows,
    table_notes,
)
from neuclust.report.reproduction_figures import paper_figures
from neuclust.report.reproduction_page import reproduction_page
from neuclust.report.reproduction_readings import readings_json
from neuclust.report.reproduction_verdicts import verdicts
from neuclust.report.vectors import small_letters, svg_text

PAGE, SUMMARY, FIGURES = "index.html", "summary.json", "figures"
SCHEMA = 1


def write_reproduction(found: Reproduction, out: Path) -> list[Path]:
    """Draw everything, then write it; answers what was written, the page last."""
    answers, figures, notes = verdicts(found), paper_figures(found), table_notes(found)
    document = reproduction_page(found, answers, figures, _sections(found))
    texts = {
        "table1.csv": csv_text(found),
        "table1.md": markdown_text(found, notes),
        "table1.tex": latex_text(found, notes),
        SUMMARY: json.dumps(summary_json(found, answers), indent=2, ensure_ascii=False, allow_nan=False) + "\n",
        PAGE: document,
    }
    (out / FIGURES).mkdir(parents=True, exist_ok=True)
    drawn = [file for picture in figures for file in _write_picture(picture, out / FIGURES)]
    for name, text in texts.items():
        write_text(out / name, text)
    return [*drawn, *(out / name for name in texts)]


def _sections(found: Reproduction) -> dict[str, Section]:
    """Our protocol as any report shows it, under names of its own."""
    return {
        phase: replace(sections(found.runs[phase])[0], slug=phase) for phase in (OURS, TUNED) if found.runs.get(phase)
    }


def _write_picture(picture: Picture, folder: Path) -> Sequence[Path]:
    svg, png = (folder / f"{picture.name}.{ending}" for ending in ("svg", "png"))
    write_text(svg, svg_text(picture.figure))
    with small_letters():
        save_figure(picture.figure, png)
    return svg, png


def summary_json(found: Reproduction, answers: Sequence[JudgedClaim]) -> dict[str, Any]:
    """Every number of the page under names that stay."""
    return {
        "schema": SCHEMA,
        "study": found.study.name,
        "source": found.source or found.study.twin,
        "twin": found.source is None,
        "label": label(found),
        "quick": found.scale.quick,
        "rounds": found.rounds,
        "slate_size": found.slate_size,
        "comparable_with_published": found.comparable,
        "runs_missing": found.missing,
        "runs_failed": len(found.failures),
        "rows": summary_rows(found),
        "readings": readings_json(found),
        "elbow": [list(point) for point in found.elbow],
        "verdicts": [answer.to_json() for answer in answers],
        "searches": [asdict(search) | {"seeds": list(search.seeds)} for search in found.searches],
        "commands": list(found.commands),
    }
