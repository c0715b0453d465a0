"""A grid played piece by piece: every run once, lines that outlive a kill, and what a bare machine lacks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from bare_machine import bare_run
from multiverse_files import GRID, grid_file

from neuclust.experiment.multiverse.bare import main
from neuclust.experiment.multiverse.grid import ROLES, read_grid
from neuclust.experiment.multiverse.grids import FULL, QUICK
from neuclust.experiment.multiverse.playing import plan_of
from neuclust.experiment.multiverse.rows import key_of_task, read_rows
from neuclust.experiment.problem import Problem

ENV = "quadratic"


def order(grid: Path, out: Path, *words: str) -> list[str]:
    return ["--grid", str(grid), "--env", ENV, "--engine", "device", "--out", str(out), *words]


def rows_of(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text().splitlines()]


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The small grid, played by the device engine on the CPU."""
    folder = tmp_path_factory.mktemp("bare")
    grid, out = grid_file(folder), folder / "runs.jsonl"
    assert main(order(grid, out)) == 0
    return grid, out


def test_every_run_of_the_device_is_there_once(played: tuple[Path, Path]) -> None:
    file, out = played
    grid = read_grid(file)
    cells = [cell for cell in grid.cells if cell.engine == "device"]
    plan = plan_of(grid, Problem(ENV), cells)
    rows = rows_of(out)
    # NeUClust in four cells; CN-UCB and NeUClust without F do not notice the biases of F
    assert len(rows) == len(plan.tasks) == 2 * (4 + 2 + 2)
    assert set(read_rows([out])) == {key_of_task(task) for task in plan.tasks}
    assert {row["settings"].get("slate.weight") for row in rows} == {None, "0"}


def test_a_piece_takes_up_what_another_left(played: tuple[Path, Path], tmp_path: Path) -> None:
    grid, out = played
    lines = out.read_text().splitlines(keepends=True)
    done, rest = tmp_path / "done.jsonl", tmp_path / "rest.jsonl"
    done.write_text("".join(lines[:5]))
    rest.write_text("".join(lines[5:7]) + lines[7][:50])  # a kill cut the last line short
    assert main(order(grid, rest, "--done", str(done))) == 0

    def without_time(rows: list[dict[str, Any]]) -> list[str]:
        return sorted(json.dumps({**row, "seconds": 0}, sort_keys=True) for row in rows)

    assert without_time(rows_of(done) + rows_of(rest)) == without_time(rows_of(out))


def test_no_time_plays_nothing_and_says_so(
    played: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "none.jsonl"
    assert main(order(played[0], out, "--minutes", "0")) == 1
    assert out.read_text() == ""
    assert "0 runs played" in capsys.readouterr().err


def test_the_other_engine_plays_the_rest(played: tuple[Path, Path], tmp_path: Path) -> None:
    """On processes all cells are played, with the same numbers where both engines play."""
    grid, out = played
    here = tmp_path / "here.jsonl"
    words = order(grid, here)
    words[words.index("device")] = "inline"
    assert main(words) == 0
    mine, theirs = read_rows([here]), read_rows([out])
    assert len(mine) == len(theirs) + 2 * 2  # NeUClust with and without F on clusters of their own
    for key, row in theirs.items():
        assert mine[key]["expected_regret"] == pytest.approx(row["expected_regret"], abs=1e-6)


def test_marks_agree_with_what_the_device_refuses() -> None:
    """Cells of the committed grid for processes are refused by the device engine, or too slow there; others are not."""
    from neuclust.errors import ConfigError
    from neuclust.experiment.engines.device.batches import check_supported
    from neuclust.registry import policy_config

    grid = read_grid(FULL)
    for cell in grid.cells:
        refused = False
        for role in ROLES:
            one = grid.contestant(cell, role)
            try:
                check_supported(policy_config(one.policy, one.preset, None, one.settings))
            except ConfigError:
                refused = True
        slow = "masked" in cell.options[-1:]
        assert (cell.engine == "processes") == (refused or slow), grid.title(cell)
    assert sum(cell.engine == "device" for cell in grid.cells) >= 72
    assert grid.preferred in {cell.options for cell in grid.cells}


def test_bad_grids_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "x.jsonl"
    for old, new, said in (
        ('preferred = "duplicated"', 'preferred = "doubled"', "reading start: preferred"),
        ('start = ["duplicated", "plain"]', 'start = ["plane"]', "block 1: start"),
        ('"mirrored"', '"mirror"', "mirror"),
        ("rounds = 4", "rounds = 0", "rounds: expected a whole number"),
        ("[reading.start]", "[reading.start", "expected TOML"),
    ):
        assert main(order(grid_file(tmp_path, GRID.replace(old, new)), out)) == 2
        assert said in capsys.readouterr().err
    assert main(order(tmp_path / "none.toml", out)) == 2
    out.write_text('{"a": 1}\n')
    assert main(order(grid_file(tmp_path), out)) == 65
    assert "expected a run of a grid of readings" in capsys.readouterr().err


def test_a_bare_machine_has_what_it_imports() -> None:
    """Fails where the entry imports more than torch, numpy, scipy, scikit-learn and numba."""
    words = ("--grid", str(QUICK), "--out", "/dev/null", "--list")
    done = bare_run("neuclust.experiment.multiverse.bare", *words)
    assert done.returncode == 0, done.stderr
    assert "8 cells" in done.stderr


def test_a_module_that_needs_more_does_not_run_there() -> None:
    done = bare_run("neuclust.cli.app")
    assert done.returncode == 1
    assert "a bare machine has no" in done.stderr
