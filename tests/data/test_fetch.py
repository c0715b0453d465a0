"""Fetching against a real local server that breaks off, lies, and serves web pages."""

from __future__ import annotations

import hashlib
import io
import subprocess
import threading
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from command_line import completed

from neuclust.data.fetch import cache_folder, fetch
from neuclust.data.sources import SOURCES, Source, find_source
from neuclust.errors import ConfigError, DataError


def archive_bytes(noise: int = 40_000) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("ml/ratings.csv", "userId,movieId,rating,timestamp\n1,1,4.0,1500000000\n1,2,3.0,1500000001\n")
        archive.writestr("ml/movies.csv", "movieId,title,genres\n1,A,Drama\n2,B,Comedy\n")
        archive.writestr("ml/noise", hashlib.shake_256(b"noise").digest(noise))
    return packed.getvalue()


ARCHIVE = archive_bytes()
MD5 = hashlib.md5(ARCHIVE).hexdigest()


@dataclass
class Publisher:
    """What the server does, and what it was asked."""

    files: dict[str, bytes] = field(default_factory=dict)
    break_after: list[int] = field(default_factory=list)  # bytes sent before closing, one entry a request
    ranges: bool = True
    shifted: bool = False  # answers with another range than asked for
    content_type: str = "application/zip"
    failures: int = 0  # answers 503 this many times
    asked: list[tuple[str, str | None]] = field(default_factory=list)
    url: str = ""


class Handler(BaseHTTPRequestHandler):
    publisher: Publisher

    def do_GET(self) -> None:
        behaviour, wanted = self.publisher, self.headers["Range"]
        behaviour.asked.append((self.path, wanted))
        content = behaviour.files.get(self.path)
        if content is None:
            return self.send_error(404)
        if behaviour.failures:
            behaviour.failures -= 1
            return self.send_error(503)
        start = int(wanted.removeprefix("bytes=").rstrip("-")) if wanted and behaviour.ranges else 0
        if start >= len(content):
            self.send_response(416)
            self.send_header("Content-Range", f"bytes */{len(content)}")
            self.send_header("Content-Length", "0")
            return self.end_headers()
        self.send_response(206 if start else 200)
        if start:
            self.send_header("Content-Range", f"bytes {start - behaviour.shifted}-{len(content) - 1}/{len(content)}")
        body = content[start:]
        self.send_header("Content-Type", behaviour.content_type)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.path.endswith(".zip") and behaviour.break_after:
            body = body[: behaviour.break_after.pop(0)]
        self.wfile.write(body)
        self.close_connection = True
        return None

    def log_message(self, format: str, *args: object) -> None:
        """Quiet."""


@pytest.fixture
def publisher() -> Iterator[Publisher]:
    behaviour = Publisher(files={"/ml.zip": ARCHIVE, "/ml.zip.md5": f"{MD5}  ml.zip\n".encode()})
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Bound", (Handler,), {"publisher": behaviour}))
    behaviour.url = f"http://127.0.0.1:{server.server_port}/ml.zip"
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    yield behaviour
    server.shutdown()
    server.server_close()
    thread.join()


SOURCE = Source("test", "ml.zip", "small", None, "none")


def get(publisher: Publisher, cache: Path, source: Source = SOURCE) -> Path:
    return fetch(source, cache, publisher.url, pause_seconds=0.0)


def archive_requests(publisher: Publisher) -> list[str | None]:
    return [wanted for path, wanted in publisher.asked if path == "/ml.zip"]


def test_archive_is_fetched_checked_and_kept(publisher: Publisher, tmp_path: Path) -> None:
    seen: list[tuple[int, int | None]] = []
    place = fetch(SOURCE, tmp_path / "new", publisher.url, lambda done, of: seen.append((done, of)))
    assert place == tmp_path / "new" / "ml.zip"
    assert place.read_bytes() == ARCHIVE
    assert seen[-1] == (len(ARCHIVE), len(ARCHIVE))
    publisher.asked.clear()
    assert get(publisher, tmp_path / "new") == place
    assert publisher.asked == []  # once is enough
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["ml.zip"]


