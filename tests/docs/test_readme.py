"""The README's Python example runs as it stands."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

README = Path(__file__).parents[2] / "README.md"


def test_the_python_example_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code = re.search(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.S)
    assert code is not None
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    exec(compile(code.group(1), "README.md", "exec"), names)  # noqa: S102  # our own page, read from the repository
    assert (tmp_path / "my-policy" / "manifest.json").exists()
    assert type(names["policy"]).__name__ == "NeUClust"


def test_commands_name_options_that_exist() -> None:
    from typer.main import get_command

    from neuclust.cli.app import app

    commands: Any = get_command(app)
    options = {option for parameter in commands.commands["run"].params for option in parameter.opts}
    used = {
        word for line in README.read_text().splitlines() if line.startswith("neuclust run") for word in line.split()
    }
    assert {word for word in used if word.startswith("--")} <= options
