"""Measures of the source tree that a reader feels: `python -m tools.measures [--json]`.

Lines, files over 350 lines, classes over 15 methods, functions over 6 parameters (`self` and `cls` not counted),
modules per folder and `type: ignore` comments. tests/test_architecture.py holds the tree to the limits below.
"""

from __future__ import annotations

import argparse
import ast
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "neuclust"
CHECKED = ("src", "tests", "benchmarks", "tools")
MOST_LINES, MOST_METHODS, MOST_PARAMETERS, MOST_MODULES = 350, 15, 6, 20
MOST_LONG_SIGNATURES, MOST_IGNORES = 10, 20
Function = ast.FunctionDef | ast.AsyncFunctionDef


def modules(folder: Path = SOURCE) -> list[Path]:
    """Every module below the folder."""
    return sorted(folder.rglob("*.py"))


def lines(file: Path) -> int:
    return len(file.read_text(encoding="utf-8").splitlines())


def long_files() -> dict[str, int]:
    """Files over the limit, with their lines."""
    return {_name(file): lines(file) for file in modules() if lines(file) > MOST_LINES}


def large_classes() -> dict[str, int]:
    """Classes with more methods than the limit; properties and special methods count."""
    found = {}
    for file, node in _nodes():
        if isinstance(node, ast.ClassDef):
            methods = sum(isinstance(entry, Function) for entry in node.body)
            if methods > MOST_METHODS:
                found[f"{_name(file)}::{node.name}"] = methods
    return found


def long_signatures() -> dict[str, int]:
    """Functions with more parameters than the limit."""
    found = {}
    for file, node in _nodes():
        if isinstance(node, Function) and (count := _parameters(node)) > MOST_PARAMETERS:
            found[f"{_name(file)}::{node.name}"] = count
    return found


def full_folders() -> dict[str, int]:
    """Folders with more modules than the limit."""
    counts = Counter(_name(file.parent) for file in modules())
    return {folder: count for folder, count in counts.items() if count > MOST_MODULES}


def ignores() -> dict[str, int]:
    """`type: ignore` comments per file, in everything that is type-checked."""
    mark = "# type: " + "ignore"
    texts = {file: file.read_text(encoding="utf-8") for folder in CHECKED for file in modules(ROOT / folder)}
    return {_name(file): text.count(mark) for file, text in texts.items() if mark in text}


def measures() -> dict[str, Any]:
    """All of them by name."""
    return {
        "lines of src": sum(map(lines, modules())),
        f"files over {MOST_LINES} lines": long_files(),
        f"classes over {MOST_METHODS} methods": large_classes(),
        f"functions over {MOST_PARAMETERS} parameters": long_signatures(),
        f"folders over {MOST_MODULES} modules": full_folders(),
        "type: ignore": ignores(),
    }


def _nodes() -> Iterator[tuple[Path, ast.AST]]:
    for file in modules():
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            yield file, node


def _parameters(node: Function) -> int:
    given = node.args
    names = [each.arg for each in (*given.posonlyargs, *given.args, *given.kwonlyargs)]
    bound = bool(names) and names[0] in ("self", "cls")
    return len(names) - bound + (given.vararg is not None) + (given.kwarg is not None)


def _name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def main() -> None:
    parser = argparse.ArgumentParser(description="Measures of the source tree.")
    parser.add_argument("--json", action="store_true", help="every name behind a count, as JSON")
    found = measures()
    if parser.parse_args().json:
        print(json.dumps(found, indent=1))
        return
    for name, value in found.items():
        shown = value if isinstance(value, int) else sum(value.values()) if name == "type: ignore" else len(value)
        print(f"{name:>32}: {shown}")


if __name__ == "__main__":
    main()
