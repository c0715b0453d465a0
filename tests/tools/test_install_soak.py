"""Clean virtual environments with the built wheel: each extra alone, and every Python that is found.

They take a gigabyte and minutes each, one at a time; `python -m benchmarks.install_size` measures them.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tools.distributions import build
from tools.installed.environment import Clean, clean, pinned
from tools.installed.trials import CORE, OF, TRIALS
from tools.installed.trying import try_out

PYTHONS = ("3.11", "3.12", "3.13")
MINIMAL = "import sys; print('{}.{}'.format(*sys.version_info))"

pytestmark = [pytest.mark.soak, pytest.mark.timeout(7200)]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("wheel"))[1]


@pytest.fixture(scope="module")
def core(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Clean]:
    with clean(tmp_path_factory.mktemp("core") / "venv", wheel) as environment:
        yield environment


def test_the_core_alone_works_and_names_what_is_missing(core: Clean, tmp_path: Path) -> None:
    """Fails when the core needs a package that it does not bring, another torch comes, or a sentence is a traceback."""
    assert try_out(core, "core", tmp_path) == []
    assert set(core.size.packages).isdisjoint({"typer", "rich", "numba", "polars", "matplotlib", "fastapi", "ray"})


@pytest.mark.parametrize("extra", [extra for extra in OF if extra != "core"])
def test_an_extra_alone_does_what_it_is_for_and_names_what_is_missing(
    extra: str, wheel: Path, core: Clean, tmp_path: Path
) -> None:
    """Fails when an extra brings too little for its purpose, another torch, or something missing is a traceback."""
    with clean(tmp_path / "venv", wheel, extra, core=core) as environment:
        (tmp_path / "trial").mkdir()
        assert try_out(environment, extra, tmp_path / "trial") == []


def interpreter(version: str) -> str | None:
    """A Python of this version with `venv`, on the path or among those that pyenv has."""
    found = [
        shutil.which(f"python{version}"),
        *sorted(map(str, Path.home().glob(f".pyenv/versions/{version}.*/bin/python"))),
    ]
    for each in found:
        if each is not None:
            asked = subprocess.run([each, "-c", f"import ensurepip, venv; {MINIMAL}"], capture_output=True, text=True)
            if asked.stdout.strip() == version:
                return each
    return None


@pytest.mark.parametrize("version", PYTHONS)
def test_the_core_selects_and_learns_on_every_python(version: str, wheel: Path, tmp_path: Path) -> None:
    """Fails when the core does not install on a Python that pyproject.toml names, or does not run there."""
    python = interpreter(version)
    if python is None:
        pytest.skip(f"no Python {version} with venv was found on the path or in ~/.pyenv")
    with clean(tmp_path / "venv", wheel, interpreter=python) as environment:
        (tmp_path / "core.py").write_text(CORE, encoding="utf-8")
        done = environment.run("core.py", cwd=tmp_path)
        assert (done.returncode, done.stdout) == (0, TRIALS["core"][1]), done.stderr
        assert environment.run("-c", MINIMAL, cwd=tmp_path).stdout.strip() == version
        assert environment.size.packages["torch"].partition("+")[0] == pinned("torch")
