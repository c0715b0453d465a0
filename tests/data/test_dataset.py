import io
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from neuclust.data import npz
from neuclust.data.dataset import ProfileDataset, load_dataset
from neuclust.errors import DataError

N, R, D = 7, 5, 3


def arrays() -> dict[str, Any]:
    generator = np.random.default_rng(0)
    return {
        "arms": generator.random((N, D)).astype(np.float32),
        "rounds": (generator.random((R, D)) < 0.5).astype(np.float32),
        "arm_ids": np.arange(10, 10 + N),
        "round_ids": np.arange(R),
        "features": np.array(["a", "bé", "c"]),
    }


def dataset(**changes: Any) -> ProfileDataset:
    return ProfileDataset(name="toy", **{**arrays(), "features": ("a", "bé", "c"), **changes})


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "toy.npz"
    dataset(counts=np.ones((N, D), dtype=np.float32)).save(path)
    return path


def test_what_was_saved_is_loaded(file: Path) -> None:
    loaded, written = load_dataset(file), dataset(counts=np.ones((N, D), dtype=np.float32))
    assert (loaded.name, loaded.features) == ("toy", ("a", "bé", "c"))
    for name in ("arms", "rounds", "arm_ids", "round_ids", "counts"):
        assert np.array_equal(getattr(loaded, name), getattr(written, name))
    assert [loaded.arms.dtype, loaded.arm_ids.dtype] == [np.dtype(np.float32), np.dtype(np.int64)]


def test_counts_are_optional(tmp_path: Path) -> None:
    dataset().save(tmp_path / "deeper" / "plain.npz")
    assert load_dataset(tmp_path / "deeper" / "plain.npz").counts is None


def test_equal_data_gives_equal_bytes(file: Path, tmp_path: Path) -> None:
    before = file.read_bytes()
    load_dataset(file).save(tmp_path / "again.npz")
    assert (tmp_path / "again.npz").read_bytes() == before


def test_files_of_numpy_itself_are_read(tmp_path: Path) -> None:
    np.savez(tmp_path / "numpy.npz", **arrays())
    assert np.array_equal(load_dataset(tmp_path / "numpy.npz").arms, arrays()["arms"])


def test_whole_numbers_become_profiles(tmp_path: Path) -> None:
    np.savez(tmp_path / "whole.npz", **{**arrays(), "rounds": np.eye(R, D, dtype=np.int8)})
    assert load_dataset(tmp_path / "whole.npz").rounds.dtype == np.float32


