"""The folder of records: everything comes back, other people's files are left alone, a kill leaves it usable."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest
from example_record import EXAMPLE

from neuclust.errors import DataError
from neuclust.experiment.seal import is_intact
from neuclust.experiment.store import (
    MARK,
    ROOMS,
    done,
    flaw,
    flaws,
    open_store,
    present,
    read_records,
    read_store,
    set_aside,
    sweep_out_scratch,
    write_run,
)

RECORD = replace(
    EXAMPLE,
    policy="neuclust",
    expected_regret=0.1 + 0.2,  # no short decimal
    seconds=1e-3,
    curve=((2, 0.1), (4, 0.1 + 0.2)),
    reward_curve=((2, 1.5), (4, 1 / 3)),
    chosen_clusters=(0, 2, 2, 1),
    rounds=4,
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    open_store(tmp_path / "store", make=True)
    return tmp_path / "store"


def test_records_come_back_to_the_last_bit(folder: Path) -> None:
    plain = replace(RECORD, policy="linucb", clusters=None, chosen_clusters=(), settings={})
    write_run(folder, "a" * 32, RECORD)
    write_run(folder, "b" * 32, plain)
    assert read_store(folder) == {"b" * 32: plain, "a" * 32: RECORD}
    assert done(folder) == {"a" * 32, "b" * 32}


def test_runs_are_one_table_whatever_is_missing_in_them(folder: Path) -> None:
    write_run(folder, "a", RECORD)
    write_run(folder, "b", replace(RECORD, clusters=None, problem={}, seed=4))
    table = pl.read_parquet(folder / "runs" / "*.parquet").sort("key")
    assert table["seed"].to_list() == [3, 4]
    assert table["expected_regret"].to_list() == [0.1 + 0.2] * 2


def test_writing_the_same_run_again_leaves_one(folder: Path) -> None:
    write_run(folder, "a", RECORD)
    write_run(folder, "a", RECORD)
    assert read_store(folder) == {"a": RECORD}


def test_a_kill_before_the_mark_or_the_rooms_leaves_a_folder_that_can_be_taken_up(tmp_path: Path) -> None:
    (tmp_path / f".{MARK}.k1ll3d").write_text("{")
    open_store(tmp_path, make=True)
    (tmp_path / "clusters").rmdir()
    open_store(tmp_path, make=True)
    write_run(tmp_path, "a", RECORD)
    assert read_store(tmp_path) == {"a": RECORD}


def test_half_written_files_are_no_records_and_are_swept_out(folder: Path) -> None:
    scratch = folder / "runs" / ".x1.scratch"
    scratch.write_bytes(b"PAR1")
    (folder / f".{MARK}.k1ll3d").write_text("{")
    write_run(folder, "a", RECORD)
    assert done(folder) == {"a"}
    sweep_out_scratch(folder)
    assert not scratch.exists()
    assert not list(folder.glob(f".{MARK}.*"))
    assert read_store(folder) == {"a": RECORD}


def test_a_curve_without_its_run_does_not_count(folder: Path) -> None:
    write_run(folder, "a", RECORD)
    (folder / "runs" / "a.parquet").unlink()
    assert done(folder) == set()
    assert read_store(folder) == {}


def test_another_format_is_refused_and_nothing_changes(folder: Path) -> None:
    (folder / MARK).write_text(json.dumps({"format": 0, "neuclust": "0.0.1"}))
    before = sorted(folder.rglob("*"))
    for make in (False, True):
        with pytest.raises(DataError, match="expected records of format 1, got 0; nothing was changed"):
            open_store(folder, make=make)
    assert sorted(folder.rglob("*")) == before


def test_a_folder_of_other_files_is_refused(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("x")
    with pytest.raises(DataError, match="found other files"):
        open_store(tmp_path, make=True)
    assert [file.name for file in tmp_path.iterdir()] == ["thesis.tex"]
    with pytest.raises(DataError, match="expected a folder of records"):
        open_store(tmp_path / "absent")


def test_a_damaged_record_is_named(folder: Path) -> None:
    write_run(folder, "a", RECORD)
    file = folder / "runs" / "a.parquet"
    file.write_bytes(file.read_bytes()[:100])
    with pytest.raises(DataError, match=r"a\.parquet: expected a record of one run"):
        read_store(folder)


def unseal(folder: Path, key: str) -> None:
    """As files of earlier versions are: without a checksum."""
    file = folder / "runs" / f"{key}.parquet"
    content = file.read_bytes()
    place = content.index(b"neuclust-sha256:")
    file.write_bytes(content[:place] + content[place + 16 + 64 :])
    assert is_intact(file.read_bytes(), ()) is None


def test_records_of_earlier_versions_are_read(folder: Path) -> None:
    write_run(folder, "a", RECORD)
    unseal(folder, "a")
    assert read_store(folder) == {"a": RECORD}
    assert done(folder) == {"a"}


@pytest.mark.parametrize("room", ROOMS)
@pytest.mark.parametrize("old", [False, True])
def test_a_file_of_another_run_does_not_count(folder: Path, room: str, old: bool) -> None:
    write_run(folder, "a", RECORD)
    write_run(folder, "b", replace(RECORD, seed=4))
    if old:
        unseal(folder, "a")
        unseal(folder, "b")
    shutil.copy(folder / room / "a.parquet", folder / room / "b.parquet")
    assert done(folder) == {"a"}
    with pytest.raises(DataError, match=r"b\.parquet: expected a record of one run, got .*another run|holds the run a"):
        read_store(folder)


@pytest.mark.parametrize("room", ROOMS)
def test_a_flipped_bit_in_any_file_of_a_run_is_noticed(folder: Path, room: str) -> None:
    write_run(folder, "a", RECORD)
    file = folder / room / "a.parquet"
    whole = file.read_bytes()
    for place in range(20, len(whole), 41):
        file.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        if flaw(folder, "a") is None:  # only where the mark of the checksum itself was hit
            assert read_store(folder) == {"a": RECORD}
            start = whole.index(b"neuclust-sha256:")
            assert start <= place < start + len(b"neuclust-sha256:")
    file.write_bytes(whole)
    assert flaw(folder, "a") is None


@pytest.mark.parametrize("room", ROOMS[1:])
def test_a_run_without_its_curve_or_clusters_does_not_count(folder: Path, room: str) -> None:
    write_run(folder, "a", RECORD)
    (folder / room / "a.parquet").unlink()
    assert done(folder) == set()


def test_a_run_played_again_without_clusters_leaves_no_old_ones(folder: Path) -> None:
    write_run(folder, "a", RECORD)
    write_run(folder, "a", replace(RECORD, chosen_clusters=()))
    assert read_store(folder) == {"a": replace(RECORD, chosen_clusters=())}


def test_bad_runs_are_left_out_of_what_is_read_where_somebody_hears_of_them(folder: Path) -> None:
    for key in "abc":
        write_run(folder, key, replace(RECORD, seed=ord(key)))
    (folder / "runs" / "b.parquet").write_bytes(b"")
    heard: list[str] = []
    assert set(read_records(folder, on_bad=heard.append)) == {"a", "c"}
    assert len(heard) == 1
    assert "b.parquet: expected a record of one run, got an empty file; it is left out" in heard[0]
    assert set(read_store(folder, keys={"a"})) == {"a"}


def test_bad_runs_are_set_aside_under_their_names_and_nothing_is_overwritten(folder: Path) -> None:
    write_run(folder, "b", RECORD)
    for content in (b"first", b"second"):
        write_run(folder, "a", RECORD)
        (folder / "runs" / "a.parquet").write_bytes(content)
        assert set_aside(folder, {"b"}) == {}
        assert "a sweep plays the run again" in flaws(folder, "ab")[0]
        (sentence,) = set_aside(folder, {"a", "b", "never played"}).values()
        assert f"its files are now in {folder / 'bad'} and the run is played again" in sentence
        assert present(folder) == {"b"}
    aside = folder / "bad" / "runs"
    assert {file.name: file.read_bytes() for file in aside.iterdir()} == {
        "a.parquet": b"first",
        "a.2.parquet": b"second",
    }
    assert not [file for room in ROOMS for file in (folder / room).glob("a.*")]


def test_a_folder_may_be_called_like_a_pattern(tmp_path: Path) -> None:
    folder = tmp_path / "gamma=[0-1]"
    open_store(folder, make=True)
    write_run(folder, "a", RECORD)
    assert read_store(folder) == {"a": RECORD}
