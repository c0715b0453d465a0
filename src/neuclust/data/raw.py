"""Raw files as published: plain, gzipped, or inside a zip or tar, read in whole lines with their numbers.

Members are streamed and never unpacked to disk; a limit on the expansion of an archive stops a zip bomb.
"""

import gzip
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import IO, TypeVar, cast

from neuclust.errors import ConfigError, DataError

CHUNK_BYTES = 32 * 2**20
MAX_LINE_BYTES = 16 * 2**20  # a longer "line" means a foreign or hostile file
MAX_EXPANSION = 200  # csv and json shrink 3 to 10 times; a bomb about 1000 times
EXPANSION_SLACK = 64 * 2**20  # small archives of repetitive text are harmless

DAMAGE = (zipfile.BadZipFile, tarfile.TarError, gzip.BadGzipFile, zlib.error, EOFError, OSError, RuntimeError)

Progress = Callable[[int], None]  # takes how many raw bytes have been read so far
Frame = TypeVar("Frame")  # a Polars frame, which is slow to import


@dataclass(frozen=True, slots=True)
class RawFile:
    """One raw file: a path, and the member's name where the path is an archive."""

    path: Path
    member: str | None = None

    @property
    def label(self) -> str:
        return f"{self.path}/{self.member}" if self.member else str(self.path)

    @property
    def packed(self) -> bool:
        return self.member is not None or self.path.suffix == ".gz"

    @property
    def size(self) -> int | None:
        """Bytes to be read, where known before reading."""
        _require_file(self.path)
        if self.member is not None and zipfile.is_zipfile(self.path):
            with zipfile.ZipFile(self.path) as archive:
                return archive.getinfo(self.member).file_size
        return None if self.packed else self.path.stat().st_size

    @contextmanager
    def open(self) -> Iterator[IO[bytes]]:
        """The bytes as a stream; damage met while reading becomes a DataError."""
        _require_file(self.path)
        try:
            if self.member is None and self.path.suffix == ".gz":
                with gzip.open(self.path, "rb") as stream:
                    yield cast(IO[bytes], stream)
            elif self.member is None:
                with self.path.open("rb") as plain:
                    yield plain
            elif zipfile.is_zipfile(self.path):
                with zipfile.ZipFile(self.path) as archive, archive.open(self.member) as inside:
                    yield inside
            else:
                with tarfile.open(self.path, "r|*") as tape:
                    yield _tape_member(tape, self)
        except DAMAGE as error:
            what = f"expected a complete readable file, got damage ({error})"
            raise DataError(f"{self.label}: {what}; fetch it again") from None


@dataclass(frozen=True, slots=True)
class Chunk:
    """Whole lines of a file, and the number of the first of them (the file's first line is 1)."""

    first_line: int
    data: bytes

    def lines(self) -> Iterator[tuple[int, bytes]]:
        """Each line with its number; blank ones are left out."""
        for offset, line in enumerate(self.data.split(b"\n")):
            if line.strip():
                yield self.first_line + offset, line.rstrip(b"\r")


@dataclass(slots=True)
class BadRows:
    """Counts bad rows and raises a DataError at the first one past `allowed`."""

    allowed: int = 0
    count: int = 0
    examples: list[str] = field(default_factory=list)

    def report(self, file: RawFile, line: int, sentence: str) -> None:
        self.count += 1
        place = f"{file.label}:{line}: {sentence}"
        if self.count > self.allowed:
            which = f"this is bad row {self.count}, skip_bad is {self.allowed}" if self.allowed else "mend the row"
            raise DataError(f"{place}; {which}, or raise skip_bad to go on past so many bad rows")
        if len(self.examples) < 5:
            self.examples.append(place)


def line_chunks(file: RawFile, chunk_bytes: int = CHUNK_BYTES, progress: Progress | None = None) -> Iterator[Chunk]:
    """The file in chunks of about `chunk_bytes` that end with a line; carriage returns alone also end lines."""
    _require_file(file.path)
    limit = MAX_EXPANSION * file.path.stat().st_size + EXPANSION_SLACK if file.packed else None
    with file.open() as stream:
        line, rest, total, returns_only = 1, b"", 0, False
        while block := stream.read(chunk_bytes):
            if total == 0:
                returns_only = b"\n" not in block and b"\r" in block[:-1]
            total += len(block)
            if returns_only:
                block = block.replace(b"\r", b"\n")
            if limit is not None and total > limit:
                raise DataError(_bomb(file, total))
            if progress is not None:
                progress(total)
            cut = block.rfind(b"\n") + 1
            if cut == 0:
                rest += block
                if len(rest) > MAX_LINE_BYTES:
                    got = f"more than {MAX_LINE_BYTES >> 20} MiB without a line end"
                    raise DataError(f"{file.label}:{line}: expected lines of text, got {got}; is this the right file?")
                continue
            whole, rest = rest + block[:cut], block[cut:]
            yield Chunk(line, whole)
            line += whole.count(b"\n")
        if rest.strip():
            yield Chunk(line, rest)


