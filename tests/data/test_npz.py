"""Prepared files that lie about themselves, explode or are damaged: read right, or refused in a sentence."""

from __future__ import annotations

import io
import re
import tracemalloc
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from neuclust.data import npz
from neuclust.data.dataset import ProfileDataset, load_dataset
from neuclust.data.offers import Offers
from neuclust.errors import DataError
from neuclust.randomness import stream

N, R, D = 9, 4, 3


def dataset() -> ProfileDataset:
    generator = stream(0, "npz test")
    return ProfileDataset(
        name="toy",
        arms=generator.standard_normal((N, D)).astype(np.float32),
        rounds=np.ones((R, D), dtype=np.float32),
        arm_ids=np.arange(N) + 100,
        round_ids=np.arange(R),
        features=("a", "b", "c"),
        counts=np.ones((N, D), dtype=np.float32),
        offers=Offers(np.array([0, 2, 4, 6, 8]), np.tile([1, 5], 4), np.tile(np.array([0, 1], dtype=np.float32), 4)),
    )


def members() -> dict[str, bytes]:
    """Every array of the dataset as it stands in the archive."""
    written = {}
    data = dataset()
    assert data.offers is not None
    assert data.counts is not None
    arrays: dict[str, Any] = {
        "arms": data.arms,
        "rounds": data.rounds,
        "arm_ids": data.arm_ids,
        "round_ids": data.round_ids,
        "features": np.array(data.features),
        "counts": data.counts,
        **data.offers.arrays(),
    }
    for name, array in arrays.items():
        content = io.BytesIO()
        np.save(content, array)
        written[name] = content.getvalue()
    return written


def archive(path: Path, content: dict[str, bytes], packing: int = zipfile.ZIP_DEFLATED) -> Path:
    with zipfile.ZipFile(path, "w", packing) as out:
        for name, part in content.items():
            out.writestr(f"{name}.npy", part)
    return path


