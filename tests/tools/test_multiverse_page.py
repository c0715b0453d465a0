"""docs/multiverse.md and its curve are template and docs/records/multiverse.json, and the words fit the record."""

import copy
import json
from typing import Any

import pytest

from neuclust.analysis.multiverse.outcomes import outcomes_of
from neuclust.experiment.multiverse.grid import ROLES, read_grid
from neuclust.experiment.multiverse.grids import FULL
from neuclust.experiment.multiverse.record import read_record
from tools.multiverse_page import PAGE, PICTURE, RECORD, TEMPLATE, page_text, picture_text

WORDS = TEMPLATE.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def record() -> dict[str, Any]:
    return read_record(RECORD)


def test_page_and_curve_are_made_of_the_record(record: dict[str, Any]) -> None:
    assert PAGE.read_text(encoding="utf-8") == page_text(WORDS, record)
    assert PICTURE.read_text(encoding="utf-8") == picture_text(record)


def test_another_run_makes_another_page_and_another_curve(record: dict[str, Any]) -> None:
    other = copy.deepcopy(record)
    regrets = other["cells"][0]["runs"]["neuclust"]["expected"]
    regrets[0] += 40.0
    assert page_text(WORDS, other) != PAGE.read_text(encoding="utf-8")
    assert picture_text(other) != PICTURE.read_text(encoding="utf-8")


def test_the_record_is_of_the_committed_grid(record: dict[str, Any]) -> None:
    """A reading, an argument or a cell that changed in the grid has to be played or taken again."""
    grid = read_grid(FULL)
    assert [cell["options"] for cell in record["cells"]] == [list(cell.options) for cell in grid.cells]
    told = [(r["name"], r["question"], r["preferred"], r["why"], list(r["options"])) for r in record["readings"]]
    assert told == [(r.name, r.question, r.preferred, r.why, list(r.options)) for r in grid.readings]
    assert record["seeds"] == list(grid.seeds)
    whole = sum(
        all(len(cell["runs"][role]["seeds"]) == len(grid.seeds) for role in ROLES) and cell["engine"] == "device"
        for cell in record["cells"]
    )
    assert whole >= 72


def test_what_the_words_claim_is_in_the_record(record: dict[str, Any]) -> None:
    names = [reading["name"] for reading in record["readings"]]
    cells = outcomes_of(record)

    def answer(name: str, options: tuple[str, ...]) -> str:
        return options[names.index(name)]

    assert {answer("loss", cell.options) for cell in cells if not cell.sound} == {"sum"}
    study = json.loads((RECORD.parent / "movielens.json").read_text(encoding="utf-8"))
    rows = study["rows"]
    uniform = next(row for row in rows if (row["policy"], row["protocol"]) == ("uniform", "ours"))
    unit = [cell for cell in cells if cell.sound and answer("scale", cell.options) == "unit"]
    assert len(unit) == 4
    assert min(cell.mean(role).mean for cell in unit for role in ROLES) > uniform["expected_regret_mean"]


def test_a_number_that_is_not_in_the_record_is_refused(record: dict[str, Any]) -> None:
    for words in ("{{ count swans }}", "{{ preferred difference scale=none }}", "{{ orders start=both }}"):
        with pytest.raises(SystemExit, match="not in docs/records"):
            page_text(words, record)
