"""docs/service.md, run block by block against a real service: what is printed is what the page shows."""

from __future__ import annotations

import json
import re
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

import httpx
import pytest
from command_line import clean_environment
from patience import HANG_SECONDS
from running_service import RunningService, eventually, running
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


@pytest.fixture
def address(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The service as the page's own line starts it, in an empty folder; at another port only where its own is taken."""
    monkeypatch.chdir(tmp_path)
    (line,) = re.findall(r"^(neuclust serve) +# http://127.0.0.1:8000,", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    words = [*line.split()[1:], *(["--port", "0"] if taken(8000) else [])]
    process = subprocess.Popen(
        [sys.executable, "-u", "-m", "neuclust", *words], stdout=subprocess.PIPE, text=True, env=clean_environment()
    )
    try:
        assert process.stdout is not None
        found = next(each[0] for said in process.stdout if (each := re.search(r"http://[\d.]+:\d+", said)))
        eventually(lambda: httpx.get(f"{found}/health/ready").is_success, "the service is ready")
        yield found
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=HANG_SECONDS)
    assert process.returncode == 130  # stopped by Ctrl-C, as docs/reference/errors.md has it


def taken(port: int) -> bool:
    with socket.socket() as asked:
        return asked.connect_ex(("127.0.0.1", port)) == 0


def test_the_page_runs_and_prints_what_it_says(address: str) -> None:
    """Fails when the service does not start as written, or an example of the page does or prints something else."""
    left: dict[str, Any] = {}
    printed, ran = "", []
    for kind, text in BLOCK.findall(PAGE.read_text(encoding="utf-8")):
        code = text.replace(WRITTEN, address)
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
    assert Path("neuclust.db").is_file()  # where the page says the data are
    assert httpx.get(f"{address}/").headers["content-type"].startswith("text/html")  # the page to watch it
    shop = f"{address}/v1/recommenders/shop"
    assert httpx.get(shop).json()["items"] == 4
    (learned,) = [each["decision_id"] for each in httpx.get(f"{shop}/decisions").json()["decisions"]]
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
