"""A light installation: what works without any extra, and the one sentence that names what is missing."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

from neuclust.errors import ConfigError
from neuclust.extras import EXTRA_OF, MissingExtra, extra, missing, require

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
CORE = {"numpy", "scipy", "torch", "scikit-learn", "safetensors"}
IMPORTED_AS = {"mlflow-skinny": "mlflow"}
WITH_OTHERS = {"pydantic": "fastapi", "starlette": "fastapi", "psycopg_pool": "psycopg"}  # what they come with

# Stands before a program: the packages of all extras look as if they were not installed.
LIGHT = """
import importlib.util, sys
from neuclust.extras import EXTRA_OF
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in EXTRA_OF:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Absent())
found = importlib.util.find_spec
importlib.util.find_spec = lambda name, package=None: None if name in EXTRA_OF else found(name, package)
"""


def light(program: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", LIGHT + program], cwd=folder, capture_output=True, text=True, check=False, timeout=300
    )


def packages(requirements: list[str]) -> set[str]:
    return {re.split(r"[\[<>=; ]", each)[0] for each in requirements}


def test_the_core_needs_five_packages() -> None:
    assert packages(PROJECT["dependencies"]) == CORE


def test_every_extra_is_known_by_the_packages_it_brings() -> None:
    extras: dict[str, list[str]] = PROJECT["optional-dependencies"]
    for package, name in EXTRA_OF.items():
        brought = {IMPORTED_AS.get(each, each).replace("-", "_") for each in packages(extras[name])}
        assert WITH_OTHERS.get(package, package) in {each.removesuffix("_api") for each in brought}
    for name in ("lab", "serve", "telemetry", "ray", "gym", "mlflow"):
        for each in packages(extras[name]):
            imported = IMPORTED_AS.get(each, each).replace("-", "_").removesuffix("_api").removesuffix("_sdk")
            assert imported in EXTRA_OF
    assert {"lab", "serve", "telemetry", "ray", "gym", "mlflow", "docs", "all", "bench", "dev"} == set(extras)


@pytest.mark.parametrize("package", sorted(EXTRA_OF))
def test_the_sentence_names_the_package_and_its_extra(package: str) -> None:
    error = missing(package, "this")
    assert str(error) == f"this needs {package}, which is not installed; pip install 'neuclust[{EXTRA_OF[package]}]'"
    assert isinstance(error, ConfigError)
    assert isinstance(error, ImportError)
    assert error.exit_code == 2


def test_only_packages_of_extras_are_named_and_other_errors_stay() -> None:
    def absent(name: str) -> Callable[[], None]:
        def use() -> None:
            with extra("drawing"):
                raise ModuleNotFoundError(f"No module named {name!r}", name=name)

        return use

    with pytest.raises(MissingExtra, match=r"^drawing needs matplotlib, "):
        absent("matplotlib.figure")()
    for other in ("neuclust.nothing", "antigravity_not_there"):
        with pytest.raises(ModuleNotFoundError, match=other):
            absent(other)()
    with extra("drawing"):
        require("polars", "this")


def test_the_front_door_opens_in_a_light_installation(tmp_path: Path) -> None:
    """Rows, columns and CSV files are read; Parquet names its extra; what was learned is saved and loaded."""
    program = """
from pathlib import Path
import neuclust
from neuclust.extras import MissingExtra

rows = [{"id": f"i{n}", "price": n / 10, "kind": "ab"[n % 2]} for n in range(12)]
Path("users.csv").write_text("id,age\\nu1,30\\nu2,50\\n")
shop = neuclust.Recommender(rows, "id", users="users.csv", user_id="id", slate_size=3, log="log.jsonl")
for number in range(5):
    choice = shop.recommend("u1")
    shop.feedback(choice.id, {choice.items[0]: 1.0})
shop.save("saved")
again = neuclust.Recommender.load("saved")
assert again.recommend("u2").items == shop.recommend("u2").items
Path("items.parquet").write_bytes(b"PAR1")
try:
    neuclust.Recommender("items.parquet", "id")
except MissingExtra as error:
    print(error)
try:
    list(neuclust.play(neuclust.tasks(["linucb"], "clusters", rounds=3), engine="ray"))
except MissingExtra as error:
    print(error)
print([record.rounds for record in neuclust.play(neuclust.tasks(["linucb"], "clusters", rounds=3))])
try:
    import neuclust.client
except MissingExtra as error:
    print(error)
"""
    done = light(program, tmp_path)
    assert done.stderr == ""
    assert done.stdout.splitlines() == [
        "items: reading Parquet needs polars, which is not installed; pip install 'neuclust[lab]'",
        "engine: the engine ray needs ray, which is not installed; pip install 'neuclust[ray]'",
        "[3]",
        "neuclust.client needs httpx, which is not installed; pip install 'neuclust[serve]'",
    ]


def test_the_command_line_names_its_extra(tmp_path: Path) -> None:
    done = light("import neuclust.cli; neuclust.cli.main()", tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        "neuclust: the command line needs typer, which is not installed; pip install 'neuclust[lab]'\n"
    )


def test_a_command_names_what_it_lacks(tmp_path: Path) -> None:
    """Typer and what it needs is there, as in the extra `serve`; polars is not."""
    without = "for name in ('typer', 'rich', 'pydantic'): del EXTRA_OF[name]\n"
    program = without + "sys.argv[1:] = ['report', '.']\nimport neuclust.cli; neuclust.cli.main()"
    done = light(program, tmp_path)
    assert done.returncode == 2
    assert re.fullmatch(r"neuclust: .* needs (polars|matplotlib), .* pip install 'neuclust\[lab\]'\n", done.stderr)
