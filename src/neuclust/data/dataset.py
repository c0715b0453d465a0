"""The prepared problem on disk: arms and rounds in one `.npz` without pickles."""

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from neuclust.data.npz import Header, read_npz, write_npz
from neuclust.data.offers import ARRAYS as OFFER_ARRAYS
from neuclust.data.offers import Offers, check_offer_kinds, check_offers, offers_from
from neuclust.data.options import refuse_where
from neuclust.errors import DataError


@dataclass(frozen=True, slots=True)
class ProfileDataset:
    """N arms with profiles (N, d) and R rounds with queries (R, d); round t uses `rounds[t - 1]`."""

    name: str
    arms: NDArray[np.float32]
    rounds: NDArray[np.float32]
    arm_ids: NDArray[np.int64]
    round_ids: NDArray[np.int64]
    features: tuple[str, ...]
    counts: NDArray[np.float32] | None = None  # (N, d) observations behind each entry of `arms`
    offers: Offers | None = None  # recorded rounds: which arms each offered and what these paid

    def __post_init__(self) -> None:
        counts = None if self.counts is None else self.counts.shape
        shapes = self.arms.shape, self.rounds.shape, self.arm_ids.shape, self.round_ids.shape
        _check_shapes(*shapes, len(self.features), counts)
        if len(np.unique(self.arm_ids)) != len(self.arms):
            raise DataError("arm_ids: expected each id once, got duplicates")
        for name, array in (("arms", self.arms), ("rounds", self.rounds), ("counts", self.counts)):
            if array is not None:
                refuse_where(~np.isfinite(array), name, array, "a finite number")
        if self.counts is not None:
            refuse_where(self.counts < 0, "counts", self.counts, "a number of 0 or more")
        if self.offers is not None:
            check_offers(self.offers, len(self.arms), len(self.rounds))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the `.npz` whole or not at all; equal data gives equal bytes."""
        arrays: dict[str, NDArray[np.generic]] = {
            "arms": self.arms.astype("<f4"),
            "rounds": self.rounds.astype("<f4"),
            "arm_ids": self.arm_ids.astype("<i8"),
            "round_ids": self.round_ids.astype("<i8"),
            "features": np.array(self.features, dtype=np.str_),
        }
        if self.counts is not None:
            arrays["counts"] = self.counts.astype("<f4")
        if self.offers is not None:
            arrays |= self.offers.arrays()
        write_npz(Path(path), arrays)


Shape = tuple[int, ...]
Rows = tuple[NDArray[np.int64], NDArray[Any]]  # ids (n,) and features (n, d)


def profile_dataset(
    name: str,
    features: Sequence[str],
    arms: Rows,
    rounds: Rows,
    counts: NDArray[Any] | None = None,
    offers: Offers | None = None,
) -> ProfileDataset:
    """A dataset from the ids and rows of its arms and rounds, in any precision."""
    matrices = arms[1].astype(np.float32), rounds[1].astype(np.float32)
    behind = None if counts is None else counts.astype(np.float32)
    return ProfileDataset(name, *matrices, arms[0], rounds[0], tuple(features), behind, offers)


def load_dataset(path: str | os.PathLike[str]) -> ProfileDataset:
    """Read and check a prepared problem; every refusal names the file and what was expected."""
    file = Path(path)
    required = ("arms", "rounds", "arm_ids", "round_ids", "features")
    arrays = read_npz(file, required, ("counts", *OFFER_ARRAYS), _check_headers)
    try:
        return ProfileDataset(
            name=file.stem,
            arms=_numbers(arrays["arms"], "arms"),
            rounds=_numbers(arrays["rounds"], "rounds"),
            arm_ids=_identifiers(arrays["arm_ids"], "arm_ids"),
            round_ids=_identifiers(arrays["round_ids"], "round_ids"),
            features=tuple(str(name) for name in arrays["features"].ravel()),
            counts=_numbers(arrays["counts"], "counts") if "counts" in arrays else None,
            offers=offers_from(arrays),
        )
    except DataError as error:
        raise DataError(f"{file}: {error}") from None


def _check_headers(headers: dict[str, Header]) -> None:
    """Kinds and sizes, while nothing is unpacked yet."""
    for name in ("arms", "rounds", "counts"):
        if name in headers:
            headers[name].expect(name, "a matrix of numbers", "fiu", dimensions=2)
    for name in ("arm_ids", "round_ids"):
        headers[name].expect(name, "a vector of whole numbers", "iu", dimensions=1)
    headers["features"].expect("features", "names as text", "Uiuf")
    check_offer_kinds(headers)
    counts = headers["counts"].shape if "counts" in headers else None
    arms, rounds, arm_ids, round_ids = (headers[name].shape for name in ("arms", "rounds", "arm_ids", "round_ids"))
    _check_shapes(arms, rounds, arm_ids, round_ids, math.prod(headers["features"].shape), counts)


def _numbers(array: NDArray[np.generic], name: str) -> NDArray[np.float32]:
    with np.errstate(over="ignore"):  # said below, with its place
        numbers = array.astype(np.float32)
    refuse_where(np.isinf(numbers) & ~np.isinf(array), name, array, "a number that float32 can hold", "rescale it")
    return numbers


def _identifiers(array: NDArray[np.generic], name: str) -> NDArray[np.int64]:
    if array.dtype.kind == "u":
        too_large = np.asarray(array > np.array(2**63 - 1, dtype=np.uint64))
        refuse_where(too_large, name, array, "ids up to 2**63 - 1", "number them anew, from 0 for instance")
    return array.astype(np.int64)


def _check_shapes(
    arms: Shape, rounds: Shape, arm_ids: Shape, round_ids: Shape, features: int, counts: Shape | None
) -> None:
    """Refuse sizes that do not fit each other, of arrays or of their headers."""
    if len(arms) != 2 or len(rounds) != 2:
        raise DataError(f"expected arms and rounds as matrices, got shapes {arms} and {rounds}")
    (n, d), (n_rounds, width) = arms, rounds
    if min(n, n_rounds, d) == 0:
        raise DataError(f"expected arms, rounds and features, got {n} arms, {n_rounds} rounds, {d} features")
    if width != d or features != d:
        raise DataError(f"expected arms, rounds and features of one width, got {d}, {width} and {features}")
    if arm_ids != (n,) or round_ids != (n_rounds,):
        raise DataError(f"expected {n} arm ids and {n_rounds} round ids, got shapes {arm_ids} and {round_ids}")
    if counts is not None and counts != arms:
        raise DataError(f"counts: expected the shape of the arms, {arms}, got {counts}")
