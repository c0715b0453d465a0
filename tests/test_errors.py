"""Words that errors share: the name that was meant, and why a place cannot be written."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from neuclust.errors import close_names, not_written, one_of, suggestion, why_not_written, writing

NAMES = ("floor", "alpha", "gamma", "worth", "cn-ucb", "yelp-twin", "yelp-volatile")


@pytest.mark.parametrize(
    ("name", "close"),
    [
        ("alfa", ["alpha"]),
        ("gama", ["gamma"]),
        ("Gamma", ["gamma"]),
        ("cn_ucb", ["cn-ucb"]),
        ("yelp", ["yelp-twin", "yelp-volatile"]),
        ("foo", []),
        ("x", []),
        ("", []),
        ("completely different", []),
    ],
)
def test_only_close_names_are_taken_for_a_slip(name: str, close: list[str]) -> None:
    assert close_names(name, NAMES) == close


def test_without_a_close_name_all_are_listed() -> None:
    assert suggestion("gama", NAMES) == "did you mean gamma?"
    assert suggestion("foo", ("a", "b")) == "expected one of a, b"
    assert one_of("foo", ("a", "b")) == "expected one of a, b, got 'foo'"
    assert one_of("inlin", ("inline", "ray")) == "expected one of inline, ray, got 'inlin'; did you mean inline?"


@pytest.mark.parametrize(
    ("number", "reason", "advice"),
    [
        (errno.ENOSPC, "no room is left on its disk", "make room"),
        (errno.EDQUOT, "your share of its disk is used up", "make room"),
        (errno.EROFS, "its disk is read-only", "another disk"),
        (errno.EACCES, "permission denied", "permission"),
        (errno.EPERM, "the system does not permit it", "another place"),
        (errno.EISDIR, "it is a folder", "name a file in it"),
        (errno.ENAMETOOLONG, "its name is too long", "shorten"),
        (errno.EMFILE, os.strerror(errno.EMFILE), "another place"),
    ],
)
def test_every_reason_has_its_own_advice(number: int, reason: str, advice: str) -> None:
    found = why_not_written(OSError(number, os.strerror(number)), Path("out"))
    assert found[0] == reason
    assert advice in found[1]
    assert ("make room" in found[1]) == (number in (errno.ENOSPC, errno.EDQUOT))


def test_the_part_of_the_path_that_is_in_the_way_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    blocked = tmp_path / "file" / "deeper" / "out"
    with pytest.raises(OSError, match="Not a directory") as refused:
        blocked.mkdir(parents=True)
    assert why_not_written(refused.value, blocked)[0] == f"{tmp_path / 'file'} is no folder"
    absent = tmp_path / "absent" / "deeper" / "out.json"
    with pytest.raises(OSError, match="No such file") as refused:
        absent.write_text("")
    assert why_not_written(refused.value, absent)[0] == f"the folder {tmp_path / 'absent'} does not exist"
    with pytest.raises(OSError, match="too long") as refused:
        (tmp_path / ("x" * 300)).write_text("")
    assert why_not_written(refused.value, tmp_path)[1] == "shorten the name"


def test_an_error_names_the_place_that_was_asked_for(tmp_path: Path) -> None:
    full = Path("/dev/full")
    with pytest.raises(OSError, match="No space left") as refused, writing(tmp_path / "runs.json"):
        full.write_text("x")
    assert refused.value.filename == str(tmp_path / "runs.json")
    assert refused.value.errno == errno.ENOSPC
    said = not_written(Path("out"), refused.value, "--out", "folder")
    assert said == (
        "--out: expected a folder that can be written, got out (no room is left on its disk); make room, or name "
        "another place"
    )
