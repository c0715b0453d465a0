"""The tree keeps to its measures, the tests to the tree, and docs/architecture.md to both."""

from __future__ import annotations

import re
from itertools import groupby
from pathlib import Path

import pytest

from tools import measures

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "neuclust"
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
SHARED_TESTS = {"contracts", "docs", "tools", "benchmarks", "packaging", "outside_package"}  # not of one room
SCREEN = 60  # lines


def rooms() -> set[str]:
    """Every folder of the package that holds modules, as a path below it."""
    found = {file.parent.relative_to(SOURCE).as_posix() for file in measures.modules()}
    return found - {"."}


def section(title: str) -> str:
    found = re.search(rf"^## {title}\n(.*?)(?=^## |\Z)", PAGE, flags=re.MULTILINE | re.DOTALL)
    assert found is not None, f"docs/architecture.md has no section {title}"
    return found[1]


@pytest.mark.parametrize(
    "measure", [measures.long_files, measures.large_classes, measures.full_folders], ids=lambda each: each.__name__
)
def test_nothing_is_over_its_limit(measure: object) -> None:
    assert callable(measure)
    assert measure() == {}


def test_long_signatures_and_ignored_types_stay_rare() -> None:
    assert len(measures.long_signatures()) <= measures.MOST_LONG_SIGNATURES
    assert sum(measures.ignores().values()) <= measures.MOST_IGNORES


def test_the_measures_see_what_they_measure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    methods = "".join(f"    def m{index}(self): ...\n" for index in range(16))
    (tmp_path / "src").mkdir()
    code = f"class Large:\n{methods}\ndef long(a, b, c, d, e, *f, g): ...\n" + "\n" * 350
    (tmp_path / "src" / "room.py").write_text(code, encoding="utf-8")
    monkeypatch.setattr(measures, "ROOT", tmp_path)
    monkeypatch.setattr(measures, "modules", lambda folder=None: [tmp_path / "src" / "room.py"])
    assert measures.large_classes() == {"src/room.py::Large": 16}
    assert measures.long_signatures() == {"src/room.py::long": 7}
    assert list(measures.long_files()) == ["src/room.py"]


def test_tests_have_the_folders_of_the_tree() -> None:
    folders = {file.parent.relative_to(ROOT / "tests").as_posix() for file in (ROOT / "tests").rglob("test_*.py")}
    own = {folder for folder in folders - {"."} if folder.partition("/")[0] not in SHARED_TESTS}
    assert own <= rooms()
    assert {room.partition("/")[0] for room in rooms()} - {"presets"} <= {folder.partition("/")[0] for folder in own}


def test_the_page_is_two_screens() -> None:
    assert len(PAGE.splitlines()) <= 2 * SCREEN


def test_the_page_names_every_room_and_no_other() -> None:
    named = set(re.findall(r"^  ([a-z_/]+)/ ", section("The tree"), flags=re.MULTILINE))
    assert named == {room for room in rooms() if "/" not in room}


def test_no_path_comes_back_to_a_room() -> None:
    paths = re.findall(r"^- \*\*.*?(?=^- |\Z)", section("Paths"), flags=re.MULTILINE | re.DOTALL)
    assert len(paths) >= 4
    for path in paths:
        files = re.findall(r"`([a-z_/]+\.py)`", path)
        assert len(files) >= 4
        assert [file for file in files if not (SOURCE / file).exists()] == []
        visits = [room for room, _ in groupby(file.partition("/")[0] for file in files)]
        assert len(visits) == len(set(visits)), f"{visits} comes back to a room"


def test_a_new_line_belongs_to_a_place_that_is_there() -> None:
    rows = [row.split("|") for row in section("Where does a new line belong").splitlines() if row.startswith("| ")][1:]
    assert len(rows) >= 8
    for row in rows:
        places = re.findall(r"`([a-z_/.]+)`", "|".join(row[2:4]))
        here = [place for place in places if "/" in place or place.endswith(".py")]
        assert here, f"{row[1]} has no place"
        assert [place for place in here if not (SOURCE / place).exists() and not (ROOT / place).exists()] == []
