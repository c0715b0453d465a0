"""What holds numbers becomes float64 or int64; what does not is refused with a sentence, never rounded or wrapped."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from neuclust.casting import count, flags, real, whole
from neuclust.errors import DataError

REAL = [torch.float32, torch.float16, torch.bfloat16, torch.int8, torch.int16, torch.int32, torch.int64, torch.uint8,
        torch.uint16, torch.uint32, torch.uint64, torch.bool]  # fmt: skip
ARRAYS = ["f8", "f4", "f2", "g", ">f8", "<f4", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", ">i4", "?"]


@pytest.mark.parametrize("dtype", REAL)
def test_every_real_dtype_becomes_float64(dtype: torch.dtype) -> None:
    found = real(torch.tensor([0, 1, 1]).to(dtype), "x")
    assert found.dtype == torch.float64
    assert found.tolist() == [0.0, 1.0, 1.0]


@pytest.mark.parametrize("dtype", ARRAYS)
def test_every_real_array_becomes_float64(dtype: str) -> None:
    found = real(np.array([[0, 1], [1, 1]], dtype=dtype), "x")
    assert found.dtype == torch.float64
    assert found.tolist() == [[0.0, 1.0], [1.0, 1.0]]


def test_what_is_right_already_stays_the_same_object() -> None:
    floats, ints, bools = torch.ones(2, dtype=torch.float64), torch.arange(2), torch.tensor([True])
    assert real(floats, "x") is floats
    assert whole(ints, "x") is ints
    assert flags(bools, "x") is bools


@pytest.mark.parametrize(
    "given", [[1, 2.5], (1, 2.5), [np.float32(1), torch.tensor(2.5)], np.array([1, 2.5])[::-1][::-1]]
)
def test_lists_and_tuples_are_read(given: Any) -> None:
    assert real(given, "x").tolist() == [1.0, 2.5]


@pytest.mark.parametrize("given", [3, 3.0, np.int32(3), np.float16(3), torch.tensor(3), True + 2])
def test_a_plain_number_becomes_a_scalar(given: Any) -> None:
    found = real(given, "x")
    assert found.shape == ()
    assert float(found) == 3.0


def test_arrays_are_copied_so_that_later_writes_do_not_reach_the_tensor() -> None:
    array = np.ones(3)
    found = real(array, "x")
    array[:] = 7
    assert found.tolist() == [1.0, 1.0, 1.0]


def test_read_only_reversed_and_strided_arrays_are_read_as_they_look() -> None:
    array = np.arange(12.0).reshape(3, 4)
    array.flags.writeable = False
    for view in (array, array[::-1], array[:, ::-2], array.T, array[1]):
        assert real(view, "x").tolist() == view.tolist()
        assert whole(view, "x").tolist() == view.tolist()


def test_odd_tensors_are_read_as_they_look() -> None:
    plain = torch.arange(6.0, dtype=torch.float64).reshape(2, 3)
    negative = torch.complex(torch.zeros(2, 3).double(), -plain).conj().imag  # a view with its sign bit pending
    kinds = [plain.T.contiguous().T, plain.to_sparse(), plain.clone().requires_grad_(), negative]
    for tensor in kinds:
        found = real(tensor, "x")
        assert found.tolist() == plain.tolist()
        assert found.numpy().tolist() == plain.tolist()  # refused where a gradient or a sign is pending


@pytest.mark.parametrize(
    "given",
    ["1", ["a"], None, [1, None], object(), [[1], [1, 2]], {"a": 1}, np.array([1], dtype=object), 2**70, [1j], 1j,
     np.array(["2020"], dtype="M8[Y]"), torch.tensor([1j]), np.ma.array([1.0, 2.0], mask=[False, True]), b"1",
     [2**64, 1]],
)  # fmt: skip
def test_what_holds_no_real_numbers_is_refused_by_name(given: Any) -> None:
    for cast in (real, whole):
        with pytest.raises(DataError, match=r"^profiles: expected .*got"):
            cast(given, "profiles")


@pytest.mark.parametrize(
    "given",
    [[0.5], [float("nan")], [float("inf")], [1e300], np.array([2**63], dtype=np.uint64), [2**63, -1], [True],
     torch.tensor([2**64 - 1], dtype=torch.uint64), [2.0**53 + 2], torch.tensor([4096.0], dtype=torch.float16)],
)  # fmt: skip
def test_what_is_no_whole_number_of_64_bits_is_refused(given: Any) -> None:
    with pytest.raises(DataError, match="arm ids: expected whole numbers"):
        whole(given, "arm ids")


@given(st.lists(st.integers(-(2**63), 2**63 - 1), max_size=5))
def test_every_whole_number_of_64_bits_stays_what_it_is(numbers: list[int]) -> None:
    assert whole(np.array(numbers, dtype=np.int64), "x").tolist() == numbers
    if numbers:
        assert whole(numbers, "x").tolist() == numbers


def test_whole_floats_and_unsigned_numbers_are_ids() -> None:
    assert whole([3.0, 2.0**53], "x").tolist() == [3, 2**53]
    assert whole(np.array([2**63 - 1], dtype=np.uint64), "x").tolist() == [2**63 - 1]
    assert whole(torch.tensor([255], dtype=torch.uint8), "x").tolist() == [255]


@pytest.mark.parametrize("given", [3, np.int64(3), np.uint8(3), torch.tensor(3)])
def test_counts_are_ints(given: Any) -> None:
    found = count(given, "t")
    assert found == 3
    assert type(found) is int


@pytest.mark.parametrize("given", [3.0, "3", None, np.float64(3), torch.tensor([3, 4]), torch.tensor(3.5)])
def test_what_counts_nothing_is_refused(given: Any) -> None:
    with pytest.raises(DataError, match="t: expected a whole number"):
        count(given, "t")


def test_flags_are_booleans_or_zeros_and_ones() -> None:
    assert flags([1, 0], "x").tolist() == [True, False]
    assert flags(np.array([True]), "x").tolist() == [True]
    with pytest.raises(DataError, match="blind: expected yes or no"):
        flags([0.5], "blind")
