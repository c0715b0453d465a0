"""How the command behaves among others: pipes, colours, Ctrl-C, quick help."""

from __future__ import annotations

import json
import os
import pty
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from command_line import NEUCLUST, Command, clean_environment
from patience import HANG_SECONDS

from neuclust import __version__
from neuclust.cli.interrupt import SAME_PRESS_SECONDS, patient_interrupt
from neuclust.experiment.records import read_runs

ESCAPE = "\x1b"
HEAVY = ("torch", "matplotlib", "sklearn", "polars", "scipy", "numpy")


@pytest.mark.parametrize("arguments", [["--help"], ["run", "--help"], ["data", "--help"], ["version"]])
def test_help_loads_nothing_heavy(arguments: list[str]) -> None:
    program = (
        "import sys\nfrom neuclust.cli import main\ntry: main()\n"
        f"finally: print([name for name in {HEAVY} if name in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments], capture_output=True, text=True, env=clean_environment()
    )
    assert done.returncode == 0
    assert "neuclust" in done.stdout
    assert done.stderr == "[]\n"


def test_version_and_module(command: Command) -> None:
    done = subprocess.run([sys.executable, "-m", "neuclust", "--version"], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, f"neuclust {__version__}\n")
    assert command("version").out == f"neuclust {__version__}\n"


def test_lists_name_every_policy_and_problem(call: Command) -> None:
    policies, problems = call("policies"), call("envs")
    assert policies.code == problems.code == 0
    for name in ("uniform", "oracle", "linucb", "cn-ucb", "neuclust", "neuclust-online"):
        assert re.search(rf"^ {name} +\w", policies.out, re.MULTILINE)
    assert "paper-literal" in policies.out
    for name in ("movielens-twin", "cold-start", "clusters", "bump", "quadratic"):
        assert re.search(rf"^ {name} +\w", problems.out, re.MULTILINE)


def on_a_terminal(arguments: list[str], environment: dict[str, str]) -> str:
    """What a terminal would receive on stdout and stderr."""
    parent, child = pty.openpty()
    with subprocess.Popen([str(NEUCLUST), *arguments], stdout=child, stderr=child, env=environment) as process:
        os.close(child)
        received = b""
        while True:
            try:
                piece = os.read(parent, 65536)
            except OSError:  # the other end is closed
                break
            if not piece:
                break
            received += piece
        assert process.wait(HANG_SECONDS) == 0
    os.close(parent)
    return received.decode()


def test_pipes_get_plain_text(command: Command, problem: Path) -> None:
    answer = command("run", "--data", problem, "--policy", "uniform", "--policy", "linucb", "--rounds", 10)
    assert answer.code == 0
    assert ESCAPE not in answer.out + answer.err
    rewards, first, _ = answer.err.splitlines()
    assert rewards == "rewards: simulated from the profiles (the paper's model, tanh(s/4)), not from the file"
    assert first.startswith("uniform, seed 0: 10 rounds in ")
    assert "linucb" in answer.out


def test_terminals_get_colour_and_progress_unless_told_otherwise(problem: Path) -> None:
    order = ["run", "--data", str(problem), "--policy", "linucb", "--policy", "uniform", "--rounds", "300"]
    size = {"COLUMNS": "160", "LINES": "40"}
    coloured = on_a_terminal(order, clean_environment(**size))
    assert f"{ESCAPE}[1m" in coloured  # the best row is bold
    assert re.search(r"1/2 linucb, seed 0.*round \d+/300.*regret [\d.]+, reward \d+, \d+ rounds/s.* left", coloured)
    plain = on_a_terminal(order, clean_environment(**size, NO_COLOR="1"))
    assert not re.search(rf"{ESCAPE}\[[\d;]*m", plain)
    assert "linucb, seed 0: 300 rounds" in plain


def test_a_closed_pipe_is_no_drama(problem: Path) -> None:
    order = f"'{NEUCLUST}' run --data '{problem}' --policy uniform --json - -q | head -c 1"
    done = subprocess.run(["bash", "-c", order], capture_output=True, text=True, env=clean_environment())
    assert (done.stdout, done.stderr) == ("{", "")


def test_a_terminal_without_the_letters_still_gets_the_table(command: Command, problem: Path) -> None:
    order = ["run", "--data", problem, "--policy", "uniform", "--rounds", 5, "--seeds", 2]
    answer = command(*order, env={"PYTHONIOENCODING": "ascii"})
    assert answer.code == 0
    assert "uniform" in answer.out


def test_ctrl_c_keeps_what_is_finished_and_what_was_played(tmp_path: Path) -> None:
    order = ["run", "--env", "bump", "--policy", "uniform", "--policy", "linucb", "--rounds", 3000, "--out", tmp_path]
    process = subprocess.Popen(
        [str(NEUCLUST), *map(str, order)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=clean_environment(),
    )
    deadline = time.monotonic() + HANG_SECONDS
    while not (tmp_path / "runs.json").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert len(read_runs(tmp_path / "runs.json")) == 1  # whole, should the process be killed now
    time.sleep(0.3)  # the second run is under way
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=HANG_SECONDS)
    assert process.returncode == 130
    whole, cut = read_runs(tmp_path / "runs.json")
    assert (whole.policy, whole.interrupted, whole.rounds) == ("uniform", False, 3000)
    assert (cut.policy, cut.interrupted, cut.rounds_asked) == ("linucb", True, 3000)
    assert 0 < cut.rounds < 3000
    assert cut.curve[-1] == (cut.rounds, cut.expected_regret)
    assert json.loads((tmp_path / "runs.json").read_text())["runs"][1]["interrupted"] is True
    assert f"Stopped by Ctrl-C: 1 finished run and {cut.rounds} rounds of linucb, seed 0, are in" in err
    assert "Traceback" not in err
    assert (tmp_path / "regret.png").stat().st_size > 0
    assert f"linucb (seed 0) stopped after round {cut.rounds} of 3000" in out


def test_one_press_passed_on_twice_is_one_press(monkeypatch: pytest.MonkeyPatch) -> None:
    before = signal.getsignal(signal.SIGINT)  # a background job of a script starts with Ctrl-C ignored
    said: list[str] = []
    now = [100.0]
    monkeypatch.setattr("neuclust.cli.interrupt.monotonic", lambda: now[0])
    with patient_interrupt(lambda: said.append("asked")) as stopped:
        assert not stopped()
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)
        assert stopped()
        assert said == ["asked"]
        now[0] += SAME_PRESS_SECONDS + 0.1
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is before
