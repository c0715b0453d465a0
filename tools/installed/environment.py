"""A virtual environment with the built wheel and one extra in it, what it took, and programs run in it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tools.distributions import ROOT

CONSTRAINTS = ROOT / "constraints.txt"
HANG_SECONDS = 1800
_OURS = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "PYTHONDONTWRITEBYTECODE", "PIP_REQUIRE_VIRTUALENV")


@dataclass(frozen=True, slots=True)
class Size:
    """What an installation brought: packages by name with their version, megabytes on disk, seconds of pip."""

    packages: dict[str, str]
    megabytes: float
    seconds: float


@dataclass(frozen=True, slots=True)
class Clean:
    """An environment of its own; programs in it see nothing of the checkout."""

    folder: Path
    size: Size

    @property
    def python(self) -> Path:
        return self.folder / "bin" / "python"

    def run(self, *words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
        """`python WORDS` of the environment."""
        return _run([self.python, *words], cwd)

    def command(self, *words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
        """`neuclust WORDS` of the environment."""
        return _run([self.folder / "bin" / "neuclust", *words], cwd)


@contextmanager
def clean(
    folder: Path, wheel: Path, extra: str = "", interpreter: str = sys.executable, core: Clean | None = None
) -> Iterator[Clean]:
    """A new environment with the wheel and at most one extra, which is deleted at the end: it takes a gigabyte.

    With `core`, an environment without an extra, pip finds its packages in place, as links, and brings what is more:
    the same files as without it, in less time. The size is that of all; the seconds are of what was more.
    """
    try:
        _checked([interpreter, "-m", "venv", folder], folder.parent)
        before = _megabytes(_site(folder))
        if core is not None:
            _link_packages(_site(core.folder), _site(folder))
        began = time.perf_counter()
        wanted = f"{wheel}[{extra}]" if extra else str(wheel)
        rule: list[str | Path] = ["--constraint", CONSTRAINTS]
        _checked([folder / "bin" / "python", "-m", "pip", "install", "--quiet", *rule, wanted], folder.parent)
        took = time.perf_counter() - began
        yield Clean(folder, Size(_packages(folder), _megabytes(_site(folder)) - before, took))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _link_packages(source: Path, target: Path) -> None:
    """Everything but neuclust, whose command is to be made anew, and what each environment is made with."""
    for entry in source.iterdir():
        if entry.name.startswith(("neuclust", "pip", "setuptools", "_distutils", "distutils", "pkg_resources")):
            continue
        if entry.is_dir():
            shutil.copytree(entry, target / entry.name, copy_function=os.link, dirs_exist_ok=True)
        else:
            os.link(entry, target / entry.name)


def pinned(name: str) -> str:
    """The version of a package in constraints.txt."""
    lines = CONSTRAINTS.read_text(encoding="utf-8").splitlines()
    return next(line.partition("==")[2] for line in lines if line.partition("==")[0].lower() == name)


def _packages(folder: Path) -> dict[str, str]:
    """All that pip lists, but pip and setuptools, which an environment is made with."""
    done = _checked([folder / "bin" / "python", "-m", "pip", "list", "--format", "json"], folder.parent)
    listed = {entry["name"].lower(): entry["version"] for entry in json.loads(done.stdout)}
    return {name: version for name, version in listed.items() if name not in ("pip", "setuptools")}


def _site(folder: Path) -> Path:
    (site,) = folder.glob("lib/python3*/site-packages")
    return site


def _megabytes(folder: Path) -> float:
    return sum(path.lstat().st_size for path in folder.rglob("*") if path.is_file()) / 1e6


def _run(words: list[str | Path], cwd: Path) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if name not in _OURS}
    environment |= {"OMP_NUM_THREADS": "1", "COLUMNS": "200"}
    return subprocess.run(
        [str(word) for word in words], cwd=cwd, env=environment, capture_output=True, text=True, timeout=HANG_SECONDS
    )


def _checked(words: list[str | Path], cwd: Path) -> subprocess.CompletedProcess[str]:
    done = _run(words, cwd)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(map(str, words))} failed:\n{done.stdout}{done.stderr}")
    return done
