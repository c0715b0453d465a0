"""docs/doors/*.md, run block by block, each page in a folder of its own: what is printed is what the page shows."""

from __future__ import annotations

import re
from contextlib import redirect_stdout
from importlib.util import find_spec
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from mlflow_store import fresh_store
from site_pages import commands

FOLDER = Path(__file__).parents[2] / "docs" / "doors"
BLOCK = re.compile(r"^```(python|sh|text)\n(.*?)^```", re.DOTALL | re.MULTILINE)
NEEDS = {
    "gymnasium": ["gymnasium"], "scikit_learn": ["pandas"], "vowpal_wabbit": ["vowpalwabbit"], "obp": [],
    "mlflow": ["mlflow"],
}  # fmt: skip


@pytest.mark.parametrize("name", list(NEEDS))
def test_the_page_of_a_door_runs_and_prints_what_it_says(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    missing = [library for library in NEEDS[name] if find_spec(library) is None]
    if missing:
        pytest.skip(f"{missing[0]} is not installed")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("MLFLOW_EXPERIMENT_NAME", raising=False)
    if name == "mlflow":
        fresh_store(tmp_path)  # mlflow.db, as the page would make it
    page, printed, runs = FOLDER / f"{name}.md", "", 0
    names: dict[str, Any] = {}
    content = page.read_text(encoding="utf-8")
    for match in BLOCK.finditer(content):
        kind, text = match.groups()
        line = content.count("\n", 0, match.start(2))
        if kind == "text":
            assert printed == text, f"{page.name}:{line}"
            continue
        if kind == "sh":
            printed, runs = commands(text), runs + 1
            continue
        out = StringIO()
        with redirect_stdout(out):
            exec(compile("\n" * line + text, f"<{page.name}>", "exec"), names)  # noqa: S102  # our own page
        printed, runs = out.getvalue(), runs + 1
    assert runs >= 2


def test_every_door_has_a_page_that_is_run() -> None:
    assert {page.stem for page in FOLDER.glob("*.md")} - {"index"} == set(NEEDS)
