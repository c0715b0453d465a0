"""`neuclust multiverse`: a grid played, stopped, killed and taken up again; what it writes, and what it refuses."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from command_line import NEUCLUST, Command, clean_environment
from multiverse_files import GRID, grid_file
from patience import HANG_SECONDS

from neuclust.experiment.multiverse.record import read_record
from neuclust.experiment.multiverse.rows import read_rows


def lines_of(out: Path) -> list[str]:
    file = out / "runs.jsonl"
    return file.read_text().splitlines(keepends=True) if file.exists() else []


def timeless(out: Path) -> list[dict[str, Any]]:
    rows = [{**json.loads(line), "seconds": 0} for line in lines_of(out)]
    return sorted(rows, key=lambda row: json.dumps(row, sort_keys=True))


def test_a_grid_is_played_once_and_leaves_record_curve_and_page(
    tmp_path: Path, problem: Path, command: Command
) -> None:
    grid, out, numbers = grid_file(tmp_path), tmp_path / "out", tmp_path / "numbers.json"
    words = ("multiverse", grid, "--data", problem, "--engine", "inline", "--out", out)
    first = command(*words, "--json", numbers)
    assert (first.code, "Traceback" in first.err) == (0, False), first.err
    sentence, page = first.out.splitlines()
    assert sentence.startswith("The order holds in ")
    assert page == str(out / "index.md")
    text = (out / "index.md").read_text()
    assert text.startswith("# small: the paper under its readings")
    assert sentence in text
    assert "start=plain, biases=zero" in text
    assert (out / "multiverse.svg").read_text().startswith("<?xml")
    summary = json.loads(numbers.read_text())
    assert summary["verdict"]["sentence"] == sentence
    assert summary["record"] == read_record(out / "record.json")
    assert len(summary["cells"]) == 5
    # NeUClust and NeUClust without F in 5 cells, of which the biases of F change only the first; CN-UCB in 2
    assert len(lines_of(out)) == 2 * (5 + 3 + 2)
    before = {name: (out / name).read_bytes() for name in ("runs.jsonl", "record.json", "multiverse.svg", "index.md")}
    again = command(*words, "--json", "-")
    assert (again.code, json.loads(again.out)) == (0, summary)
    assert "0 to do" in again.err
    assert {name: (out / name).read_bytes() for name in before} == before


def test_pieces_make_the_same_record_as_one_go(tmp_path: Path, problem: Path, call: Command) -> None:
    grid, whole, pieces = grid_file(tmp_path), tmp_path / "whole", tmp_path / "pieces"
    words = ("multiverse", grid, "--data", problem, "--engine", "inline", "--quiet", "--out")
    assert call(*words, whole).code == 0
    none = call(*words, pieces, "--minutes", "0")
    assert none.code == 1
    assert "20 runs are left" in none.err
    assert not (pieces / "index.md").exists()
    earlier = tmp_path / "earlier.jsonl"
    earlier.write_text("".join(lines_of(whole)[:7]))
    assert call(*words, pieces, "--done", earlier).code == 0
    assert len(lines_of(pieces)) == 13
    assert (pieces / "record.json").read_bytes() == (whole / "record.json").read_bytes()
    assert set(read_rows([pieces / "runs.jsonl"])).isdisjoint(read_rows([earlier]))


def test_ctrl_c_and_a_kill_lose_no_finished_run(tmp_path: Path, problem: Path, call: Command) -> None:
    """Two cells of one seed are four runs: NeUClust twice, CN-UCB and NeUClust without F once."""
    grid, out = grid_file(tmp_path), tmp_path / "out"
    words = ["multiverse", str(grid), "--data", str(problem), "--engine", "inline", "--out", str(out)]
    words += ["--cells", "2", "--seeds", "1", "--rounds", "100"]

    def stop_after(lines: int, number: signal.Signals) -> tuple[int, str]:
        process = subprocess.Popen(
            [str(NEUCLUST), *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env=clean_environment(), start_new_session=True,
        )  # fmt: skip
        while process.poll() is None and len(lines_of(out)) < lines:
            time.sleep(0.002)
        os.killpg(process.pid, number)
        _, err = process.communicate(timeout=HANG_SECONDS)
        return process.returncode, err

    code, err = stop_after(1, signal.SIGINT)
    assert code == 130, err
    assert "Stopped by Ctrl-C" in err
    assert "Traceback" not in err
    kept = lines_of(out)
    assert 1 <= len(kept) < 4
    code, _ = stop_after(len(kept) + 1, signal.SIGKILL)
    assert code == -signal.SIGKILL
    with (out / "runs.jsonl").open("a") as stream:
        stream.write('{"policy": "neucl')  # as a kill in the middle of a line leaves it
    assert call(*words, "--quiet").code == 0
    assert lines_of(out)[: len(kept)] == kept
    assert len(lines_of(out)) == len(read_rows([out / "runs.jsonl"])) == 4
    undisturbed = tmp_path / "undisturbed"
    words[words.index(str(out))] = str(undisturbed)
    assert call(*words, "--quiet").code == 0
    assert timeless(out) == timeless(undisturbed)
    assert (out / "record.json").read_bytes() == (undisturbed / "record.json").read_bytes()


def test_a_plan_is_printed_and_nothing_is_written(tmp_path: Path, problem: Path, call: Command) -> None:
    out = tmp_path / "out"
    words = ("multiverse", grid_file(tmp_path), "--data", problem, "--out", out, "--plan")
    answer = call(*words)
    assert answer.code == 0
    assert answer.out.splitlines() == [
        "device       6 runs to do  preferred",
        "device       6 runs to do  biases=zero",
        "device       6 runs to do  start=plain",
        "device       6 runs to do  start=plain, biases=zero",
        "processes    6 runs to do  kmeans=own",
    ]
    assert "5 cells, 20 runs, 20 to do" in answer.err
    assert not out.exists()
    device = call(*words, "--engine", "device")
    assert "kmeans" not in device.out


def test_the_quick_form_is_a_grid_of_the_package(
    tmp_path: Path, call: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It works wherever the command is called, as an installed package must."""
    monkeypatch.chdir(tmp_path)
    quick = call("multiverse", "--quick", "--plan")
    assert quick.code == 0
    assert "9 cells" in quick.err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('biases = ["none", "zero"] }', 'biases = ["none", "zero"], colour = ["red"] }', "block 1: expected"),
        ('start = ["duplicated", "plain"]', 'start = ["plane"]', "block 1: start: expected"),
        ('"arms.network.init" = "mirrored"', '"arms.network.start" = "mirrored"', "start"),
        ('"arms.network.init" = "mirrored"', '"arms.network.init" = "mirror"', "mirror"),
        ('why = "The analysis asks for it."', "", "reading start: expected a question and an argument"),
        ("seeds = { first = 5, count = 2 }", "seeds = 3", "seeds: expected"),
        ("rounds = 4", "rounds = 4000", "4000"),
    ],
)
def test_a_bad_grid_is_refused_in_a_sentence(
    tmp_path: Path, problem: Path, call: Command, old: str, new: str, said: str
) -> None:
    assert GRID.count(old) == 1
    grid = grid_file(tmp_path, GRID.replace(old, new))
    answer = call("multiverse", grid, "--data", problem, "--out", tmp_path / "out")
    assert answer.code == 2
    assert said in answer.err
    assert "Traceback" not in answer.err
    assert not (tmp_path / "out").exists()


def test_other_mistakes_are_refused_in_a_sentence(tmp_path: Path, problem: Path, call: Command) -> None:
    grid, out = grid_file(tmp_path), tmp_path / "out"
    words = ("multiverse", grid, "--data", problem, "--out", out)
    for more, said in (
        (("--quick",), "drop one of them"),
        (("--env", "quadratic"), "drop one of them"),
        (("--done", tmp_path / "none.jsonl"), "no file"),
        (("--engine", "cluster"), "engine"),
    ):
        answer = call(*words, *more)
        assert (answer.code, said in answer.err) == (2, True), answer.err
    out.mkdir(exist_ok=True)
    (out / "runs.jsonl").write_text('{"policy": "neuclust"}\n')
    foreign = call(*words)
    assert foreign.code == 65
    assert "expected a run of a grid of readings" in foreign.err
    assert (out / "runs.jsonl").read_text() == '{"policy": "neuclust"}\n'