def parsed_chunks(
    file: RawFile,
    chunks: Iterable[Chunk],
    whole: Callable[[Chunk], Frame | None],
    row: Callable[[int, bytes], tuple[object, ...]],
    frame_of: Callable[[list[tuple[object, ...]]], Frame],
    bad: BadRows,
) -> Iterator[Frame]:
    """Chunks parsed at once by `whole`; one that it refuses (None) is read line by line by `row`.

    A ValueError of `row` goes to `bad` with the number of the line.
    """
    for chunk in chunks:
        frame = whole(chunk)
        if frame is None:
            good = []
            for number, line in chunk.lines():
                try:
                    good.append(row(number, line))
                except ValueError as error:
                    bad.report(file, number, str(error))
            frame = frame_of(good)
        yield frame


def decode(line: bytes, encoding: str) -> str:
    """The line as text; raises ValueError with a sentence about the first byte that does not fit."""
    try:
        return line.decode(encoding)
    except UnicodeDecodeError as error:
        where = f"byte 0x{line[error.start]:02x} at column {error.start + 1}"
        raise ValueError(f"expected {encoding} text, got {where}; is it another encoding?") from None


def zip_member(path: Path, names: tuple[str, ...]) -> RawFile:
    """The one member of the zip whose file name is among `names`."""
    _require_file(path)
    try:
        with zipfile.ZipFile(path) as archive:
            members = archive.infolist()
    except DAMAGE as error:
        raise DataError(f"{path}: expected a zip archive, got a damaged or foreign file ({error})") from None
    for member in members:
        refuse_unsafe_name(path, member.filename)
    found = [m for m in members if _matches(m.filename, names)]
    if len(found) != 1:
        raise DataError(_not_one(path, names, [m.filename for m in found], [m.filename for m in members]))
    if found[0].file_size > MAX_EXPANSION * path.stat().st_size + EXPANSION_SLACK:
        raise DataError(_bomb(RawFile(path, found[0].filename), found[0].file_size))
    return RawFile(path, found[0].filename)


def tar_member(path: Path, names: tuple[str, ...]) -> RawFile:
    """The first regular member of the (compressed) tar whose file name is among `names`."""
    _require_file(path)
    seen: list[str] = []
    try:
        with tarfile.open(path, "r|*") as tape:
            for member in tape:
                refuse_unsafe_name(path, member.name)
                seen.append(member.name)
                if member.isreg() and _matches(member.name, names):
                    return RawFile(path, member.name)
    except DAMAGE as error:
        raise DataError(f"{path}: expected a tar archive, got a damaged or foreign file ({error})") from None
    raise DataError(_not_one(path, names, [], seen))


def seconds_since_1970(text: str) -> int:
    """`1420070400`, `2015-01-01` or `2015-01-01T12:00:00` (UTC) as whole seconds."""
    with suppress(ValueError):
        return int(text)
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        expected = "a date such as 2015-01-01 or seconds since 1970 such as 1420070400"
        raise ConfigError(f"expected {expected}, got {text!r}") from None
    return int((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp())


def _tape_member(tape: tarfile.TarFile, file: RawFile) -> IO[bytes]:
    for member in tape:
        if member.name == file.member and member.isreg() and (stream := tape.extractfile(member)) is not None:
            return stream
    raise DataError(f"{file.path}: expected a member {file.member}, which was there a moment ago")


def _matches(member: str, names: tuple[str, ...]) -> bool:
    parts = PurePosixPath(member).parts
    return bool(parts) and parts[-1] in names and "__MACOSX" not in parts


def refuse_unsafe_name(path: Path, member: str) -> None:
    parts = PurePosixPath(member.replace("\\", "/")).parts
    if ".." in parts or member.startswith("/") or (parts and ":" in parts[0]):
        raise DataError(f"{path}: expected plain member names, got {member!r}, which points outside the archive")


def _require_file(path: Path) -> None:
    if not path.is_file():
        raise DataError(f"{path}: expected a file, found {'a folder' if path.is_dir() else 'nothing'}")


def _bomb(file: RawFile, size: int) -> str:
    got = f"{size:,} bytes out of {file.path.stat().st_size:,}; unpack it by hand if it is trusted"
    return f"{file.label}: expected at most {MAX_EXPANSION} times the archive's own size, got {got}"


def _not_one(path: Path, names: tuple[str, ...], found: list[str], members: list[str]) -> str:
    wanted = " or ".join(names)
    if found:
        return f"{path}: expected one {wanted}, got {len(found)}: {', '.join(found[:4])}"
    nested = [name for name in members if name.endswith((".tar", ".tgz", ".zip"))]
    if nested:
        return f"{path}: expected {wanted}, got an archive inside ({nested[0]}); unpack this one and pass that"
    return f"{path}: expected {wanted} inside, got {', '.join(members[:4]) or 'nothing'}"
