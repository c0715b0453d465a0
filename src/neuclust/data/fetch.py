"""Fetch archives from their publisher: resumable, checked, placed only when whole."""

import gzip
import hashlib
import http.client
import json
import os
import re
import time
import urllib.error
import urllib.parse
import urllib.request
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path

from neuclust.data.raw import tar_member, zip_member
from neuclust.data.sources import Source
from neuclust.errors import ConfigError, DataError

BLOCK_BYTES = 2**20
TIMEOUT_SECONDS = 30
ATTEMPTS = 5
RECORD_BYTES = 2**20
MAGIC = {"zip": b"PK", "tar.gz": b"\x1f\x8b"}

Progress = Callable[[int, int | None], None]  # bytes so far, bytes in all where known


def cache_folder() -> Path:
    """`$XDG_CACHE_HOME/neuclust`, or `~/.cache/neuclust`."""
    configured = os.environ.get("XDG_CACHE_HOME")
    return (Path(configured) if configured else Path.home() / ".cache") / "neuclust"


def fetch(
    source: Source, cache: Path, url: str | None = None, progress: Progress | None = None, pause_seconds: float = 1.0
) -> Path:
    """The archive's path in the cache, fetched where it is not there yet; resumes a `.part` file."""
    url = url or source.url
    if urllib.parse.urlsplit(url).scheme not in ("http", "https"):
        raise ConfigError(f"expected an address starting http:// or https://, got {url!r}")
    target = cache / source.file
    if target.exists():
        try:
            _check_archive(target, source, source.md5)
        except DataError as error:
            raise DataError(f"{target}: {error}; delete it and run the command again") from None
        return target
    expected = source.md5 or (_recorded_md5(source) if source.record else _published_md5(url))
    cache.mkdir(parents=True, exist_ok=True)
    part = target.with_name(f"{target.name}.part")
    _download(url, part, source.kind, progress, pause_seconds)
    try:
        _check_archive(part, source, expected)
    except DataError as error:
        part.unlink()  # resuming could only add to the damage
        raise DataError(f"{url}: {error}; nothing was kept, run the command again") from None
    os.replace(part, target)
    return target


def _published_md5(url: str) -> str | None:
    """The sum in `<url>.md5`, in either usual layout; None where the publisher has none."""
    text = _small_text(f"{url}.md5")
    if text is None:
        return None
    found = re.search(r"\b[0-9a-fA-F]{32}\b", text)
    if found is None:
        raise DataError(f"{url}.md5: expected an md5 sum of 32 hexadecimal digits, got {text[:60]!r}")
    return found.group().lower()


def _recorded_md5(source: Source) -> str:
    """The sum of the file in the record of its repository, as `md5:` and 32 hexadecimal digits.

    The record is asked wherever the archive comes from, so that a mirror cannot vouch for itself.
    """
    text = _small_text(source.record)
    try:
        files = json.loads(text or "")["files"]
        sums = [str(entry["checksum"]) for entry in files if entry["key"] == source.file]
    except (ValueError, TypeError, KeyError):
        sums = []
    if len(sums) != 1 or not re.fullmatch(r"md5:[0-9a-f]{32}", sums[0]):
        got = f"got {sums[0][:60]!r}" if sums else f"got {(text or 'no such record')[:60]!r}"
        raise DataError(f"{source.record}: expected the record with the md5 sum of {source.file}, {got}")
    return sums[0].removeprefix("md5:")


def _small_text(url: str) -> str | None:
    """What a sum is read from; None where there is no such file."""
    try:
        with urllib.request.urlopen(_request(url), timeout=TIMEOUT_SECONDS) as answer:
            return str(answer.read(RECORD_BYTES).decode("utf-8", "replace"))
    except urllib.error.HTTPError as error:
        if error.code == 404:
            return None
        raise DataError(f"{url}: expected the published checksum, got HTTP {error.code}") from None
    except (OSError, http.client.HTTPException) as error:
        raise DataError(f"{url}: expected the published checksum, got no answer ({error})") from None


