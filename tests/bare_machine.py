"""A Python that has only torch, numpy, scipy, scikit-learn and numba of what neuclust can use."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib.metadata import requires

PRESENT = {"torch", "numpy", "scipy", "scikit-learn", "numba"}
_CODE = """
import sys
absent, module = set(sys.argv[1].split(",")), sys.argv[2]
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in absent:
            raise ModuleNotFoundError(f"a bare machine has no {name}")
sys.meta_path.insert(0, Absent())
import importlib
raise SystemExit(importlib.import_module(module).main(sys.argv[3:]))
"""


def absent_modules() -> set[str]:
    """Top-level modules of everything neuclust and its extras ask for and a bare machine has not."""
    names = {re.split(r"[\s\[<>=!~;(]", line, maxsplit=1)[0].lower() for line in requires("neuclust") or ()}
    return {name.replace("-", "_") for name in names - PRESENT - {"neuclust"}}


def bare_run(module: str, *words: str) -> subprocess.CompletedProcess[str]:
    """The `main` of a module with these words, in a process in which nothing else can be imported."""
    absent = absent_modules()
    assert {"typer", "rich", "polars", "matplotlib"} <= absent
    line = [sys.executable, "-c", _CODE, ",".join(sorted(absent)), module, *words]
    return subprocess.run(line, capture_output=True, text=True, check=False)
