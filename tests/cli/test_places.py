"""A place that cannot be written is one right sentence, for every option that names a place."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from command_line import NEUCLUST, Command, clean_environment, completed

SHORT = ("run", "--policy", "uniform", "--rounds", "3", "-q")
LONG_NAME = "x" * 300


@pytest.fixture(scope="module")
def played(problem: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("played")
    completed(*SHORT, "--data", problem, "--json", folder / "runs.json", clean=True).check_returncode()
    return folder / "runs.json"


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 8 kB, where one may be mounted."""
    place = tmp_path / "disk"
    place.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8k", "tmpfs", place], capture_output=True).returncode:
        pytest.skip("no disk may be mounted here")
    try:
        yield place
    finally:
        subprocess.run(["umount", "--lazy", place], check=True)


def orders(problem: Path, played: Path, raw: Path, place: Path) -> dict[str, list[object]]:
    """Every option that takes a place, with `place` as the folder in question."""
    files = ["--ratings", raw / "ratings.csv", "--movies", raw / "movies.csv"]
    return {
        "--out": [*SHORT, "--data", problem, "--out", place],
        "--json": [*SHORT, "--data", problem, "--json", place / "a.json"],
        "--plot": [*SHORT, "--data", problem, "--plot", place / "a.png"],
        "--save": [*SHORT, "--data", problem, "--save", place / "policy"],
        "report": ["report", played, "--out", place],
        "compare --csv": ["compare", played, "--csv", place / "a.csv"],
        "compare --json": ["compare", played, "--json", place / "a.json"],
        "inspect": ["data", "inspect", problem, "--out", place],
        "prepare": ["data", "prepare", "movielens", *files, "--out", place / "a.npz"],
        "replay": ["data", "prepare", "replay", *files, "--out", place / "a.npz"],
        "generate": ["data", "generate", "movielens", "--ratings", "10", "--out", place],
        "clusters": ["clusters", "--data", problem, "--json", place / "a.json"],
        "sweep": ["sweep", raw / "sweep.toml", "--engine", "inline", "--out", place],
        "suite": ["suite", "--quick", "--problem", "bump", "--policy", "uniform", "--rounds", "2", "--out", place],
        "shop": ["shop", "--requests", "2", "--policy", "uniform", "--out", place],
        "reproduce": ["reproduce", "movielens", "--quick", "--out", place],
    }


def write_raw(folder: Path, problem: Path) -> None:
    (folder / "ratings.csv").write_text("userId,movieId,rating,timestamp\n1,1,4.0,1500000000\n")
    (folder / "movies.csv").write_text("movieId,title,genres\n1,A (2000),Action\n")
    (folder / "sweep.toml").write_text(
        f'rounds = 2\n[[environment]]\ndata = "{problem}"\n[[policy]]\npolicy = "uniform"\n'
    )


def refused(call: Command, order: list[object], words: str) -> None:
    answer = call(*order)
    assert answer.code == 2, (order, answer.err)
    assert words in answer.err, order
    assert answer.err.count("\n") == 1, answer.err
    assert ("make room" in answer.err) == ("no room" in words)
    assert answer.out == ""


def test_a_file_in_place_of_a_folder(call: Command, problem: Path, played: Path, tmp_path: Path) -> None:
    write_raw(tmp_path, problem)
    (tmp_path / "file").write_text("mine")
    for order in orders(problem, played, tmp_path, tmp_path / "file").values():
        refused(call, order, f"{tmp_path / 'file'} is no folder); name another place")
    assert (tmp_path / "file").read_text() == "mine"


def test_a_read_only_disk(call: Command, problem: Path, played: Path, tmp_path: Path, disk: Path) -> None:
    write_raw(tmp_path, problem)
    subprocess.run(["mount", "-o", "remount,ro", disk], check=True)
    for order in orders(problem, played, tmp_path, disk).values():
        refused(call, order, "(its disk is read-only); name a place on another disk")


def test_a_name_that_is_too_long(call: Command, problem: Path, played: Path, tmp_path: Path) -> None:
    write_raw(tmp_path, problem)
    for order in orders(problem, played, tmp_path, tmp_path / LONG_NAME).values():
        refused(call, order, "(its name is too long); shorten the name")


def test_a_folder_that_is_not_there_is_named(call: Command, problem: Path, tmp_path: Path) -> None:
    absent = tmp_path / "absent"
    for option, file in (("--json", absent / "deep" / "a.json"), ("--plot", absent / "a.png")):
        refused(call, [*SHORT, "--data", problem, option, file], f"got {file} (the folder {absent} does not exist)")


def test_a_disk_that_fills_up_is_said(call: Command, problem: Path, played: Path, tmp_path: Path, disk: Path) -> None:
    write_raw(tmp_path, problem)
    for name in ("--out", "report", "inspect"):
        answer = call(*orders(problem, played, tmp_path, disk / "full")[name])
        assert answer.code == 65, answer.err
        assert answer.err.startswith(f"neuclust: {disk / 'full'}/")
        assert answer.err.endswith("(no room is left on its disk); make room, or name another place\n")
        assert answer.err.count("\n") == 1


@pytest.mark.parametrize("order", [(*SHORT,), (*SHORT, "--json", "-"), ("policies",)])
def test_a_full_standard_output_is_said(problem: Path, order: tuple[str, ...]) -> None:
    more = ["--data", str(problem)] if order[0] == "run" else []
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [str(NEUCLUST), *order, *more], stdout=full, stderr=subprocess.PIPE, text=True, env=clean_environment()
        )
    assert done.returncode == 65
    assert done.stderr == (
        "neuclust: the standard output: expected a place that can be written (no room is left on its disk); make "
        "room, or name another place\n"
    )


@pytest.mark.parametrize(
    "order",
    [[], ["run"], ["sweep"], ["suite"], ["policies"], ["data"], ["data", "prepare"], ["data", "prepare", "yelp"]],
)
def test_a_short_name_for_help(call: Command, order: list[str]) -> None:
    short, long = call(*order, "-h"), call(*order, "--help")
    assert (short.code, short.out) == (0, long.out)
    assert "Usage: neuclust" in short.out


def test_a_pipe_is_not_replaced_and_a_link_is_followed(call: Command, problem: Path, tmp_path: Path) -> None:
    pipe, target, link = tmp_path / "pipe", tmp_path / "target.json", tmp_path / "link.json"
    os.mkfifo(pipe)
    order = ("run", "--data", problem, "--policy", "uniform", "--rounds", 3, "--quiet", "--json")
    answer = call(*order, pipe)
    assert answer.code == 2
    assert f"--json: expected a file, got {pipe}, which is none" in answer.err
    assert pipe.is_fifo()
    link.symlink_to(target)
    assert call(*order, link).code == 0
    assert link.is_symlink()
    assert target.read_text().startswith('{"schema"')
