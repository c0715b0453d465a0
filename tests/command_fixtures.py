"""A small problem on disk and two ways to give the command: in this process, and as a real one."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from command_line import TERMINAL_VARIABLES, Answer, Command, completed
from datasets import dataset_of

from neuclust.cli import main
from neuclust.randomness import stream


@pytest.fixture(scope="session")
def problem(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """60 arms with 6 features and 300 rounds, in the manner of ratings."""
    generator = stream(0, "cli problem")
    arms = generator.uniform(0.5, 5.0, (60, 6)) * (generator.random((60, 6)) > 0.15)
    rounds = generator.random((300, 6)) > 0.5
    rounds[:, 0] |= ~rounds.any(1)
    path = tmp_path_factory.mktemp("problem") / "small.npz"
    dataset_of("small", arms, rounds).save(path)
    return path


@pytest.fixture
def command() -> Command:
    """A real process of the installed command, whose imports are done where nothing that they read is changed."""

    def give(*arguments: str | Path, env: dict[str, str] | None = None) -> Answer:
        done = completed(*arguments, env=env, clean=True)
        return Answer(done.returncode, done.stdout, done.stderr)

    return give


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Command:
    """The same entry point in this process, which has torch loaded already: many cases cost little."""

    def give(*arguments: str | Path, env: dict[str, str] | None = None) -> Answer:
        monkeypatch.setattr(sys, "argv", ["neuclust", *map(str, arguments)])
        for name in TERMINAL_VARIABLES:  # a test runner may set some of them for its workers
            monkeypatch.delenv(name, raising=False)
        for name, value in (env or {}).items():
            monkeypatch.setenv(name, value)
        with pytest.raises(SystemExit) as left:
            main()
        out, err = capsys.readouterr()
        return Answer(int(left.value.code or 0), out, err)

    return give
