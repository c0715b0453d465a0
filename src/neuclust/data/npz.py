"""Arrays in one `.npz`, written whole or not at all.

Headers and declared sizes are checked before anything is unpacked: a few bytes can promise any amount of memory.
"""

import math
import os
import struct
import zipfile
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from neuclust.errors import DataError
from neuclust.files import placed

MAX_BYTES = 16 * 2**30  # of all arrays that are read
MAX_EXPANSION = 200  # mostly empty matrices shrink 10 to 150 times, a bomb about 1000 times
EXPANSION_SLACK = 512 * 2**20  # arrays that fit in here anyhow are harmless, however much they shrank

_HEADERS = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
_END, _LONGEST_END = b"PK\x05\x06", 2**16 + 22  # what a zip ends with, with the longest comment
_DAMAGE = (
    zipfile.BadZipFile, zlib.error, struct.error, EOFError, OSError, NotImplementedError, RuntimeError, ValueError,
    OverflowError, MemoryError,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Header:
    """Shape and type that an array declares."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]

    @property
    def nbytes(self) -> int:
        return math.prod(self.shape) * self.dtype.itemsize

    def expect(self, name: str, what: str, kinds: str, dimensions: int | None = None) -> None:
        """Refuse an array whose type is not among the NumPy kinds, or with another number of dimensions."""
        if self.dtype.kind not in kinds or dimensions not in (None, len(self.shape)):
            raise DataError(f"{name}: expected {what}, got shape {self.shape} of {self.dtype}")


def write_npz(path: Path, arrays: Mapping[str, NDArray[np.generic]]) -> None:
    """A compressed `.npz` with fixed time stamps, moved into place when complete."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with placed(path) as file, zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, array in arrays.items():
            member = zipfile.ZipInfo(f"{name}.npy", date_time=(1980, 1, 1, 0, 0, 0))
            member.compress_type = zipfile.ZIP_DEFLATED
            with archive.open(member, "w", force_zip64=True) as out:
                np.lib.format.write_array(out, np.ascontiguousarray(array), allow_pickle=False)


def read_npz(
    path: Path,
    required: tuple[str, ...],
    optional: tuple[str, ...] = (),
    check: Callable[[dict[str, Header]], None] | None = None,
) -> dict[str, NDArray[np.generic]]:
    """The named arrays; `check` gets their headers before anything is unpacked, and may raise a DataError."""
    if not path.is_file():
        raise DataError(f"{path}: expected a prepared .npz file, found {'a folder' if path.is_dir() else 'nothing'}")
    try:
        with zipfile.ZipFile(path) as archive:
            _check_directory(archive, path)
            headers = {name: _header(archive, name) for name in _wanted(archive.namelist(), required, optional)}
            _check_sizes(headers, path.stat().st_size)
            if check is not None:
                check(headers)
            return {name: _array(archive, name) for name in headers}
    except DataError as error:
        raise DataError(f"{path}: {error}") from None
    except _DAMAGE as error:
        raise DataError(f"{path}: expected a complete .npz archive, got a damaged or foreign file ({error})") from None


def _check_directory(archive: zipfile.ZipFile, path: Path) -> None:
    """Every member under one name in both places, and as many as were written: or optional arrays could get lost."""
    members = archive.infolist()
    for member in members:
        with archive.open(member):  # compares the name in the directory with the one before the content
            pass
    with path.open("rb") as file:
        file.seek(-min(_LONGEST_END, path.stat().st_size), os.SEEK_END)
        content = file.read()
    (counted,) = struct.unpack_from("<H", content, content.rfind(_END) + 10)
    if counted not in (len(members), 2**16 - 1):  # the latter: the number stands elsewhere
        raise ValueError(f"its directory lists {len(members)} of {counted} members")


def _wanted(members: list[str], required: tuple[str, ...], optional: tuple[str, ...]) -> list[str]:
    missing = [name for name in required if f"{name}.npy" not in members]
    if missing:
        raise DataError(f"expected {', '.join(required)}; missing {', '.join(missing)}; prepare the raw data anew")
    wanted = [name for name in (*required, *optional) if f"{name}.npy" in members]
    for name in wanted:
        if members.count(f"{name}.npy") > 1:
            raise DataError(f"expected each array once, got {name} twice; write the file again")
    return wanted


def _header(archive: zipfile.ZipFile, name: str) -> Header:
    """Shape and type from the first bytes of a member, which must fill exactly what the archive says it holds."""
    info = archive.getinfo(f"{name}.npy")
    if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise DataError(f"array {name}: expected plain or deflated bytes, got another packing; use numpy.savez")
    with archive.open(info) as member:
        try:
            header = _parse(member)
        except Exception as error:  # NumPy reads headers with Python's own parser, which raises all sorts
            raise _damaged(name, error) from None
        promised = member.tell() + header.nbytes
    if header.dtype.hasobject:
        raise DataError(f"array {name} holds pickled objects, which are never loaded; write plain numeric arrays")
    if min(header.shape, default=0) < 0 or promised != info.file_size:
        what = f"the {promised:,} bytes of its shape {header.shape} of {header.dtype}"
        raise DataError(f"array {name}: expected {what}, got {info.file_size:,}; write the file again")
    return header


def _parse(member: IO[bytes]) -> Header:
    version = np.lib.format.read_magic(member)
    if version not in _HEADERS:
        raise ValueError(f"version {version} of the array format is not read")
    shape, _, dtype = _HEADERS[version](member)
    return Header(tuple(int(size) for size in shape), dtype)


def _check_sizes(headers: dict[str, Header], packed: int) -> None:
    total = sum(header.nbytes for header in headers.values())
    if total > MAX_BYTES:
        raise DataError(f"expected arrays of at most {MAX_BYTES:,} bytes in all, got {total:,}; split the file")
    if total > EXPANSION_SLACK and total > MAX_EXPANSION * packed:
        most = f"at most {MAX_EXPANSION} times the {packed:,} bytes of the file"
        raise DataError(f"expected arrays that unpack to {most}, got {total:,}; if trusted, write it with numpy.savez")


def _array(archive: zipfile.ZipFile, name: str) -> Any:
    try:
        with archive.open(f"{name}.npy") as member:
            return np.lib.format.read_array(member, allow_pickle=False)
    except _DAMAGE as error:
        raise _damaged(name, error) from None


def _damaged(name: str, error: Exception) -> DataError:
    what = str(error).partition("\n")[0][:200] or type(error).__name__
    return DataError(f"array {name} is damaged ({what}); write it with neuclust or plain numeric numpy arrays")
