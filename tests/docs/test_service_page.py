"""docs/service.md, run block by block against a real service: what is printed is what the page shows."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from patience import HANG_SECONDS
from running_service import RunningService, running
from typer.main import get_command

from benchmarks.serve_tables import table
from neuclust.cli.app import app

PAGE = Path(__file__).parents[2] / "docs" / "service.md"
BLOCK = re.compile(r"^```(sh|python|text)\n(.*?)^```", re.DOTALL | re.MULTILINE)
WRITTEN = "http://127.0.0.1:8000"


@pytest.fixture
def service(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[RunningService]:
    monkeypatch.chdir(tmp_path)
    with running(tmp_path, real=True) as found:
        yield found


def test_the_page_runs_and_prints_what_it_says(service: RunningService) -> None:
    """Fails when an example of the page no longer works, or prints something else."""
    left: dict[str, Any] = {}
    printed, ran = "", []
    for kind, text in BLOCK.findall(PAGE.read_text(encoding="utf-8")):
        code = text.replace(WRITTEN, service.address)
        if kind == "sh":
            asked(code)
            ran.append(kind)
        elif kind == "python":
            out = StringIO()
            with redirect_stdout(out):
                exec(compile(code, f"<{PAGE.name}>", "exec"), left)  # noqa: S102  # our own page
            printed = out.getvalue()
            ran.append(kind)
        elif printed:
            assert text == printed
            printed = ""
    assert ran == ["sh", "python", "python"]
    assert service.call("GET", "shop", status=200)["items"] == 4
    (learned,) = [each["decision_id"] for each in service.call("GET", "shop/decisions")["decisions"]]
    assert json.loads(Path("slate.json").read_text())["decision_id"] == learned


def asked(script: str) -> None:
    """Run the lines with curl, each of which must succeed."""
    if shutil.which("curl") is None:
        pytest.skip("no curl here")
    strict = script.replace("curl -sS", "curl -sS --fail-with-body")
    done = subprocess.run(["bash", "-euc", strict], capture_output=True, text=True, timeout=HANG_SECONDS)
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_route_is_on_the_page(service: RunningService) -> None:
    """Fails when a route of a recommender is not named on the page."""
    page = PAGE.read_text(encoding="utf-8")
    paths = service.client.get("/openapi.json").json()["paths"]
    ours = {path.partition("{name}/")[2].partition("/")[0] for path in paths} - {""}
    assert len(ours) > 10
    assert [name for name in sorted(ours) if name not in page] == []


def test_commands_and_options_of_the_page_exist() -> None:
    """Fails when the page names a command or an option of the service that is not there."""
    root: Any = get_command(app)
    text = PAGE.read_text(encoding="utf-8")
    named = set(re.findall(r"neuclust (serve|keys add|replay|backup|restore|evaluate)\b", text))
    assert {"serve", "keys add", "replay", "backup", "restore", "evaluate"} <= named
    for line in re.findall(r"neuclust (?:serve|keys add|replay|evaluate)[^`\n#]*", text):
        _, name, *words = line.split()
        command = root.commands[name]
        if name == "keys":
            command = command.commands[words.pop(0)]
        known = {option for parameter in command.params for option in parameter.opts}
        assert [word for word in words if word.startswith("--") and word not in known] == [], line
    known = {option for parameter in root.commands["serve"].params for option in parameter.opts}
    assert {"--rate", "--longest-wait", "--role"} <= known


def test_the_figures_are_those_of_the_records() -> None:
    """Fails when the page shows other figures than the records hold, or leaves one out that did not hold."""
    assert table() in PAGE.read_text(encoding="utf-8")
