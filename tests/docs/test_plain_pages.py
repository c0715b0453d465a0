"""Python blocks of pages without a test of their own are run; what a page shows as printed is what is printed."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from site_pages import DOCS, PAGES, ROOT, blocks, name, run

from neuclust.experiment.shop import SimulatedShop

# Pages whose blocks have tests of their own, which know more about them.
ELSEWHERE = {
    "adding_a_policy": "test_adding_a_policy.py", "data": "test_data_page.py", "evaluation": "test_evaluation_page.py",
    "logs": "test_logs_page.py", "service": "test_service_page.py", "sweeps": "test_sweeps_page.py",
    "your_own_problem": "test_your_own_problem.py", "doors": "test_doors_pages.py",
}  # fmt: skip
PYTHON = ("python", "{code-block} python")


def has_code(page: Path) -> bool:
    return any(block.kind in PYTHON for block in blocks(page))


PLAIN = [page for page in PAGES if has_code(page) and name(page).partition("/")[0] not in ELSEWHERE]


@pytest.mark.parametrize("page", PLAIN, ids=name)
def test_the_blocks_of_a_page_run_and_print_what_it_says(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fails when a block raises, or a `text` block after it shows something else."""
    monkeypatch.chdir(tmp_path)
    SimulatedShop.of(0).write(tmp_path)  # items.csv and users.csv, for pages that take them as given
    names: dict[str, Any] = {}
    printed = ""
    for block in blocks(page):
        if block.kind in PYTHON:
            printed = run(page, block, names)
        elif block.kind == "text" and printed:
            assert block.text == printed, f"{page.name}:{block.line}"


def test_every_page_with_code_is_run_by_a_test() -> None:
    """Fails when a page with Python blocks is neither here nor in a test that is."""
    assert {"index", "explained/auto", "guides/commands", "coming_from/obp"} <= set(map(name, PLAIN))
    for page, test in ELSEWHERE.items():
        assert (ROOT / "tests" / "docs" / test).is_file()
        assert (DOCS / page).is_dir() or has_code(DOCS / f"{page}.md")


def commands() -> list[tuple[str, str]]:
    """Every line of a block that calls the command line, with its page; a backslash continues it."""
    found = []
    for page in PAGES:
        for block in blocks(page):
            text = block.text.replace("\\\n", " ")
            lines = re.findall(r"^(?:\$ )?(?:PYTHONPATH=src python -m )?(neuclust [a-z].*)$", text, re.MULTILINE)
            found += [(name(page), line) for line in lines if not block.kind.startswith(("{", "python"))]
    return found


def test_commands_of_all_pages_exist_with_their_options() -> None:
    """Fails when a page shows a command or an option that is not there."""
    from tools.site.command_pages import commands as known

    options = {
        words: {option for each in command.params for option in (*each.opts, *each.secondary_opts)}
        for words, command in known().items()
    }
    shown = commands()
    assert len(shown) > 60
    for page, line in shown:
        words = line.partition("  #")[0].partition(" | ")[0].split()[1:]
        if "--help" in words:
            continue
        called = next((" ".join(words[:n]) for n in (3, 2, 1) if " ".join(words[:n]) in options), None)
        assert called is not None, f"{page}: {line}"
        used = {word.partition("=")[0] for word in words if re.match(r"--?[a-z]", word)}
        assert used <= options[called], f"{page}: {line}"
