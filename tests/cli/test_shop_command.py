"""`neuclust shop`: tables, a picture and a table of policies that learn; plain in pipes, whole after Ctrl-C."""

from __future__ import annotations

import csv
import os
import pty
import re
import signal
import subprocess
import time
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest
from command_line import NEUCLUST, Command, clean_environment
from patience import HANG_SECONDS

FILES = {"items.csv", "users.csv", "requests.csv", "table.txt", "shop.png", "shop.svg"}


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def test_writes_tables_picture_and_results_the_same_twice(call: Command, tmp_path: Path) -> None:
    order = ("shop", "--requests", "30", "--policy", "linucb", "--policy", "uniform", "--policy", "linucb")
    first, second = (call(*order, "--out", tmp_path / name) for name in ("a", "b"))
    assert first.code == second.code == 0, first.err + second.err
    assert {file.name for file in (tmp_path / "a").iterdir()} == FILES
    assert first.out == second.out == (tmp_path / "a" / "table.txt").read_text()
    for name in FILES - {"shop.png"}:
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()
    assert [line.split()[0] for line in first.out.splitlines()] == ["policy", "linucb", "uniform"]  # each once
    assert len(rows_of(tmp_path / "a" / "items.csv")) == 300
    assert set(rows_of(tmp_path / "a" / "users.csv")[0]) == {"user", "segment", "age"}
    ElementTree.parse(tmp_path / "a" / "shop.svg")
    played = rows_of(tmp_path / "a" / "requests.csv")
    bounds = {(row["request"], row["random"], row["best"]) for row in played}
    assert len(bounds) == 30  # both policies met the same requests
    assert all(float(row["expected"]) <= float(row["best"]) + 1e-6 for row in played)


def test_another_seed_is_another_shop_over_the_first(call: Command, tmp_path: Path) -> None:
    tables = []
    for seed in ("0", "1"):
        assert call("shop", "--requests", "2", "--policy", "uniform", "--seed", seed, "--out", tmp_path, "-q").code == 0
        tables.append((tmp_path / "items.csv").read_text())
    assert tables[0] != tables[1]


def test_tables_of_others_are_left_alone(call: Command, tmp_path: Path) -> None:
    (tmp_path / "users.csv").write_text("user,name\n1,Ada\n")
    answer = call("shop", "--requests", "2", "--policy", "uniform", "--out", tmp_path)
    assert answer.code == 2
    assert "--out: expected a folder without tables of yours" in answer.err
    assert {file.name: file.read_text() for file in tmp_path.iterdir()} == {"users.csv": "user,name\n1,Ada\n"}


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--policy", "linucp"], "did you mean linucb"),
        (["--policy", "oracle"], "expected a policy that learns"),
        (["--requests", "0"], "--requests"),
    ],
)
def test_a_slip_leaves_no_folder_behind(call: Command, tmp_path: Path, options: list[str], sentence: str) -> None:
    answer = call("shop", *options, "--out", tmp_path / "out")
    assert answer.code == 2
    assert sentence in answer.err
    assert not (tmp_path / "out").exists()


def test_quiet_says_nothing_but_the_table(call: Command, tmp_path: Path) -> None:
    answer = call("shop", "--requests", "3", "--policy", "popular", "--out", tmp_path, "-q")
    assert (answer.code, answer.err) == (0, "")
    assert "popular" in answer.out


def test_ctrl_c_keeps_what_was_played(tmp_path: Path) -> None:
    order = [str(NEUCLUST), "shop", "--requests", "1000000", "--policy", "uniform", "--policy", "linucb", "--out", "."]
    parent, child = pty.openpty()  # a terminal, which says when requests are under way
    environment = clean_environment(COLUMNS="120", LINES="40")
    process = subprocess.Popen(order, cwd=tmp_path, stdout=subprocess.PIPE, stderr=child, env=environment, text=True)
    os.close(child)
    shown, deadline = "", time.monotonic() + HANG_SECONDS
    while not re.search(r"request [1-9]\d*/1000000", shown) and time.monotonic() < deadline:
        shown += os.read(parent, 65536).decode(errors="replace")
    assert "clicks per request" in shown
    process.send_signal(signal.SIGINT)
    try:
        while piece := os.read(parent, 65536):
            shown += piece.decode(errors="replace")
    except OSError:  # the other end is closed
        pass
    os.close(parent)
    out = process.communicate(timeout=HANG_SECONDS)[0]
    assert process.returncode == 130
    assert "Stopped by Ctrl-C" in shown
    assert "Traceback" not in shown
    assert [line.split()[0] for line in out.splitlines()] == ["policy", "uniform"]  # plain: no terminal there
    assert {file.name for file in tmp_path.iterdir()} == FILES
    assert 0 < len(rows_of(tmp_path / "requests.csv")) < 1_000_000