def test_a_failed_save_leaves_the_old_file_and_nothing_else(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = file.read_bytes()

    def disk_full(*_: object, **__: object) -> None:
        raise OSError("no space left on device")

    monkeypatch.setattr(np.lib.format, "write_array", disk_full)
    with pytest.raises(OSError, match="no space"):
        dataset().save(file)
    assert file.read_bytes() == before
    assert [path.name for path in file.parent.iterdir()] == ["toy.npz"]


@pytest.mark.parametrize("share", [0.0, 0.02, 0.3, 0.7, 0.99])
def test_refuses_truncated_files(file: Path, share: float) -> None:
    whole = file.read_bytes()
    file.write_bytes(whole[: int(share * len(whole))])
    with pytest.raises(DataError, match=r"toy\.npz: expected a complete \.npz archive"):
        load_dataset(file)


def test_refuses_damage_inside(file: Path) -> None:
    """Any single damaged byte is either refused as bad data or did not matter; never another error."""
    whole, refused = file.read_bytes(), 0
    expected = load_dataset(file)
    for place in range(0, len(whole), 7):
        file.write_bytes(whole[:place] + bytes([whole[place] ^ 0xFF]) + whole[place + 1 :])
        try:
            loaded = load_dataset(file)
        except DataError:
            refused += 1
        else:
            assert np.array_equal(loaded.arms, expected.arms)
    assert refused > 20


def test_refuses_pickled_objects(tmp_path: Path) -> None:
    path = tmp_path / "pickled.npz"
    np.savez(path, **{**arrays(), "arms": np.array([{"a": 1}, None], dtype=object)})
    with pytest.raises(DataError, match="array arms holds pickled objects"):
        load_dataset(path)


@pytest.mark.parametrize("content", [b"", b"not a zip", b"\x80\x04K\x01.", b"PK\x03\x04" + bytes(40)])
def test_refuses_foreign_files(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "foreign.npz").write_bytes(content)
    with pytest.raises(DataError, match="damaged or foreign"):
        load_dataset(tmp_path / "foreign.npz")


def test_refuses_members_that_are_no_arrays(tmp_path: Path) -> None:
    path = tmp_path / "text.npz"
    with zipfile.ZipFile(path, "w") as archive:
        for name in arrays():
            archive.writestr(f"{name}.npy", "hello")
    with pytest.raises(DataError, match="array arms is damaged"):
        load_dataset(path)


def test_refuses_a_header_that_asks_for_all_memory(tmp_path: Path) -> None:
    path, header = tmp_path / "huge.npz", io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": "<f4", "fortran_order": False, "shape": (10**7, 10**7)})
    with zipfile.ZipFile(path, "w") as archive:
        for name, array in arrays().items():
            content = io.BytesIO()
            np.save(content, array)
            archive.writestr(f"{name}.npy", header.getvalue() if name == "arms" else content.getvalue())
    with pytest.raises(DataError, match="arms"):
        load_dataset(path)


def test_refuses_arrays_above_the_limit(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(npz, "MAX_BYTES", 64)
    with pytest.raises(DataError, match="at most 64 bytes in all"):
        load_dataset(file)


@pytest.mark.parametrize("missing", list(arrays()))
def test_names_what_is_missing(tmp_path: Path, missing: str) -> None:
    np.savez(tmp_path / "part.npz", **{name: array for name, array in arrays().items() if name != missing})
    with pytest.raises(DataError, match=f"missing {missing}"):
        load_dataset(tmp_path / "part.npz")


def test_refuses_no_file_and_folders(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="found nothing"):
        load_dataset(tmp_path / "nowhere.npz")
    with pytest.raises(DataError, match="found a folder"):
        load_dataset(tmp_path)


@pytest.mark.parametrize("name", ["arms", "rounds", "counts"])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_refuses_numbers_that_are_none(name: str, value: float) -> None:
    matrix = np.ones((R if name == "rounds" else N, D), dtype=np.float32)
    matrix[2, 1] = value
    with pytest.raises(DataError, match=rf"{name}\[2, 1\]: expected a finite number"):
        dataset(**{name: matrix})


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"rounds": np.ones((R, D + 1), dtype=np.float32)}, "one width"),
        ({"features": ("a", "b")}, "one width"),
        ({"arms": np.ones((0, D), dtype=np.float32), "arm_ids": np.arange(0)}, "0 arms"),
        ({"rounds": np.ones((0, D), dtype=np.float32), "round_ids": np.arange(0)}, "0 rounds"),
        ({"arm_ids": np.arange(N - 1)}, "expected 7 arm ids"),
        ({"round_ids": np.arange(R + 1)}, "5 round ids"),
        ({"arm_ids": np.zeros(N, dtype=np.int64)}, "duplicates"),
        ({"counts": np.ones((N, D + 1), dtype=np.float32)}, "counts: expected"),
        ({"counts": -np.ones((N, D), dtype=np.float32)}, r"counts\[0, 0\]: expected"),
        ({"arms": np.ones(N, dtype=np.float32)}, "expected arms and rounds as matrices"),
    ],
)
def test_refuses_shapes_that_do_not_fit(changes: dict[str, Any], says: str) -> None:
    with pytest.raises(DataError, match=says):
        dataset(**changes)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"arms": np.ones(D, dtype=np.float32)}, "arms: expected a matrix of numbers"),
        ({"arms": np.array([["a", "b", "c"]] * N)}, "arms: expected a matrix of numbers"),
        ({"arm_ids": np.arange(N) + 0.5}, "arm_ids: expected a vector of whole numbers"),
        ({"round_ids": np.zeros((R, 1), dtype=np.int64)}, "round_ids: expected a vector of whole numbers"),
    ],
)
def test_refuses_arrays_of_the_wrong_kind_and_names_the_file(
    tmp_path: Path, changes: dict[str, Any], says: str
) -> None:
    np.savez(tmp_path / "wrong.npz", **{**arrays(), **changes})
    with pytest.raises(DataError, match=rf"wrong\.npz: {says}"):
        load_dataset(tmp_path / "wrong.npz")
