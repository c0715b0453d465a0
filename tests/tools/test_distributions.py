"""What the wheel and the source distribution contain: the package with its data and the licence, and nothing else."""

from __future__ import annotations

import tarfile
import zipfile
from email import message_from_bytes
from pathlib import Path

import pytest

import neuclust
from tools.distributions import ROOT, build

PACKAGE = ROOT / "src" / "neuclust"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return build(tmp_path_factory.mktemp("distributions"))


def sources() -> set[str]:
    """Every file of the package in the checkout, by its path from `src`."""
    files = (path for path in PACKAGE.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return {path.relative_to(PACKAGE.parent).as_posix() for path in files}


def test_the_wheel_is_the_package_and_its_licence(made: tuple[Path, Path]) -> None:
    with zipfile.ZipFile(made[1]) as wheel:
        names = set(wheel.namelist())
        about = f"neuclust-{neuclust.__version__}.dist-info"
        metadata = message_from_bytes(wheel.read(f"{about}/METADATA"))
        assert wheel.read(f"{about}/licenses/LICENSE") == (ROOT / "LICENSE").read_bytes()
        assert wheel.read(f"{about}/entry_points.txt").decode().split() == [
            "[console_scripts]", "neuclust", "=", "neuclust.cli:main",
        ]  # fmt: skip
    assert {name for name in names if not name.startswith(f"{about}/")} == sources()
    assert (metadata["Name"], metadata["Version"]) == ("neuclust", neuclust.__version__)
    assert {"lab", "serve", "ray", "gym", "mlflow", "docs", "all"} <= set(metadata.get_all("Provides-Extra", []))


def test_data_that_code_opens_is_in_the_wheel(made: tuple[Path, Path]) -> None:
    """One of each kind, so that a mistake of `sources` cannot hide what is missing."""
    with zipfile.ZipFile(made[1]) as wheel:
        names = set(wheel.namelist())
    for wanted in ("py.typed", "data/yelp_twin.json", "experiment/multiverse/grids/multiverse.toml", "logs/schema.json",
                   "report/page.css", "report/reading.html", "serve/page/index.html", "serve/page/page.js",
                   "serve/page/page.css", "serve/page/icon.svg"):  # fmt: skip
        assert f"neuclust/{wanted}" in names


def test_the_source_distribution_has_no_tests_and_no_records(made: tuple[Path, Path]) -> None:
    with tarfile.open(made[0]) as archive:
        files = {member.name.partition("/")[2] for member in archive if member.isfile()}
    told = {name for name in files if name.startswith("src/neuclust.egg-info/")} | {"PKG-INFO", "setup.cfg"}
    own = {"CHANGELOG.md", "LICENSE", "MANIFEST.in", "README.md", "constraints.txt", "pyproject.toml"}
    assert files - told == own | {f"src/{name}" for name in sources()}
