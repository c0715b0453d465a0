"""The prepared problem on disk: arms and rounds in one `.npz` without pickles."""

from __future__ import annotations

import os
import tempfile
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from neuclust.data.offers import ARRAYS as OFFER_ARRAYS
from neuclust.data.offers import Offers, check_offers, offers_from
from neuclust.errors import DataError

MAX_BYTES = 16 * 2**30  # of one array, so that a damaged header cannot ask for all memory


@dataclass(frozen=True, slots=True)
class ProfileDataset:
    """N arms with profiles (N, d) and R rounds with queries (R, d); round t uses `rounds[t - 1]`.

    `counts` (N, d), where present, says how many observations stand behind each entry of `arms`.
    `offers`, where present, say which arms each round really offered and what they paid: a replay.
    """

    name: str
    arms: NDArray[np.float32]
    rounds: NDArray[np.float32]
    arm_ids: NDArray[np.int64]
    round_ids: NDArray[np.int64]
    features: tuple[str, ...]
    counts: NDArray[np.float32] | None = None
    offers: Offers | None = None

    def __post_init__(self) -> None:
        _check(self)

    def save(self, path: Path) -> None:
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
        write_npz(path, arrays)


def write_npz(path: Path, arrays: Mapping[str, NDArray[np.generic]]) -> None:
    """A compressed `.npz` with fixed time stamps, moved into place when complete."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, scratch = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file, zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, array in arrays.items():
                member = zipfile.ZipInfo(f"{name}.npy", date_time=(1980, 1, 1, 0, 0, 0))
                member.compress_type = zipfile.ZIP_DEFLATED
                with archive.open(member, "w", force_zip64=True) as out:
                    np.lib.format.write_array(out, np.ascontiguousarray(array), allow_pickle=False)
        os.chmod(scratch, 0o644)
        os.replace(scratch, path)
    except BaseException:
        Path(scratch).unlink(missing_ok=True)
        raise


def load_dataset(path: Path) -> ProfileDataset:
    """Read and check a prepared problem; every refusal names the file and what was expected."""
    required = ("arms", "rounds", "arm_ids", "round_ids", "features")
    arrays = read_npz(path, required, optional=("counts", *OFFER_ARRAYS))
    try:
        return ProfileDataset(
            name=path.stem,
            arms=_numbers(arrays["arms"], "arms"),
            rounds=_numbers(arrays["rounds"], "rounds"),
            arm_ids=_identifiers(arrays["arm_ids"], "arm_ids"),
            round_ids=_identifiers(arrays["round_ids"], "round_ids"),
            features=tuple(str(name) for name in arrays["features"].ravel()),
            counts=_numbers(arrays["counts"], "counts") if "counts" in arrays else None,
            offers=offers_from(arrays),
        )
    except DataError as error:
        raise DataError(f"{path}: {error}") from None


def read_npz(path: Path, required: tuple[str, ...], optional: tuple[str, ...] = ()) -> dict[str, NDArray[np.generic]]:
    """The named arrays of an `.npz`; pickled, truncated and foreign files are refused."""
    if not path.is_file():
        raise DataError(f"{path}: expected a prepared .npz file, found {'a folder' if path.is_dir() else 'nothing'}")
    try:
        with zipfile.ZipFile(path) as archive:
            members = set(archive.namelist())
            missing = [name for name in required if f"{name}.npy" not in members]
            if missing:
                raise DataError(
                    f"{path}: expected arrays {', '.join(required)}; missing {', '.join(missing)}. "
                    "`neuclust data prepare` writes such files"
                )
            wanted = [name for name in (*required, *optional) if f"{name}.npy" in members]
            return {name: _read_member(archive, name, path) for name in wanted}
    except (zipfile.BadZipFile, EOFError, OSError, NotImplementedError, RuntimeError) as error:
        raise DataError(f"{path}: expected a complete .npz archive, got a damaged or foreign file ({error})") from None


def _read_member(archive: zipfile.ZipFile, name: str, path: Path) -> NDArray[np.generic]:
    if archive.getinfo(f"{name}.npy").file_size > MAX_BYTES:
        raise DataError(f"{path}: array {name} is larger than {MAX_BYTES >> 30} GiB; split the problem")
    try:
        with archive.open(f"{name}.npy") as member:
            array: NDArray[np.generic] = np.lib.format.read_array(member, allow_pickle=False)
            return array
    except (ValueError, zipfile.BadZipFile, zlib.error, EOFError, MemoryError) as error:
        hint = "holds pickled objects, which are never loaded" if "pickle" in str(error) else f"is damaged ({error})"
        raise DataError(f"{path}: array {name} {hint}; write it with neuclust or plain numeric numpy arrays") from None


def _numbers(array: NDArray[np.generic], name: str) -> NDArray[np.float32]:
    if array.ndim != 2 or array.dtype.kind not in "fiu":
        raise DataError(f"{name}: expected a matrix of numbers, got shape {array.shape} of {array.dtype}")
    return array.astype(np.float32)


def _identifiers(array: NDArray[np.generic], name: str) -> NDArray[np.int64]:
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise DataError(f"{name}: expected a vector of whole numbers, got shape {array.shape} of {array.dtype}")
    return array.astype(np.int64)


def _check(data: ProfileDataset) -> None:
    (n, d), (rounds, width) = data.arms.shape, data.rounds.shape
    if min(n, rounds, d) == 0:
        raise DataError(f"expected arms, rounds and features, got {n} arms, {rounds} rounds, {d} features")
    if width != d or len(data.features) != d:
        raise DataError(f"expected arms, rounds and features of one width, got {d}, {width} and {len(data.features)}")
    if data.arm_ids.shape != (n,) or data.round_ids.shape != (rounds,):
        raise DataError(
            f"expected {n} arm ids and {rounds} round ids, got {len(data.arm_ids)} and {len(data.round_ids)}"
        )
    if len(np.unique(data.arm_ids)) != n:
        raise DataError("arm_ids: expected each id once, got duplicates")
    for name, array in (("arms", data.arms), ("rounds", data.rounds), ("counts", data.counts)):
        if array is None:
            continue
        bad = ~np.isfinite(array)
        if bad.any():
            row, column = np.argwhere(bad)[0]
            raise DataError(f"{name}[{row}, {column}]: expected a finite number, got {array[row, column]}")
    if data.counts is not None and (data.counts.shape != data.arms.shape or (data.counts < 0).any()):
        raise DataError(f"counts: expected non-negative numbers of shape {data.arms.shape}, got {data.counts.shape}")
    if data.offers is not None:
        check_offers(data.offers, n, rounds)
