"""docs/your_own_problem.md, run block by block in one folder: what is printed is what the page shows."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from contextlib import redirect_stdout
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from neuclust import Recommender
from neuclust.recommender.feedback.messages import Details
from neuclust.recommender.options import RecommenderOptions
from neuclust.recommender.requests import RequestDetails

PAGE = Path(__file__).parents[2] / "docs" / "your_own_problem.md"
BLOCK = re.compile(r"(?:^<!-- (?P<mark>[^\n]*) -->\n)?^```(?P<kind>\w+)\n(?P<text>.*?)^```", re.DOTALL | re.MULTILINE)
MOST_LINES = 12  # of the whole loop


@dataclass
class Block:
    """A Python block, its line in the page, the mark before it, and what it prints (None: not said)."""

    code: str
    line: int
    mark: str
    prints: str | None = None


def blocks() -> list[Block]:
    found: list[Block] = []
    page = PAGE.read_text(encoding="utf-8")
    for match in BLOCK.finditer(page):
        if match["kind"] == "python":
            found.append(Block(match["text"], page.count("\n", 0, match.start("text")), match["mark"] or ""))
        elif match["kind"] == "text":
            found[-1].prints = match["text"]
    return found


@pytest.fixture(scope="module")
def names(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    """What the page's blocks leave behind."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("page"))
        left: dict[str, Any] = {}
        for block in blocks():
            printed = StringIO()
            code = compile("\n" * block.line + block.code, f"<{PAGE.name}>", "exec")  # errors name the page's lines
            with redirect_stdout(printed):
                exec(code, left)  # noqa: S102  # our own page, read from the repository
            if block.prints is not None:
                assert printed.getvalue() == block.prints, f"{PAGE.name}:{block.line}"
        yield left


def test_the_page_runs_and_prints_what_it_says(names: dict[str, Any]) -> None:
    clicks = names["collected"]
    assert len(clicks) == 200
    assert sum(clicks[-50:]) > 1.5 * sum(clicks[:50])  # the shop learns


def test_the_whole_loop_has_at_most_twelve_lines() -> None:
    (loop,) = [block for block in blocks() if block.mark == "loop"]
    lines = [line for line in loop.code.splitlines() if line.strip() and not line.strip().startswith("#")]
    assert len(lines) <= MOST_LINES
    calls = {
        node.func.attr
        for node in ast.walk(ast.parse(loop.code))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
    }
    assert {"recommend", "feedback"} <= calls
    assert {"items.csv", "users.csv"} <= set(re.findall(r"\w+\.csv", loop.code))


@pytest.mark.parametrize("options", [RecommenderOptions, RequestDetails, Details], ids=lambda each: each.__name__)
def test_every_option_is_named(options: Any) -> None:
    page = PAGE.read_text(encoding="utf-8")
    section = page[page.index("## Every option") : page.index("## What happens when")]
    assert [name for name in sorted(options.__optional_keys__) if f"`{name}`" not in section] == []


def test_the_page_and_its_guides_show_all_that_a_recommender_does() -> None:
    guides = (PAGE.parent / "guides").glob("*.md")  # executed by the site's tests
    code = "".join([block.code for block in blocks()] + [guide.read_text(encoding="utf-8") for guide in guides])
    public = [name for name in vars(Recommender) if not name.startswith("_") and callable(getattr(Recommender, name))]
    assert len(public) > 10
    assert [name for name in public if f".{name}(" not in code] == []
