"""The library does not speak command line: only `cli/` names options and commands."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "src" / "neuclust"
LIBRARY = sorted(file for file in PACKAGE.rglob("*.py") if file.relative_to(PACKAGE).parts[0] != "cli")
OPTION = re.compile(r"(?<![\w-])--[a-z]")
COMMAND = re.compile(
    r"neuclust (shop|run|sweep|suite|tune|reproduce|multiverse|compare|report|clusters|policies|envs|data)\b"
)
ALLOWED = {  # texts that are no option of ours
    "report/page_style.py": r"--[a-z-]+",  # custom properties of CSS
    "experiment/engines/ray.py": r"ray start --head",
    # The entry for machines without the command line's dependencies: plain argparse, so its options are its own.
    "experiment/multiverse/bare.py": "--(grid|data|env|out|done|engine|minutes|workers|rounds|seeds|cells|marked|list)",
    "experiment/reproduction/bare.py": "--(data|phase|policy|rounds|runs|seeds|clusters|cluster-seeds|out|done|engine|"
    "workers|minutes|list)",
}


def texts(source: str) -> Iterator[tuple[int, str, bool]]:
    """Every string of a module with its line, and whether it is a docstring; `f"--{name}"` is `--x`."""
    tree = ast.parse(source)
    inside = {id(part) for each in ast.walk(tree) if isinstance(each, ast.JoinedStr) for part in each.values}
    docs = {id(each.value) for each in ast.walk(tree) if isinstance(each, ast.Expr)}
    for each in ast.walk(tree):
        if isinstance(each, ast.JoinedStr):
            parts = [str(part.value) if isinstance(part, ast.Constant) else "x" for part in each.values]
            yield each.lineno, "".join(parts), False
        elif isinstance(each, ast.Constant) and isinstance(each.value, str) and id(each) not in inside:
            yield each.lineno, each.value, id(each) in docs


def spoken(source: str, allowed: str = r"(?!)") -> list[str]:
    """Lines that name an option anywhere, or a command outside a docstring."""
    found = []
    for line, text, is_doc in texts(source):
        rest = re.sub(allowed, "", text)
        if OPTION.search(rest) or (not is_doc and COMMAND.search(rest)):
            found.append(f"{line}: {text.strip()[:80]}")
    return found


@pytest.mark.parametrize("file", LIBRARY, ids=lambda file: str(file.relative_to(PACKAGE)))
def test_no_module_of_the_library_names_an_option_or_a_command(file: Path) -> None:
    name = file.relative_to(PACKAGE).as_posix()
    assert spoken(file.read_text(encoding="utf-8"), ALLOWED.get(name, r"(?!)")) == []


@pytest.mark.parametrize(
    ("source", "lines"),
    [
        ('raise ValueError("--rounds: expected more")', 1),
        ('raise ValueError(f"--{name}: expected more")', 1),
        ('x = f"lower {n} of --clusters"', 1),
        ('x = "`neuclust data prepare` writes such files"', 1),
        ('"""What `neuclust run` plays."""', 0),
        ('"""What --rounds means."""', 1),
        ('x = "a -- b", "a--b", "rounds: expected more"', 0),
    ],
)
def test_the_search_finds_what_it_should(source: str, lines: int) -> None:
    assert len(spoken(source)) == lines
