"""A package outside the tree with a policy and an environment: installed, played, swept, saved, loaded, reported."""

from __future__ import annotations

import importlib
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from command_line import Answer, Command
from patience import HANG_SECONDS

import neuclust
from neuclust import registry
from neuclust.cli import main
from neuclust.environments import catalogue
from neuclust.experiment.store import read_store

SOURCE = Path(__file__).parents[1] / "outside_package"
EXPERIMENT = """\
name = "outside"
rounds = 20
slate_size = 3
seeds = 2
[[environment]]
env = "wheel"
[[policy]]
policy = "least-played"
preset = "fair"
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the package as pip installs it, without a network."""
    folder = tmp_path_factory.mktemp("outside")
    shutil.copytree(SOURCE, folder / "source")
    options = ["--no-deps", "--no-build-isolation", "--no-index", "--quiet", "--target", str(folder / "site")]
    done = subprocess.run(
        [sys.executable, "-m", "pip", "install", *options, str(folder / "source")],
        capture_output=True,
        text=True,
        timeout=HANG_SECONDS,
    )
    assert done.returncode == 0, done.stderr
    return folder / "site"


@pytest.fixture
def call(site: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    """The command in this process, with the package on its path and on that of its workers."""
    monkeypatch.syspath_prepend(str(site))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(site), os.environ.get("PYTHONPATH", "")]))
    for known in (registry.REGISTRY, catalogue.REGISTRY):  # as in a fresh process
        monkeypatch.setattr(known, "registered", {})
        monkeypatch.setattr(known, "_read", False)

    def give(*arguments: str | Path) -> Answer:
        monkeypatch.setattr(sys, "argv", ["neuclust", *map(str, arguments)])
        with pytest.raises(SystemExit) as left:
            main()
        return Answer(int(left.value.code or 0), *capsys.readouterr())

    return give


def test_it_is_played_saved_loaded_and_reported(call: Command, tmp_path: Path) -> None:
    played = ("--env", "wheel", "--rounds", "25", "--slate-size", "3", "--quiet")
    folder, saved = tmp_path / "results", tmp_path / "saved"
    answer = call("run", "--policy", "linucb", "--policy", "least-played:fair", *played, "--out", folder)
    assert answer.code == 0, answer.err
    answer = call("run", "--policy", "least-played:fair", *played, "--save", saved)
    assert answer.code == 0, answer.err
    answer = call("report", folder)
    assert answer.code == 0, answer.err
    assert "least-played" in next(folder.rglob("*.html")).read_text(encoding="utf-8")
    policy: Any = neuclust.load(saved)
    assert (type(policy).__module__, policy.config.worth) == ("outside_bandits.least_played", 0.0)
    assert int(policy.state_dict()["plays"].sum()) == 25 * 3
    assert "least-played" in call("policies").out
    assert "wheel" in call("envs").out


def test_a_class_and_a_factory_are_named_by_their_place(call: Command) -> None:
    place = ("--policy", "outside_bandits.least_played:LeastPlayed:fair", "--env", "outside_bandits.wheel:Wheel")
    answer = call("run", *place, "--rounds", "5", "--quiet", "--json", "-")
    assert answer.code == 0, answer.err
    assert "outside_bandits.least_played:LeastPlayed" in answer.out


def test_a_sweep_plays_it_on_processes_and_on_ray(call: Command, tmp_path: Path) -> None:
    pytest.importorskip("ray", reason="Ray is not installed")
    file = tmp_path / "outside.toml"
    file.write_text(EXPERIMENT, encoding="utf-8")
    played = {}
    for engine in ("inline", "process", "ray"):
        answer = call("sweep", file, "--engine", engine, "--workers", "1", "--out", tmp_path / engine, "--quiet")
        assert answer.code == 0, answer.err
        records = read_store(tmp_path / engine)
        played[engine] = {key: (record.seed, record.curve, record.successes) for key, record in records.items()}
    assert len(played["inline"]) == 2
    assert played["process"] == played["ray"] == played["inline"]


def test_workers_play_what_was_registered_at_run_time(call: Command) -> None:
    """Under another name than the entry point's: a worker finds it only because it was handed the registration."""
    assert call("version").code == 0  # the package is on the path
    least_played = importlib.import_module("outside_bandits.least_played")
    neuclust.register_policy("rarest", least_played.LeastPlayed, presets={"keen": least_played.LeastPlayedConfig(9.0)})
    tasks = neuclust.tasks(["rarest:keen"], "bump", seeds=range(2), rounds=5)
    records = list(neuclust.play(tasks, engine="processes", workers=1))
    assert [(record.policy, record.preset, record.rounds) for record in records] == [("rarest", "keen", 5)] * 2
