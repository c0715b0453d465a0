"""The README's Python examples run as they stand."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

README = Path(__file__).parents[2] / "README.md"


def run(block: str) -> dict[str, Any]:
    """What a Python block leaves behind."""
    names: dict[str, Any] = {}
    exec(compile(block, "README.md", "exec"), names)  # noqa: S102  # our own page, read from the repository
    return names


@pytest.fixture
def blocks() -> list[str]:
    """The front door, and a policy on a problem."""
    found = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.S)
    assert len(found) == 2
    return found


def test_the_front_door_opens_in_ten_lines(
    blocks: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from neuclust.experiment.shop import SimulatedShop

    monkeypatch.chdir(tmp_path)
    SimulatedShop.of(0).write(tmp_path)
    assert len(blocks[0].strip().splitlines()) <= 10
    names = run(blocks[0])
    assert capsys.readouterr().out == f"{names['choice'].items}\n"
    assert len(set(names["choice"].items)) == 5
    assert names["shop"].decisions.counts.learned == 1


def test_the_python_example_runs(blocks: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names = run(blocks[1])
    assert (tmp_path / "my-policy" / "manifest.json").exists()
    assert type(names["policy"]).__name__ == "NeUClust"


def test_commands_name_options_that_exist() -> None:
    from typer.main import get_command

    from neuclust.cli.app import app

    commands: Any = get_command(app)
    lines = README.read_text(encoding="utf-8").splitlines()
    for name in ("run", "shop"):
        options = {option for parameter in commands.commands[name].params for option in parameter.opts}
        used = {word for line in lines if line.startswith(f"neuclust {name}") for word in line.split()}
        assert {word for word in used if word.startswith("--")} <= options
