"""docs/evaluation.md, run block by block: what is printed is what the page shows; options and estimators are there."""

import json
from pathlib import Path
from typing import Any

import pytest
from site_pages import blocks, commands, run

from benchmarks.log_choice import table
from neuclust.evaluation.estimators.catalogue import ESTIMATORS

DOCS = Path(__file__).parents[2] / "docs"
PAGE = DOCS / "evaluation.md"


def test_the_page_runs_and_prints_what_it_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fails when the example no longer works or says something else."""
    monkeypatch.chdir(tmp_path)
    left: dict[str, Any] = {}
    printed = ""
    ran: list[str] = []
    for block in blocks(PAGE):
        if block.kind == "python":
            printed = run(PAGE, block, left)
        elif block.kind == "sh":
            printed = commands(block.text)
        elif block.kind == "text" and ran:
            assert block.text == printed, f"{PAGE.name}:{block.line}"
        ran += [block.kind] if block.kind in ("python", "sh") else []
    assert ran == ["python", "sh", "python"]


def test_every_estimator_is_on_the_page() -> None:
    """Fails when an estimator has no line that says where it fails."""
    page = PAGE.read_text(encoding="utf-8")
    assert [name for name in ESTIMATORS if f"`{name}`" not in page] == []


def test_the_size_is_that_of_the_record() -> None:
    """Fails when the page and the measured record differ."""
    record = json.loads((DOCS / "records" / "evaluate_scale.json").read_text(encoding="utf-8"))
    page = PAGE.read_text(encoding="utf-8")
    assert f"take {record['seconds']:.0f} s and {record['peak_gigabytes']:.2f} GB" in " ".join(page.split())


def test_the_table_of_choices_is_that_of_the_record() -> None:
    """Fails when the page and the runs behind it differ."""
    lines = (DOCS / "records" / "log_choice.jsonl").read_text(encoding="utf-8").splitlines()
    made = "\n".join(table([json.loads(line) for line in lines])).split("\n\n")[0]
    assert made in PAGE.read_text(encoding="utf-8")
