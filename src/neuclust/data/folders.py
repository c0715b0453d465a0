"""The files of a published dataset by name: in a folder, in its `data` folder, or in the archive as published."""

import re
import tarfile
import zipfile
from pathlib import Path, PurePosixPath

from neuclust.data.raw import DAMAGE, RawFile, refuse_unsafe_name
from neuclust.errors import DataError


def files_in(place: Path) -> dict[str, RawFile]:
    """File name -> raw file, of a folder and its `data` folder, or of a zip or tar."""
    if place.is_dir():
        folders = [folder for folder in (place, place / "data") if folder.is_dir()]
        found = sorted(path for folder in folders for path in folder.iterdir() if path.is_file())
        return {path.name: RawFile(path) for path in found}
    if not place.is_file():
        raise DataError(f"{place}: expected a folder or an archive with the published files, found nothing")
    members = [name for name in _members(place) if "__MACOSX" not in name]
    return {PurePosixPath(name).name: RawFile(place, name) for name in sorted(members)}


def matching(files: dict[str, RawFile], pattern: str) -> list[RawFile]:
    """Files whose whole name, less a `.gz` at the end, matches the pattern, in order of their names."""
    return [file for name, file in sorted(files.items()) if re.fullmatch(pattern, name.removesuffix(".gz"))]


def the_one(files: dict[str, RawFile], pattern: str, place: Path, example: str) -> RawFile:
    """The only file of that pattern."""
    found = matching(files, pattern)
    if len(found) == 1:
        return found[0]
    if found:
        names = " and ".join(file.label for file in found[:2])
        raise DataError(f"{place}: expected one file such as {example}, got {names}; pass a folder with one of them")
    inside = ", ".join(sorted(files)[:4]) or "nothing"
    raise DataError(f"{place}: expected a file such as {example}, got {inside}; pass the folder as published")


def _members(path: Path) -> list[str]:
    try:
        if zipfile.is_zipfile(path):
            with zipfile.ZipFile(path) as archive:
                names = [member.filename for member in archive.infolist() if not member.is_dir()]
        else:
            with tarfile.open(path, "r|*") as tape:
                names = [member.name for member in tape if member.isreg()]
    except DAMAGE as error:
        raise DataError(f"{path}: expected a folder, zip or tar, got a damaged or foreign file ({error})") from None
    for name in names:
        refuse_unsafe_name(path, name)
    return names
