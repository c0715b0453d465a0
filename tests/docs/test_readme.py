"""The README is short, its Python runs as it stands, and its figures are those of the pages behind them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from site_pages import DOCS, ROOT

README = ROOT / "README.md"
MOST_LINES = 100  # two screens


def plain(page: Path) -> str:
    """The words of a page, whatever its lines."""
    return " ".join(page.read_text(encoding="utf-8").split())


def test_the_front_door_opens_in_ten_lines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Fails when the example no longer works."""
    from neuclust.experiment.shop import SimulatedShop

    monkeypatch.chdir(tmp_path)
    SimulatedShop.of(0).write(tmp_path)
    (block,) = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.S)
    assert len(block.strip().splitlines()) <= 10
    names: dict[str, Any] = {}
    exec(compile(block, "README.md", "exec"), names)  # noqa: S102  # our own page, read from the repository
    assert capsys.readouterr().out == f"{names['choice'].items}\n"
    assert len(set(names["choice"].items)) == 5
    assert names["shop"].decisions.counts.learned == 1
    assert block in (DOCS / "index.md").read_text(encoding="utf-8")


def test_it_fits_on_two_screens_and_says_how_to_run_and_test() -> None:
    """Fails when the README grows, or loses a command that everybody needs."""
    text = README.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= MOST_LINES
    assert all(command in text for command in ("make run", "make test", "make docs", "pip install '.[lab]'"))


def test_commands_name_options_that_exist() -> None:
    from typer.main import get_command

    from neuclust.cli.app import app

    commands: Any = get_command(app)
    lines = README.read_text(encoding="utf-8").splitlines()
    for name in ("run", "shop", "evaluate", "serve"):
        options = {option for parameter in commands.commands[name].params for option in parameter.opts}
        used = {word for line in lines if line.startswith(f"neuclust {name}") for word in line.split()}
        assert used
        assert {word for word in used if word.startswith("--")} <= options


def test_its_results_are_those_of_the_pages_behind_them() -> None:
    """Fails when a figure of the README or of the start page is no longer that of the page it links to."""
    readme, start = plain(README), plain(DOCS / "index.md")
    choosing, reproduction, speed = (plain(DOCS / f"{name}.md") for name in ("choosing", "reproduction", "speed"))
    (verdict,) = re.findall(r"picked afterwards, it is (ahead on .*? problems)\.", choosing)
    assert verdict in readme
    assert verdict in start
    regrets = {"linucb": "0.16 ± 0.08", "auto": "0.97 ± 0.12", "neuclust": "1.35 ± 0.16", "cn-ucb": "1.43 ± 0.18"}
    for policy, shown in regrets.items():
        assert f"| `{policy}` | {shown} |" in reproduction
        assert shown in readme
    for shown in ("13.0 ± 0.9", "14.8 ± 1.1", "14.7", "34.0"):
        assert shown in reproduction
        assert shown in readme
    assert "359 times faster per round" in speed
    assert "359 times faster per round" in readme
    assert "359 times faster per round" in start
    assert re.search(r"20 seeds batched \| 6\.31 s", speed)
