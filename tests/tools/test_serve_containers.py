"""compose.yaml and Containerfile: what can be checked of them without a container runtime."""

from __future__ import annotations

import importlib
import json
import re
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from neuclust.cli.app import app

ROOT = Path(__file__).parents[2]
yaml: Any = importlib.import_module("yaml")


@pytest.fixture(scope="module")
def services() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((ROOT / "compose.yaml").read_text(encoding="utf-8"))["services"]
    return found


def instructions() -> list[tuple[str, str]]:
    """The instructions of the Containerfile with their words, continued lines joined."""
    text = (ROOT / "Containerfile").read_text(encoding="utf-8").replace("\\\n", " ")
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    return [(line.split(maxsplit=1)[0], line.split(maxsplit=1)[1]) for line in lines]


def parsed(words: list[str]) -> dict[str, Any]:
    """The options of a command line of ours; refused as the command itself would."""
    root: Any = get_command(app)
    name, *rest = words
    return dict(root.commands[name].make_context(name, rest).params)


def test_the_cluster_is_two_replicas_a_learner_and_a_database(services: dict[str, Any]) -> None:
    """Fails when a process is missing, has an option that is none, or listens where nobody looks."""
    ours = {name: parsed(each["command"]) for name, each in services.items() if "command" in each}
    roles = sorted(str(options["role"].value) for options in ours.values())
    assert roles == ["api", "api", "learner"]
    outside = set()
    for name, options in ours.items():
        assert services[name]["build"]["dockerfile"] == "Containerfile"
        for published in services[name].get("ports", []):
            host, port, inside = published.rsplit(":", 2)
            assert (host, int(inside)) == ("127.0.0.1", options["port"])
            assert options["host"] == "0.0.0.0"
            outside.add(port)
    assert len(outside) == 2


def test_they_share_one_database_and_wait_for_it(services: dict[str, Any]) -> None:
    """Fails when a password stands in the file, or a process is given another database than the one that is started."""
    database = services["postgres"]
    settings = database["environment"]
    assert settings["POSTGRES_PASSWORD"].startswith("${NEUCLUST_PASSWORD:?")
    assert database["healthcheck"]["test"][1] == "pg_isready"
    for name, each in services.items():
        if name == "postgres":
            continue
        address = each["environment"]["NEUCLUST_DB"]
        found = re.fullmatch(r"postgresql://(\w+):\$\{NEUCLUST_PASSWORD:\?.*\}@([\w:]+)/(\w+)", address)
        assert found is not None
        assert found.groups() == (settings["POSTGRES_USER"], "postgres:5432", settings["POSTGRES_DB"])
        assert each["depends_on"]["postgres"]["condition"] == "service_healthy"


def test_the_image_runs_as_nobody_special_and_says_whether_it_is_well() -> None:
    """Fails when the service would run as root, or its health is asked for at another port than it has."""
    lines = instructions()
    found = dict(lines)
    assert found["FROM"] == "python:3.11-slim"
    assert found["USER"] not in ("root", "0")
    order = [name for name, _ in lines]
    assert order.index("USER") < order.index("ENTRYPOINT")
    assert json.loads(found["ENTRYPOINT"]) == ["neuclust"]
    options = parsed(json.loads(found["CMD"]))
    assert str(options["port"]) == found["EXPOSE"]
    assert f"http://127.0.0.1:{found['EXPOSE']}/health/ready" in found["HEALTHCHECK"]


def test_the_image_has_what_it_copies() -> None:
    """Fails when a file that the image needs is gone or ignored."""
    ignored = (ROOT / ".dockerignore").read_text(encoding="utf-8").split()
    for name, words in instructions():
        if name == "COPY":
            *sources, _ = words.split()
            assert [source for source in sources if not (ROOT / source).exists() or source in ignored] == []
