"""A reproduction on disk: figures/*.svg and .png, table1.csv, .md and .tex, summary.json, and index.html last."""

import json
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from neuclust.analysis.claims import JudgedClaim
from neuclust.analysis.reproduction.readings import readings_json
from neuclust.analysis.reproduction.results import Reproduction, summary_rows
from neuclust.analysis.reproduction.verdicts import verdicts
from neuclust.experiment.reproduction.phases import OURS, TUNED
from neuclust.files import write_text
from neuclust.report.drawing import write_picture
from neuclust.report.folder import sections
from neuclust.report.reproduction.figures import paper_figures
from neuclust.report.reproduction.page import reproduction_page
from neuclust.report.reproduction.tables import table_texts

PAGE, SUMMARY, FIGURES = "index.html", "summary.json", "figures"
SCHEMA = 1


def write_reproduction(found: Reproduction, out: Path) -> list[Path]:
    """Draw everything, then write it; returns what was written, the page last."""
    answers, figures = verdicts(found), paper_figures(found)
    played = [phase for phase in (OURS, TUNED) if found.runs.get(phase)]
    ours = {phase: replace(sections(found.runs[phase])[0], slug=phase) for phase in played}
    texts = {
        **table_texts(found),
        SUMMARY: json.dumps(summary_json(found, answers), indent=2, ensure_ascii=False, allow_nan=False) + "\n",
        PAGE: reproduction_page(found, answers, figures, ours),
    }
    (out / FIGURES).mkdir(parents=True, exist_ok=True)
    drawn = [file for each in figures for file in write_picture(each.figure, out / FIGURES, each.name, "svg", "png")]
    for name, text in texts.items():
        write_text(out / name, text)
    return [*drawn, *(out / name for name in texts)]


def summary_json(found: Reproduction, answers: Sequence[JudgedClaim]) -> dict[str, Any]:
    """Every number of the page under names that stay."""
    return {
        "schema": SCHEMA,
        "study": found.study.name,
        "source": found.source or found.study.twin,
        "twin": found.source is None,
        "label": found.label,
        "quick": found.scale.quick,
        "rounds": found.rounds,
        "slate_size": found.slate_size,
        "comparable_with_published": found.comparable,
        "runs_missing": found.missing,
        "runs_failed": len(found.failures),
        "rows": summary_rows(found),
        "readings": readings_json(found),
        "elbow": found.elbow,
        "verdicts": [asdict(answer) for answer in answers],
        "searches": [asdict(search) for search in found.searches],
        "commands": found.commands,
    }