def test_sums_are_read_in_both_usual_layouts(publisher: Publisher, tmp_path: Path) -> None:
    publisher.files["/ml.zip.md5"] = f"MD5 (ml.zip) = {MD5.upper()}\n".encode()
    assert get(publisher, tmp_path).read_bytes() == ARCHIVE
    publisher.files["/ml.zip.md5"] = b"<html>"
    with pytest.raises(DataError, match="expected an md5 sum of 32"):
        get(publisher, tmp_path / "other")


def test_broken_download_is_resumed_within_one_command(publisher: Publisher, tmp_path: Path) -> None:
    publisher.break_after = [10_000, 5_000]
    assert get(publisher, tmp_path).read_bytes() == ARCHIVE
    assert archive_requests(publisher) == [None, "bytes=10000-", "bytes=15000-"]


def test_broken_download_is_resumed_by_the_next_command(publisher: Publisher, tmp_path: Path) -> None:
    publisher.break_after = [1000] * 5
    with pytest.raises(DataError, match=r"got 5,000 bytes in 5 attempts .* run the same command again"):
        get(publisher, tmp_path)
    assert (tmp_path / "ml.zip.part").read_bytes() == ARCHIVE[:5000]
    assert not (tmp_path / "ml.zip").exists()
    assert get(publisher, tmp_path).read_bytes() == ARCHIVE
    assert archive_requests(publisher)[-1] == "bytes=5000-"
    assert not (tmp_path / "ml.zip.part").exists()


def test_server_without_ranges_starts_again(publisher: Publisher, tmp_path: Path) -> None:
    publisher.ranges = False
    (tmp_path / "ml.zip.part").write_bytes(b"x" * 7000)
    assert get(publisher, tmp_path).read_bytes() == ARCHIVE


def test_server_that_sends_another_range_is_not_believed(publisher: Publisher, tmp_path: Path) -> None:
    publisher.shifted = True
    (tmp_path / "ml.zip.part").write_bytes(ARCHIVE[:7000])
    assert get(publisher, tmp_path).read_bytes() == ARCHIVE
    assert archive_requests(publisher) == ["bytes=7000-", None]


def test_part_that_is_whole_already_is_used(publisher: Publisher, tmp_path: Path) -> None:
    (tmp_path / "ml.zip.part").write_bytes(ARCHIVE)
    assert get(publisher, tmp_path).read_bytes() == ARCHIVE
    (tmp_path / "ml.zip").unlink()
    (tmp_path / "ml.zip.part").write_bytes(ARCHIVE + b"more than there is")
    assert get(publisher, tmp_path).read_bytes() == ARCHIVE