def _download(url: str, part: Path, kind: str, progress: Progress | None, pause_seconds: float) -> None:
    """Fill `part` to its full length, resuming after the bytes it has."""
    trouble = "no answer"
    for attempt in range(ATTEMPTS):
        if attempt:
            time.sleep(pause_seconds * 2 ** (attempt - 1))
        try:
            missing = _continue_download(url, part, kind, progress)
            if missing == 0:
                return
            trouble = f"the connection closed {missing:,} bytes early"
        except urllib.error.HTTPError as error:
            if error.code < 500:
                raise DataError(f"{url}: expected the archive, got HTTP {error.code} {error.reason}") from None
            trouble = f"HTTP {error.code}"
        except (OSError, http.client.HTTPException) as error:
            trouble = str(error) or type(error).__name__
    have = part.stat().st_size if part.exists() else 0
    got = f"{have:,} bytes in {ATTEMPTS} attempts ({trouble})"
    raise DataError(f"{url}: expected the whole archive, got {got}; run the same command again to go on from there")


def _continue_download(url: str, part: Path, kind: str, progress: Progress | None) -> int:
    """One request from where `part` ends; returns how many bytes are still missing."""
    have = part.stat().st_size if part.exists() else 0
    try:
        answer = urllib.request.urlopen(_request(url, have), timeout=TIMEOUT_SECONDS)
    except urllib.error.HTTPError as error:
        if error.code != 416:
            raise
        return _missing_after_416(error, part, have)
    with answer:
        if answer.headers.get_content_type() == "text/html":
            raise DataError(f"{url}: expected a {kind} archive, got a web page; is a log-in or proxy in between?")
        resumed = answer.status == 206 and re.match(rf"bytes {have}-", answer.headers["Content-Range"] or "")
        start = have if resumed else 0
        if answer.status == 206 and start != have:
            part.unlink()
            raise OSError("the server sent another range than asked for")
        total = start + int(answer.headers["Content-Length"]) if answer.headers["Content-Length"] else None
        have = start
        with part.open("r+b" if start else "wb") as file:
            file.seek(start)
            while block := answer.read(BLOCK_BYTES):
                file.write(block)
                have += len(block)
                if progress is not None:
                    progress(have, total)
    return 0 if total is None else total - have


def _missing_after_416(error: urllib.error.HTTPError, part: Path, have: int) -> int:
    """The server has nothing after `have`: complete, or a part of something else, which starts again."""
    total = re.search(r"/(\d+)$", error.headers.get("Content-Range") or "")
    if total and int(total.group(1)) == have:
        return 0
    part.unlink(missing_ok=True)
    return max(1, have)


def _check_archive(path: Path, source: Source, md5: str | None) -> None:
    """An archive of the right kind with the file that matters, whose md5 (or, without one, own checksums) fit."""
    with path.open("rb") as file:
        start = file.read(512)
        if not start.startswith(MAGIC[source.kind]):
            kind = "a web page" if b"<" in start[:64] else "something else"
            raise DataError(f"expected a {source.kind} archive, got {kind} (starting {start[:20]!r})")
        if md5 is not None:
            file.seek(0)
            found = hashlib.file_digest(file, lambda: hashlib.md5(usedforsecurity=False)).hexdigest()
            if found != md5:
                raise DataError(f"expected an archive with md5 {md5}, got {found}")
    member = zip_member if source.kind == "zip" else tar_member
    member(path, source.members)
    if md5 is None:
        _check_intact(path, source)


def _check_intact(path: Path, source: Source) -> None:
    """The checksums inside of the archive fit."""
    if source.kind == "zip":
        with zipfile.ZipFile(path) as archive:
            broken = archive.testzip()
        if broken is not None:
            raise DataError(f"expected an intact archive, got damage in {broken}")
        return
    try:
        with gzip.open(path) as stream:
            while stream.read(BLOCK_BYTES):
                pass
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"expected an intact archive, got damage ({error})") from None


def _request(url: str, start: int = 0) -> urllib.request.Request:
    headers = {"User-Agent": "neuclust"} | ({"Range": f"bytes={start}-"} if start else {})
    return urllib.request.Request(url, headers=headers)
