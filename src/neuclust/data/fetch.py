"""Fetch MovieLens archives from their publisher: resumable, checked, placed only when whole."""

import hashlib
import http.client
import os
import re
import time
import urllib.error
import urllib.parse
import urllib.request
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from neuclust.data.raw import zip_member
from neuclust.errors import ConfigError, DataError, one_of

PUBLISHER = "https://files.grouplens.org/datasets/movielens"
YELP_PAGE = "https://business.yelp.com/data/resources/open-dataset/"
BLOCK_BYTES = 2**20
TIMEOUT_SECONDS = 30
ATTEMPTS = 5

Progress = Callable[[int, int | None], None]  # bytes so far, bytes in all where known


@dataclass(frozen=True, slots=True)
class Source:
    """One archive as published; `md5` None means that the publisher renews it and the sum is read from `<url>.md5`.

    A constant sum also guards against a mirror or proxy that serves a wrong file together with a wrong sum.
    """

    name: str
    file: str
    size: str
    md5: str | None
    licence: str

    @property
    def url(self) -> str:
        return f"{PUBLISHER}/{self.file}"


_PERMITTED = "without permission of GroupLens (University of Minnesota)"
_TERMS = (
    "Research use only: no commercial use {}, no claim of their endorsement, cite Harper and Konstan (2015), "
    "doi:10.1145/2827872. The full terms are in README.txt inside the archive."
)
_LARGE = _TERMS.format(f"and no redistribution {_PERMITTED}")
_SMALL = _TERMS.format(f"{_PERMITTED}, redistribution only under the same terms")
SOURCES = {
    "movielens-25m": Source("movielens-25m", "ml-25m.zip", "250 MB", "6b51fb2759a8657d3bfcbfc42b592ada", _LARGE),
    "movielens-small": Source("movielens-small", "ml-latest-small.zip", "1 MB", None, _SMALL),
}


def find_source(name: str) -> Source:
    """The archive of that name; Yelp's cannot be fetched, and the error says where it is."""
    if name == "yelp":
        where = f"the Yelp Open Dataset page, {YELP_PAGE}"
        raise ConfigError(
            f"yelp's licence must be accepted in person: get yelp_dataset.tar from {where}, and prepare it"
        )
    if name not in SOURCES:
        raise ConfigError(one_of(name, [*SOURCES, "yelp"]))
    return SOURCES[name]


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
            _check_archive(target, source.md5)
        except DataError as error:
            raise DataError(f"{target}: {error}; delete it and run the command again") from None
        return target
    expected = source.md5 or _published_md5(url)
    cache.mkdir(parents=True, exist_ok=True)
    part = target.with_name(f"{target.name}.part")
    _download(url, part, progress, pause_seconds)
    try:
        _check_archive(part, expected)
    except DataError as error:
        part.unlink()  # resuming could only add to the damage
        raise DataError(f"{url}: {error}; nothing was kept, run the command again") from None
    os.replace(part, target)
    return target


def _published_md5(url: str) -> str | None:
    """The sum in `<url>.md5`, in either usual layout; None where the publisher has none."""
    try:
        with urllib.request.urlopen(_request(f"{url}.md5"), timeout=TIMEOUT_SECONDS) as answer:
            text = answer.read(4096).decode("ascii", "replace")
    except urllib.error.HTTPError as error:
        if error.code == 404:
            return None
        raise DataError(f"{url}.md5: expected the published checksum, got HTTP {error.code}") from None
    except OSError as error:
        raise DataError(f"{url}.md5: expected the published checksum, got no answer ({error})") from None
    found = re.search(r"\b[0-9a-fA-F]{32}\b", text)
    if found is None:
        raise DataError(f"{url}.md5: expected an md5 sum of 32 hexadecimal digits, got {text[:60]!r}")
    return found.group().lower()


def _download(url: str, part: Path, progress: Progress | None, pause_seconds: float) -> None:
    """Fill `part` to its full length, resuming after the bytes it has."""
    trouble = "no answer"
    for attempt in range(ATTEMPTS):
        if attempt:
            time.sleep(pause_seconds * 2 ** (attempt - 1))
        try:
            missing = _continue_download(url, part, progress)
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


def _continue_download(url: str, part: Path, progress: Progress | None) -> int:
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
            raise DataError(f"{url}: expected a zip archive, got a web page; is a log-in or proxy in between?")
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


def _check_archive(path: Path, md5: str | None) -> None:
    """A zip with ratings and movies whose md5 (or, without one, whose own checksums) fit."""
    with path.open("rb") as file:
        start = file.read(512)
        if not start.startswith(b"PK"):
            kind = "a web page" if b"<" in start[:64] else "something else"
            raise DataError(f"expected a zip archive, got {kind} (starting {start[:20]!r})")
        if md5 is not None:
            file.seek(0)
            found = hashlib.file_digest(file, lambda: hashlib.md5(usedforsecurity=False)).hexdigest()
            if found != md5:
                raise DataError(f"expected an archive with md5 {md5}, got {found}")
    zip_member(path, ("ratings.csv", "ratings.dat"))
    if md5 is None:
        with zipfile.ZipFile(path) as archive:
            broken = archive.testzip()
        if broken is not None:
            raise DataError(f"expected an intact archive, got damage in {broken}")


def _request(url: str, start: int = 0) -> urllib.request.Request:
    headers = {"User-Agent": "neuclust"} | ({"Range": f"bytes={start}-"} if start else {})
    return urllib.request.Request(url, headers=headers)
