"""KuaiRand's archive from a local server: the sum comes from the publisher's record, never from a mirror."""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
import threading
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from neuclust.data.fetch import fetch
from neuclust.data.sources import Source, find_source
from neuclust.errors import DataError

FILE = "KuaiRand-Pure.tar.gz"


def archive_bytes(name: str = "log_random_4_22_to_5_08_pure.csv") -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        content = b"user_id,video_id\n" + hashlib.shake_256(b"noise").hexdigest(20_000).encode()
        member = tarfile.TarInfo(f"KuaiRand-Pure/data/{name}")
        member.size = len(content)
        archive.addfile(member, io.BytesIO(content))
    return packed.getvalue()


ARCHIVE = archive_bytes()
MD5 = hashlib.md5(ARCHIVE).hexdigest()


class Publisher(BaseHTTPRequestHandler):
    files: dict[str, bytes]
    asked: list[str]

    def do_GET(self) -> None:
        self.asked.append(self.path)
        content = self.files.get(self.path)
        if content is None:
            return self.send_error(404)
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)
        return None

    def log_message(self, format: str, *args: object) -> None:
        """Quiet."""


def record(md5: str, file: str = FILE) -> bytes:
    entries = [{"key": "other.tar.gz", "checksum": f"md5:{'0' * 32}"}, {"key": file, "checksum": f"md5:{md5}"}]
    return json.dumps({"id": 10439422, "files": entries}).encode()


@pytest.fixture
def publisher() -> Iterator[tuple[type[Publisher], Source]]:
    files = {f"/files/{FILE}": ARCHIVE, "/api/record": record(MD5)}
    handler = type("Bound", (Publisher,), {"files": files, "asked": []})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    here = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    yield handler, replace(find_source("kuairand"), publisher=f"{here}/files", record=f"{here}/api/record")
    server.shutdown()
    server.server_close()
    thread.join()


def test_the_sum_is_that_of_the_record(publisher: tuple[type[Publisher], Source], tmp_path: Path) -> None:
    """Fails when the archive is kept without the publisher's sum, or the sum of another file is taken."""
    server, source = publisher
    place = fetch(source, tmp_path, pause_seconds=0.0)
    assert place == tmp_path / FILE
    assert place.read_bytes() == ARCHIVE
    assert server.asked == ["/api/record", f"/files/{FILE}"]
    assert fetch(source, tmp_path, pause_seconds=0.0) == place
    assert len(server.asked) == 2  # once is enough


def test_a_mirror_cannot_vouch_for_itself(publisher: tuple[type[Publisher], Source], tmp_path: Path) -> None:
    """Fails when another archive, with a sum beside it, is taken from a mirror."""
    server, source = publisher
    other = ARCHIVE + b"\0"
    server.files |= {"/mirror": other, "/mirror.md5": hashlib.md5(other).hexdigest().encode()}
    with pytest.raises(DataError, match=f"expected an archive with md5 {MD5}"):
        fetch(source, tmp_path, source.record.replace("/api/record", "/mirror"), pause_seconds=0.0)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "answer", [b"<html>", b"{}", b'{"files": 3}', record("xyz"), record(MD5, "KuaiRand-1K.tar.gz")]
)
def test_a_record_without_the_sum_is_refused(
    publisher: tuple[type[Publisher], Source], answer: bytes, tmp_path: Path
) -> None:
    """Fails when a missing sum lets the archive in unchecked."""
    server, source = publisher
    server.files["/api/record"] = answer
    with pytest.raises(DataError, match=f"expected the record with the md5 sum of {FILE}, got"):
        fetch(source, tmp_path, pause_seconds=0.0)
    del server.files["/api/record"]
    with pytest.raises(DataError, match="got 'no such record'"):
        fetch(source, tmp_path, pause_seconds=0.0)
    assert f"/files/{FILE}" not in server.asked


def test_archives_of_another_kind_are_refused(publisher: tuple[type[Publisher], Source], tmp_path: Path) -> None:
    """Fails when a web page, or an archive without the random log, passes for KuaiRand."""
    server, source = publisher
    for content, sentence in (
        (b"<html>log in", r"expected a tar\.gz archive, got a web page"),
        (archive_bytes("readme"), r"expected log_random_4_22_to_5_08_pure\.csv inside"),
    ):
        server.files |= {f"/files/{FILE}": content, "/api/record": record(hashlib.md5(content).hexdigest())}
        with pytest.raises(DataError, match=sentence):
            fetch(source, tmp_path, pause_seconds=0.0)


def test_damage_in_the_cache_is_found(publisher: tuple[type[Publisher], Source], tmp_path: Path) -> None:
    """Fails when a cached archive that lost its end is handed out."""
    place = fetch(publisher[1], tmp_path, pause_seconds=0.0)
    place.write_bytes(ARCHIVE[:-20])
    with pytest.raises(DataError, match="delete it and run the command again"):
        fetch(publisher[1], tmp_path, pause_seconds=0.0)


def test_addresses_and_licence_are_the_publishers() -> None:
    """Fails when a version points to another record or goes without its licence."""
    for name, file in (
        ("kuairand", FILE),
        ("kuairand-1k", "KuaiRand-1K.tar.gz"),
        ("kuairand-27k", "KuaiRand-27K.tar.gz"),
    ):
        source = find_source(name)
        assert source.url == f"https://zenodo.org/records/10439422/files/{file}"
        assert source.record == "https://zenodo.org/api/records/10439422"
        assert "CC BY-SA 4.0" in source.licence