def header(shape: Any, descr: Any = "<f4", fortran: bool = False) -> bytes:
    text = f"{{'descr': {descr!r}, 'fortran_order': {fortran}, 'shape': {shape!r}, }}".encode()
    text += b" " * (-(len(text) + 11) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text


def same(one: ProfileDataset, other: ProfileDataset) -> bool:
    if one.offers is None or other.offers is None:
        return False
    arrays = ("arms", "rounds", "arm_ids", "round_ids", "counts")
    parts = ("starts", "arms", "rewards")
    return (
        one.features == other.features
        and all(np.array_equal(getattr(one, name), getattr(other, name)) for name in arrays)
        and all(np.array_equal(getattr(one.offers, name), getattr(other.offers, name)) for name in parts)
    )


@pytest.mark.parametrize("as_path", [str, Path])
def test_paths_may_be_text(tmp_path: Path, as_path: Callable[[Path], Any]) -> None:
    dataset().save(as_path(tmp_path / "toy.npz"))
    assert same(load_dataset(as_path(tmp_path / "toy.npz")), dataset())


@pytest.mark.parametrize(
    "shape", [(2**70, 6), (2**62, 2**62), (-1, D), (N, -D), (N, D, 10**9), (10**7, 10**7), (True, D), ()]
)
def test_shapes_that_cannot_be_are_refused(tmp_path: Path, shape: tuple[int, ...]) -> None:
    path = archive(tmp_path / "huge.npz", members() | {"arms": header(shape) + bytes(4 * N * D)})
    with pytest.raises(DataError, match=r"huge\.npz: array arms: expected the .* bytes of its shape"):
        load_dataset(path)


@pytest.mark.parametrize(
    "start",
    [
        header((N, D), "nonsense"),
        header("N, D"),
        header(1.5),
        header((N, D), [["a"]]),
        b"\x93NUMPY\x01\x00\x40\x00" + b"(" * 63 + b"\n",
        b"\x93NUMPY\x01\x00\x10\x27" + b"(" * 9999 + b"\n",
        b"\x93NUMPY\x01\x00\x04\x00'''\n",
        b"\x93NUMPY\x03\x00" + header((N, D))[8:],
        b"\x93NUMPY\x01\x00\xff\xff",
        b"",
    ],
)
def test_headers_that_are_none_are_refused(tmp_path: Path, start: bytes) -> None:
    path = archive(tmp_path / "broken.npz", members() | {"arms": start + bytes(4 * N * D)})
    with pytest.raises(DataError, match=r"broken\.npz: array arms is damaged"):
        load_dataset(path)


def test_an_array_in_column_order_is_read_right(tmp_path: Path) -> None:
    arms = dataset().arms
    content = header((N, D), fortran=True) + np.asfortranarray(arms).tobytes("F")
    assert np.array_equal(load_dataset(archive(tmp_path / "f.npz", members() | {"arms": content})).arms, arms)


def test_a_bomb_is_refused_before_it_is_unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Arrays that fit each other but unpack to far more than the file: nothing of them reaches memory."""
    monkeypatch.setattr(npz, "EXPANSION_SLACK", 2**20)
    many = 4 * 2**20 // (4 * D)
    ids = io.BytesIO()
    np.save(ids, np.zeros(many, dtype=np.int64))
    bomb = members() | {"arms": header((many, D)) + bytes(4 * D * many), "arm_ids": ids.getvalue()}
    del bomb["counts"]
    path = archive(tmp_path / "bomb.npz", bomb)
    refused_before_unpacking(path, r"unpack to at most 200 times the .* bytes of the file, got .*numpy\.savez")


def refused_before_unpacking(path: Path, complaint: str) -> None:
    """Refused with less than a mebibyte of memory."""
    tracemalloc.start()
    with pytest.raises(DataError, match=complaint):
        load_dataset(path)
    assert tracemalloc.get_traced_memory()[1] < 2**20
    tracemalloc.stop()


def test_arrays_that_do_not_fit_each_other_are_refused_before_they_are_unpacked(tmp_path: Path) -> None:
    many = 4 * 2**20 // (4 * D)
    path = archive(tmp_path / "bomb.npz", members() | {"arms": header((many, D)) + bytes(4 * D * many)})
    refused_before_unpacking(path, rf"bomb\.npz: expected {many} arm ids")


def test_a_mostly_empty_matrix_of_honest_size_is_no_bomb(tmp_path: Path) -> None:
    many = 2000
    data = dataset()
    arms = np.zeros((many, D), dtype=np.float32)
    ProfileDataset("z", arms, data.rounds, np.arange(many), data.round_ids, data.features).save(tmp_path / "z.npz")
    assert load_dataset(tmp_path / "z.npz").arms.shape == (many, D)


def test_an_array_that_is_there_twice_or_packed_otherwise_is_refused(tmp_path: Path) -> None:
    path = archive(tmp_path / "two.npz", members())
    with zipfile.ZipFile(path, "a") as out, pytest.warns(UserWarning, match="Duplicate"):
        out.writestr("arms.npy", members()["arms"])
    with pytest.raises(DataError, match="expected each array once, got arms twice"):
        load_dataset(path)
    with pytest.raises(DataError, match="expected plain or deflated bytes"):
        load_dataset(archive(tmp_path / "lzma.npz", members(), zipfile.ZIP_LZMA))


def test_an_optional_array_whose_entry_in_the_directory_is_damaged_is_not_lost(tmp_path: Path) -> None:
    whole = archive(tmp_path / "whole.npz", members()).read_bytes()
    place, path = whole.rindex(b"counts.npy"), tmp_path / "damaged.npz"
    path.write_bytes(whole[:place] + b"C" + whole[place + 1 :])
    with pytest.raises(DataError, match="damaged or foreign file"):
        load_dataset(path)
    end = whole.rindex(b"PK\x05\x06")
    path.write_bytes(whole[: end + 10] + b"\x0a" + whole[end + 11 :])
    with pytest.raises(DataError, match="lists 9 of 10 members"):
        load_dataset(path)


def test_ids_and_numbers_that_do_not_fit_are_named_with_their_place(tmp_path: Path) -> None:
    for name, value, says in (
        (
            "arm_ids",
            np.arange(N, dtype=np.uint64) + np.uint64(2**63 - 4),
            r"arm_ids\[4\]: expected ids up to 2\*\*63 - 1",
        ),
        ("arms", np.full((N, D), 1e300), r"arms\[0, 0\]: expected a number that float32 can hold, got 1e\+300"),
    ):
        content = io.BytesIO()
        np.save(content, value)
        path = archive(tmp_path / "large.npz", members() | {name: content.getvalue()})
        with pytest.raises(DataError, match=rf"large\.npz: {says}"):
            load_dataset(path)
    fitting = io.BytesIO()
    np.save(fitting, np.arange(N, dtype=np.uint64) + np.uint64(2**63 - N))
    loaded = load_dataset(archive(tmp_path / "fits.npz", members() | {"arm_ids": fitting.getvalue()}))
    assert loaded.arm_ids[-1] == 2**63 - 1


def damaged(content: bytes, kind: str, generator: np.random.Generator) -> bytes:
    """The file after one mishap."""
    place = int(generator.integers(len(content)))
    if kind == "truncated":
        return content[:place]
    if kind == "flipped":
        return content[:place] + bytes([content[place] ^ (1 << int(generator.integers(8)))]) + content[place + 1 :]
    if kind == "noise":
        noise = generator.bytes(int(generator.integers(1, 40)))
        return content[:place] + noise + content[place + len(noise) :]
    if kind == "cut":
        return content[:place] + content[place + int(generator.integers(1, 100)) :]
    return content[:place] + generator.bytes(int(generator.integers(1, 100))) + content[place:]


def attack(tmp_path: Path, tried: int) -> tuple[int, int, int]:
    """Damage packed files, files stored plainly, and arrays before they are packed.

    How many were refused, how many were read right, and how many of the last kind are sound files with other numbers.
    """
    generator, refused, right, other = stream(0, "damaged npz"), 0, 0, 0
    kinds = ("truncated", "flipped", "noise", "cut", "inserted")
    whole = {packing: archive(tmp_path / "whole.npz", members(), packing).read_bytes() for packing in (0, 8)}
    names, path = list(members()), tmp_path / "damaged.npz"
    for number in range(tried):
        kind, way = kinds[number % len(kinds)], (number // len(kinds)) % 3
        inside = way == 2
        if inside:  # checksums of the archive fit: only what arrays say of themselves can tell
            name = names[int(generator.integers(len(names)))]
            part = members()[name]
            broken = damaged(part[:80], kind, generator) + part[80:]
            archive(path, members() | {name: broken})
        else:
            path.write_bytes(damaged(whole[8 * way], kind, generator))
        try:
            loaded = load_dataset(path)
        except DataError:
            refused += 1
        else:
            equal = same(loaded, dataset())
            assert inside or equal, f"{kind}, {number}"
            right += equal
            other += not equal
    return refused, right, other


def test_damaged_files_are_refused_or_read_right(tmp_path: Path) -> None:
    refused, right, other = attack(tmp_path, 150)
    assert refused > 120
    assert refused + right + other == 150


@pytest.mark.soak
def test_thousands_of_damaged_files_are_refused_or_read_right(
    tmp_path: Path, report_counts: Callable[..., None]
) -> None:
    refused, right, other = attack(tmp_path, 6000)
    report_counts("damaged npz files", tried=6000, refused=refused, read_right=right, sound_with_other_numbers=other)
    assert other < 120


def test_every_refusal_is_one_line(tmp_path: Path) -> None:
    path = archive(tmp_path / "text.npz", members() | {"arms": b"hello"})
    with pytest.raises(DataError) as caught:
        load_dataset(path)
    assert re.fullmatch(r".*text\.npz: array arms is damaged \(.*\); write it with .*", str(caught.value))
