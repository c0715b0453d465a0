"""Builds the source distribution and the wheel, from a copy of the checkout: no earlier build is packed in.

python -m tools.distributions DIR
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
_LEFT = shutil.ignore_patterns("__pycache__", "*.egg-info")
_BUILD = "import sys; from setuptools import build_meta; print(getattr(build_meta, sys.argv[1])(sys.argv[2]))"


def build(folder: Path) -> tuple[Path, Path]:
    """The source distribution and the wheel that is made from it, so that the one is known to hold the other."""
    checkout, unpacked = folder / "checkout", folder / "unpacked"
    _copy_checkout(checkout)
    source = _run(checkout, "build_sdist", folder)
    with tarfile.open(source) as archive:
        archive.extractall(unpacked, filter="data")
    (top,) = unpacked.iterdir()
    wheel = _run(top, "build_wheel", folder)
    for copy in (checkout, unpacked):
        shutil.rmtree(copy)
    return source, wheel


def _copy_checkout(folder: Path) -> None:
    """Everything that a build could take up by mistake, the tests too."""
    folder.mkdir(parents=True)
    for entry in ROOT.iterdir():
        if entry.is_file():
            shutil.copy(entry, folder)
    for name in ("src", "tests", "docs", "benchmarks", "tools", "experiments"):
        shutil.copytree(ROOT / name, folder / name, ignore=_LEFT)


def _run(project: Path, hook: str, folder: Path) -> Path:
    done = subprocess.run(
        [sys.executable, "-c", _BUILD, hook, str(folder.absolute())], cwd=project, capture_output=True, text=True
    )
    if done.returncode != 0:
        raise RuntimeError(f"{hook} failed:\n{done.stdout}{done.stderr}")
    return folder / done.stdout.splitlines()[-1]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, metavar="DIR")
    folder = parser.parse_args().folder
    for made in build(folder):
        print(f"{made} ({made.stat().st_size / 1e6:.2f} MB)")


if __name__ == "__main__":
    main()
