"""Records survive the disk, and nothing but records is read back."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from example_record import EXAMPLE
from hypothesis import given
from hypothesis import strategies as st

from neuclust.errors import DataError
from neuclust.experiment.records import REQUIRED, read_runs, runs_document, write_runs

CONTRACT = {
    "policy", "preset", "env", "seed", "rounds", "expected_regret", "clipped_regret", "expected_clipped_regret",
    "clipped_floor", "successes", "best_expected", "seconds", "select_seconds", "update_seconds", "curve",
}  # fmt: skip


def rows_of(document: str) -> list[dict[str, object]]:
    parsed = json.loads(document)
    assert parsed["schema"] == 1
    return list(parsed["runs"])


def test_the_contract_keys_are_required_and_written() -> None:
    assert set(REQUIRED) == CONTRACT
    (row,) = rows_of(runs_document([EXAMPLE]))
    assert row.keys() >= CONTRACT
    assert row["curve"] == [[1, 0.25], [2, 0.5]]
    assert row["settings"] == {"alpha": "0.5"}


def test_reading_gives_back_what_was_written(tmp_path: Path) -> None:
    records = [EXAMPLE, replace(EXAMPLE, seed=4, interrupted=True, clusters=None)]
    write_runs(tmp_path / "runs.json", records)
    assert read_runs(tmp_path / "runs.json") == records
    assert [path.name for path in tmp_path.iterdir()] == ["runs.json"]


finite = st.floats(allow_nan=False, allow_infinity=False)


@given(regret=finite, curve=st.lists(st.tuples(st.integers(1, 10**6), finite)), policy=st.text())
def test_any_finite_record_survives(
    tmp_path_factory: pytest.TempPathFactory, regret: float, curve: list[tuple[int, float]], policy: str
) -> None:
    policy = policy.encode("utf-8", "ignore").decode()  # lone surrogates are no text
    record = replace(EXAMPLE, expected_regret=regret, curve=tuple(curve), policy=policy)
    path = tmp_path_factory.getbasetemp() / "any.json"
    write_runs(path, [record])
    assert read_runs(path) == [record]


def test_a_file_with_the_contract_keys_alone_is_read(tmp_path: Path) -> None:
    row = {key: value for key, value in EXAMPLE.to_json().items() if key in CONTRACT}
    (tmp_path / "runs.json").write_text(json.dumps({"schema": 1, "runs": [row | {"colour": "blue"}]}))
    (record,) = read_runs(tmp_path / "runs.json")
    assert record.expected_regret == EXAMPLE.expected_regret
    assert record.settings == {}


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"seed": "0"}, "seed: expected a whole number, got '0'"),
        ({"seed": True}, "seed: expected a whole number"),
        ({"policy": 1}, "policy: expected text"),
        ({"expected_regret": None}, "expected_regret: expected a finite number"),
        ({"expected_regret": float("nan")}, "expected_regret: expected a finite number, got nan"),
        ({"curve": [[1, 2, 3]]}, "curve: expected a list of"),
        ({"curve": [["1", 2.0]]}, "curve: expected a list of [round, number] pairs"),
        ({"interrupted": 1}, "interrupted: expected true or false"),
        ({"settings": []}, "settings: expected an object"),
        ({"clusters": 2.5}, "clusters: expected a whole number"),
    ],
)
def test_wrong_values_are_refused_by_name(tmp_path: Path, change: dict[str, object], complaint: str) -> None:
    path = tmp_path / "runs.json"
    path.write_text(json.dumps({"schema": 1, "runs": [EXAMPLE.to_json(), EXAMPLE.to_json() | change]}))
    with pytest.raises(DataError, match="run 2") as caught:
        read_runs(path)
    assert complaint in str(caught.value)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "expected results as JSON"),
        ('{"schema": 1, "runs": [', "expected results as JSON"),
        ("[]", "name a file of results"),
        ('{"schema": 1}', "name a file of results"),
        ('{"schema": 2, "runs": []}', "expected schema 1, got 2"),
        ('{"runs": []}', "expected schema 1, got None"),
        ('{"schema": 1, "runs": [3]}', "run 1: expected an object, got int"),
        ('{"schema": 1, "runs": [{"policy": "x"}]}', "missing preset, env, seed"),
    ],
)
def test_foreign_files_are_refused(tmp_path: Path, text: str, complaint: str) -> None:
    path = tmp_path / "runs.json"
    path.write_text(text)
    with pytest.raises(DataError) as caught:
        read_runs(path)
    assert complaint in str(caught.value)
    assert str(path) in str(caught.value)


def test_unreadable_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="could not read it"):
        read_runs(tmp_path / "absent.json")
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00PK")
    with pytest.raises(DataError, match="expected results as JSON"):
        read_runs(tmp_path / "binary")


def test_a_failed_write_leaves_the_earlier_file(tmp_path: Path) -> None:
    path = tmp_path / "runs.json"
    write_runs(path, [EXAMPLE])
    with pytest.raises(ValueError, match="Out of range float"):
        write_runs(path, [replace(EXAMPLE, seconds=float("inf"))])
    assert read_runs(path) == [EXAMPLE]
    assert [entry.name for entry in tmp_path.iterdir()] == ["runs.json"]


def test_a_write_that_cannot_be_moved_into_place_leaves_no_scratch(tmp_path: Path) -> None:
    (tmp_path / "runs.json").mkdir()
    with pytest.raises(OSError, match=r"runs\.json"):
        write_runs(tmp_path / "runs.json", [EXAMPLE])
    assert [entry.name for entry in tmp_path.iterdir()] == ["runs.json"]
