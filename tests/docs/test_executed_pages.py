"""Every page with cells runs from top to bottom, each in an empty folder, as it does when the site is built."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import matplotlib
import matplotlib.pyplot as plt
import pytest
import torch
from site_pages import DOCS, PAGES, cells, name, run

EXECUTED = [page for page in PAGES if cells(page)]
NOTEBOOKS = {"algorithm_by_hand", "own_shop", "log_evaluated", "reading_a_sweep"}
HEADER = "---\nfile_format: mystnb\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty folder to work in; pictures are drawn to nowhere, and what a page changes for the process is undone."""
    monkeypatch.chdir(tmp_path)
    backend, dtype = matplotlib.get_backend(), torch.get_default_dtype()
    plt.switch_backend("Agg")
    try:
        yield tmp_path
    finally:
        torch.set_default_dtype(dtype)
        plt.close("all")
        plt.switch_backend(backend)


@pytest.mark.parametrize("page", EXECUTED, ids=name)
def test_the_cells_of_a_page_run_from_top_to_bottom(page: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fails when any cell raises."""
    module = type(sys)("__main__")  # functions of a cell find their names in it
    monkeypatch.setitem(sys.modules, "__main__", module)
    names: dict[str, Any] = vars(module)
    for cell in cells(page):
        run(page, cell, names)
    assert len(names) > len(cells(page))


def test_pages_with_cells_say_so_and_the_notebooks_are_there() -> None:
    """Fails when cells of a page would be shown and not executed."""
    assert [name(page) for page in EXECUTED if not page.read_text(encoding="utf-8").startswith(HEADER)] == []
    assert {page.stem for page in (DOCS / "notebooks").glob("*.md")} - {"index"} == NOTEBOOKS
    assert {name(page) for page in EXECUTED} >= {"start", *(f"notebooks/{each}" for each in NOTEBOOKS)}