def test_lying_checksum_keeps_nothing(publisher: Publisher, tmp_path: Path) -> None:
    publisher.files["/ml.zip.md5"] = f"{'0' * 32}  ml.zip\n".encode()
    with pytest.raises(DataError, match=f"expected an archive with md5 {'0' * 32}, got {MD5}; nothing was kept"):
        get(publisher, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_known_sum_is_not_taken_from_the_server(publisher: Publisher, tmp_path: Path) -> None:
    known = replace(SOURCE, md5="1" * 32)
    with pytest.raises(DataError, match=f"expected an archive with md5 {known.md5}"):
        get(publisher, tmp_path, known)
    assert "/ml.zip.md5" not in [path for path, _ in publisher.asked]


def test_part_of_another_file_is_caught_by_the_sum(publisher: Publisher, tmp_path: Path) -> None:
    (tmp_path / "ml.zip.part").write_bytes(b"PK" + b"x" * 5000)
    with pytest.raises(DataError, match="expected an archive with md5"):
        get(publisher, tmp_path)
    assert get(publisher, tmp_path).read_bytes() == ARCHIVE


def test_without_published_sum_the_archive_vouches_for_itself(publisher: Publisher, tmp_path: Path) -> None:
    del publisher.files["/ml.zip.md5"]
    assert get(publisher, tmp_path).read_bytes() == ARCHIVE
    at = ARCHIVE.index(hashlib.shake_256(b"noise").digest(50))
    publisher.files["/ml.zip"] = ARCHIVE[:at] + b"damage" + ARCHIVE[at + 6 :]
    with pytest.raises(DataError, match="expected an intact archive, got damage in ml/noise"):
        get(publisher, tmp_path / "other")


@pytest.mark.parametrize("content_type", ["text/html; charset=utf-8", "application/zip"])
def test_web_page_instead_of_a_zip_is_refused(publisher: Publisher, content_type: str, tmp_path: Path) -> None:
    page = b"<!DOCTYPE html><html>Please log in</html>"
    publisher.files = {"/ml.zip": page, "/ml.zip.md5": hashlib.md5(page).hexdigest().encode()}
    publisher.content_type = content_type
    with pytest.raises(DataError, match="expected a zip archive, got a web page"):
        get(publisher, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_zip_without_ratings_is_refused(publisher: Publisher, tmp_path: Path) -> None:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("readme", "nothing here")
    publisher.files = {"/ml.zip": packed.getvalue()}
    with pytest.raises(DataError, match=r"expected ratings\.csv or ratings\.dat inside, got readme"):
        get(publisher, tmp_path)


def test_server_errors_are_retried_and_missing_files_are_not(publisher: Publisher, tmp_path: Path) -> None:
    publisher.files.pop("/ml.zip.md5")
    publisher.failures = 2
    assert get(publisher, tmp_path).read_bytes() == ARCHIVE
    publisher.files.pop("/ml.zip")
    publisher.asked.clear()
    with pytest.raises(DataError, match="expected the archive, got HTTP 404"):
        get(publisher, tmp_path / "other")
    assert len(archive_requests(publisher)) == 1


def test_nobody_answering_is_said(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="expected the published checksum, got no answer"):
        fetch(SOURCE, tmp_path, "http://127.0.0.1:1/ml.zip", pause_seconds=0.0)
    with pytest.raises(DataError, match="got 0 bytes in 5 attempts"):
        fetch(replace(SOURCE, md5=MD5), tmp_path, "http://127.0.0.1:1/ml.zip", pause_seconds=0.0)


def test_damaged_cache_is_not_returned(publisher: Publisher, tmp_path: Path) -> None:
    place = get(publisher, tmp_path)
    place.write_bytes(ARCHIVE[:500])
    with pytest.raises(DataError, match="delete it and run the command again"):
        get(publisher, tmp_path)


def test_names_addresses_and_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert find_source("movielens-25m").url == "https://files.grouplens.org/datasets/movielens/ml-25m.zip"
    assert all(source.licence for source in SOURCES.values())
    with pytest.raises(ConfigError, match="Yelp Open Dataset page"):
        find_source("yelp")
    with pytest.raises(ConfigError, match="expected one of movielens-25m"):
        find_source("netflix")
    with pytest.raises(ConfigError, match="http:// or https://"):
        fetch(SOURCE, tmp_path, "file:///etc/hostname")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_folder() == tmp_path / "neuclust"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert cache_folder() == Path.home() / ".cache" / "neuclust"


def command(*words: str, cache: Path) -> subprocess.CompletedProcess[str]:
    return completed("data", "fetch", *words, env={"XDG_CACHE_HOME": str(cache)})


def test_command_shows_the_licence_and_wants_consent(publisher: Publisher, tmp_path: Path) -> None:
    done = command("movielens-small", "--url", publisher.url, cache=tmp_path)
    assert done.returncode == 2
    assert "Licence: Research use only" in done.stderr
    assert "pass --yes" in done.stderr
    assert publisher.asked == []
    done = command("movielens-small", "--url", publisher.url, "--yes", cache=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == str(tmp_path / "neuclust" / "ml-latest-small.zip")
    assert "Licence: Research use only" in done.stderr


def test_command_returns_the_exit_code_of_the_trouble(publisher: Publisher, tmp_path: Path) -> None:
    done = command("yelp", cache=tmp_path)
    assert done.returncode == 2
    assert "Yelp Open Dataset page" in done.stderr
    done = command("movielens-25m", "--url", publisher.url, "--yes", cache=tmp_path)
    assert done.returncode == 65  # not the archive whose sum is known
    assert "expected an archive with md5 6b51fb2759a8657d3bfcbfc42b592ada" in done.stderr
