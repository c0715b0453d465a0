"""The pages of docs/ as their tests read them: cells, fenced blocks, headings, and what leads to them."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any, NamedTuple

from command_line import clean_environment
from patience import HANG_SECONDS

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.rglob("*.md"))
FENCE = re.compile(r"^(?P<ticks>```+)(?P<kind>[^\n`]*)\n(?P<text>.*?)^(?P=ticks)\s*$", re.DOTALL | re.MULTILINE)
ANCHORED = 3  # levels of headings that can be linked to (`myst_heading_anchors` of docs/conf.py)


class Block(NamedTuple):
    """A fenced block: `python`, `sh`, `{code-cell} python`, …; the line before its first one."""

    kind: str
    text: str
    line: int


def name(page: Path) -> str:
    """`guides/exploration`: the page as a table of contents has it."""
    return page.relative_to(DOCS).with_suffix("").as_posix()


def blocks(page: Path) -> Iterator[Block]:
    """Fenced blocks in their order; options of a directive (`:tags: …`) are emptied lines."""
    content = page.read_text(encoding="utf-8")
    for found in FENCE.finditer(content):
        kind, text = found["kind"].strip(), found["text"]
        if kind.startswith("{"):
            text = re.sub(r"\A((?::[\w-]+:[^\n]*\n)+)", lambda options: "\n" * options[0].count("\n"), text)
        yield Block(kind, text, content.count("\n", 0, found.start("text")))


def cells(page: Path) -> list[Block]:
    """What is executed when the site is built."""
    return [block for block in blocks(page) if block.kind.startswith("{code-cell}")]


def run(page: Path, block: Block, names: dict[str, Any]) -> str:
    """Run one block with what earlier ones left; what it prints. Errors name the page's lines."""
    printed = StringIO()
    code = compile("\n" * block.line + block.text, f"<{page.name}>", "exec")
    with redirect_stdout(printed):
        exec(code, names)  # noqa: S102  # our own page, read from the repository
    return printed.getvalue()


def commands(text: str) -> str:
    """What the commands of a shell block print, one per line; a comment ends a line. Each must succeed."""
    said = ""
    for line in text.splitlines():
        words = shlex.split(line, comments=True)
        assert words[0] == "neuclust", line
        done = subprocess.run(
            [sys.executable, "-m", "neuclust", *words[1:]],
            capture_output=True, text=True, env=clean_environment(COLUMNS="120"), timeout=HANG_SECONDS,
        )  # fmt: skip
        assert done.returncode == 0, f"{line}\n{done.stderr}"
        said += done.stdout
    return said


def prose(page: Path) -> str:
    """The page without its fenced blocks."""
    return FENCE.sub("", page.read_text(encoding="utf-8"))


def anchors(page: Path) -> set[str]:
    """What `#…` may name on a page: headings as the site writes them, and labels."""
    text = prose(page)
    headings = re.findall(rf"^#{{1,{ANCHORED}}} +(.+?) *#*$", text, re.MULTILINE)
    return {slug(heading) for heading in headings} | set(re.findall(r"^\(([\w-]+)\)=$", text, re.MULTILINE))


def slug(heading: str) -> str:
    """A heading as GitHub and the site write it in an address."""
    plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "")
    return re.sub(r"[^\w\- ]", "", plain.lower()).replace(" ", "-")


def contents(page: Path) -> set[Path]:
    """Pages below this one in the navigation."""
    found: set[Path] = set()
    for block in blocks(page):
        if block.kind == "{toctree}":
            for entry in filter(None, map(str.strip, block.text.splitlines())):
                target = re.sub(r".*<(.+)>", r"\1", entry)  # `Title <page>`
                found |= {Path(os.path.normpath(below)) for below in page.parent.glob(f"{target}.md")}
    return found
