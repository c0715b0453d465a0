"""docs/logs.md, run block by block in one folder: what is printed is what the page shows, and every key is there."""

from __future__ import annotations

import re
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from neuclust.logs import json_schema
from neuclust.logs.events import KINDS

PAGE = Path(__file__).parents[2] / "docs" / "logs.md"
BLOCK = re.compile(r"^```(python|text)\n(.*?)^```", re.DOTALL | re.MULTILINE)


def test_the_page_of_logs_runs_and_prints_what_it_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fails when an example of the page no longer works or prints something else."""
    monkeypatch.chdir(tmp_path)
    left: dict[str, Any] = {}
    page, printed, runs = PAGE.read_text(encoding="utf-8"), "", 0
    for match in BLOCK.finditer(page):
        kind, text = match.groups()
        line = page.count("\n", 0, match.start(2))
        if kind == "text":
            assert printed == text, f"{PAGE.name}:{line}"
            continue
        out = StringIO()
        with redirect_stdout(out):
            exec(compile("\n" * line + text, f"<{PAGE.name}>", "exec"), left)  # noqa: S102  # our own page
        printed, runs = out.getvalue(), runs + 1
    assert runs >= 4


def test_every_key_of_an_event_is_on_the_page() -> None:
    """Fails when the format has a key or a design that the page does not explain."""
    page = PAGE.read_text(encoding="utf-8")
    events = json_schema()["$defs"]
    keys = {key for event in ("start", "arm", "decision", "feedback") for key in events[event]["properties"]}
    keys |= set(events["decision"]["properties"]["design"]["properties"]) | set(KINDS)
    assert len(keys) > 35
    assert [key for key in sorted(keys) if f"`{key}`" not in page] == []
