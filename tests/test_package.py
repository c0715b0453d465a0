"""The names at the top of the package, and what is loaded before anybody asks for something."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

import neuclust

SOURCE = Path(neuclust.__file__)
HEAVY = (
    "torch", "numpy", "scipy", "sklearn", "numba", "polars", "pandas", "matplotlib", "optuna", "safetensors", "ray",
    "fastapi", "apsw", "psycopg", "httpx", "opentelemetry", "mlflow", "gymnasium",
)  # fmt: skip


def loaded_by(*arguments: str) -> set[str]:
    """Names of all modules that Python has loaded when it ends."""
    environment = os.environ | {"PYTHONPROFILEIMPORTTIME": "1"}
    done = subprocess.run(
        [sys.executable, *arguments], env=environment, capture_output=True, text=True, check=True, timeout=120
    )
    lines = [line for line in done.stderr.splitlines() if line.startswith("import time:")]
    return {line.rpartition("|")[2].strip() for line in lines}


@pytest.mark.parametrize("name", neuclust.__all__)
def test_every_name_is_there(name: str) -> None:
    assert callable(getattr(neuclust, name))


def test_type_checkers_and_programs_see_the_same_names() -> None:
    block = next(node for node in ast.parse(SOURCE.read_text(encoding="utf-8")).body if isinstance(node, ast.If))
    imported = [alias for node in block.body if isinstance(node, ast.ImportFrom) for alias in node.names]
    assert sorted(alias.asname or alias.name for alias in imported) == sorted(neuclust.__all__)
    assert set(neuclust.__all__) <= set(dir(neuclust))
    homes = {
        alias.asname: f"{node.module}:{alias.name}"
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    for name, home in homes.items():
        module, attribute = home.split(":")
        assert getattr(neuclust, str(name)) is getattr(sys.modules[module], attribute)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'magic'"):
        getattr(neuclust, "magic")  # noqa: B009


def test_importing_the_package_loads_nothing_but_the_package() -> None:
    """What a bare interpreter has not is the package itself: not even `typing`."""
    more = loaded_by("-c", "import neuclust") - loaded_by("-c", "pass")
    assert more == {"neuclust"}


@pytest.mark.parametrize("arguments", [["--help"], ["run", "--help"], ["policies"], ["version"]], ids=" ".join)
def test_help_and_lists_wait_for_nothing_heavy(arguments: list[str]) -> None:
    loaded = loaded_by("-m", "neuclust", *arguments)
    assert loaded.isdisjoint(HEAVY)
    assert "typer" in loaded


def test_the_client_loads_no_torch() -> None:
    loaded = loaded_by("-c", "import neuclust.client")
    assert "httpx" in loaded
    assert loaded.isdisjoint({"torch", "numpy", "scipy", "sklearn", "numba", "polars"})
