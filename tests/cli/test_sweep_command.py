"""`neuclust sweep`: killed, interrupted, out of disk or twice at once, nothing is lost and nothing is there twice."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from io import StringIO
from pathlib import Path

import numpy as np
import pytest
from command_line import NEUCLUST, Command, clean_environment
from patience import HANG_SECONDS
from rich.console import Console

from neuclust.cli.views import LiveView
from neuclust.experiment.engines.engine import play_inline
from neuclust.experiment.records import RunRecord
from neuclust.experiment.spec import read_spec
from neuclust.experiment.store import done, read_store
from neuclust.experiment.sweep import Standing, locked
from neuclust.experiment.tasks import tasks_of
from neuclust.randomness import stream

HEAD = 'name = "small"\nrounds = {rounds}\nseeds = {seeds}\n[[environment]]\ndata = "{data}"\n'
POLICIES = ("uniform", "linucb", "cn-ucb", "oracle")


def experiment(folder: Path, problem: Path, seeds: int = 1, rounds: int = 20, more: str = "") -> Path:
    """Four policies on the small problem: 4 · seeds runs."""
    file = folder / "small.toml"
    policies = "".join(f'[[policy]]\npolicy = "{policy}"\n' for policy in POLICIES)
    file.write_text(HEAD.format(seeds=seeds, rounds=rounds, data=problem) + policies + more)
    return file


def timeless(folder: Path) -> dict[str, RunRecord]:
    return {
        key: replace(record, seconds=0.0, select_seconds=0.0, update_seconds=0.0)
        for key, record in read_store(folder).items()
    }


def start(file: Path, out: Path, *more: str) -> subprocess.Popen[str]:
    """A real sweep at the head of a process group of its own, as a shell starts it."""
    return subprocess.Popen(
        [str(NEUCLUST), "sweep", str(file), "--out", str(out), *more],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=clean_environment(),
        start_new_session=True,
    )


def wait_for_records(process: subprocess.Popen[str], out: Path, wanted: int) -> None:
    while process.poll() is None and len(done(out)) < wanted:
        time.sleep(0.002)


def kill_at_random(file: Path, out: Path, moment: np.random.Generator, ahead: int) -> int:
    """SIGKILL the whole group: while it starts, or some records later, in the middle of whatever it does then."""
    process = start(file, out, "--workers", "2", "--quiet")
    more = int(moment.integers(0, ahead))
    if more == 0:
        time.sleep(moment.uniform(0.0, 3.0))
    else:
        wait_for_records(process, out, len(done(out)) + more)
        time.sleep(moment.uniform(0.0, 0.05))
    killed = process.poll() is None
    if killed:
        os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    return int(killed)


def check_kills(file: Path, folder: Path, call: Command, runs: int, kills: int, ahead: int) -> None:
    killed, undisturbed = folder / "killed", folder / "undisturbed"
    moment = stream(0, "kills")
    landed = sum(kill_at_random(file, killed, moment, ahead) for _ in range(kills))
    assert landed == kills
    assert len(done(killed)) < runs
    assert call("sweep", file, "--out", killed, "--engine", "inline", "--quiet").code == 0
    assert call("sweep", file, "--out", undisturbed, "--engine", "inline", "--quiet").code == 0
    assert len(read_store(killed)) == runs
    assert timeless(killed) == timeless(undisturbed)
    assert not [*killed.rglob("*.scratch"), *(killed / "failures").glob("*")]


def test_a_sweep_killed_at_random_moments_ends_as_if_undisturbed(tmp_path: Path, problem: Path, call: Command) -> None:
    check_kills(experiment(tmp_path, problem, seeds=5), tmp_path, call, runs=20, kills=3, ahead=6)


@pytest.mark.soak
def test_two_hundred_runs_killed_at_twenty_moments(
    tmp_path: Path, problem: Path, call: Command, report_counts: Callable[..., None]
) -> None:
    check_kills(experiment(tmp_path, problem, seeds=50), tmp_path, call, runs=200, kills=20, ahead=12)
    report_counts("sweeps killed", kills=20, runs=200, lost=0, played_twice=0)


def test_workers_do_not_outlive_a_sweep_that_alone_was_killed(tmp_path: Path, problem: Path) -> None:
    process = start(experiment(tmp_path, problem, seeds=100, rounds=300), tmp_path / "out", "--workers", "2")
    wait_for_records(process, tmp_path / "out", 1)
    os.kill(process.pid, signal.SIGKILL)
    process.communicate(timeout=HANG_SECONDS)  # ends when the last holder of the pipes has ended
    with locked(tmp_path / "out"):
        assert 1 <= len(read_store(tmp_path / "out")) < 400


def test_ctrl_c_keeps_what_is_done_and_the_same_command_takes_up_the_rest(
    tmp_path: Path, problem: Path, call: Command
) -> None:
    file, out = experiment(tmp_path, problem, seeds=8, rounds=100), tmp_path / "out"
    process = start(file, out, "--workers", "2")
    wait_for_records(process, out, 2)
    os.killpg(process.pid, signal.SIGINT)
    _, err = process.communicate(timeout=HANG_SECONDS)
    kept = read_store(out)
    assert process.returncode == 130
    assert f"Stopped by Ctrl-C: {len(kept)} of 32 runs are in {out}" in err
    assert "Traceback" not in err
    assert 2 <= len(kept) < 32
    answer = call("sweep", file, "--out", out, "--engine", "inline")
    assert answer.code == 0
    assert f"32 runs: {len(kept)} done, {32 - len(kept)} to do" in answer.err
    after = read_store(out)
    assert len(after) == 32
    assert {key: after[key] for key in kept} == kept


@pytest.mark.soak  # engines are compared in tests/experiment/engines; this is the same through the command
def test_processes_and_ray_give_the_records_of_one_process(
    tmp_path: Path, problem: Path, call: Command, command: Command
) -> None:
    pytest.importorskip("ray", reason="Ray is not installed")
    clustered = '[[policy]]\npolicy = "neuclust"\nclusters = 3\n'
    file = experiment(tmp_path, problem, seeds=2, more=clustered)
    for give, engine, workers in ((call, "inline", 1), (command, "process", 2), (command, "ray", 2)):
        answer = give("sweep", file, "--out", tmp_path / engine, "--engine", engine, "--workers", workers, "--quiet")
        assert (answer.code, answer.err, answer.out) == (0, "", "")
    serial = timeless(tmp_path / "inline")
    assert len(serial) == 10
    assert timeless(tmp_path / "process") == serial
    assert timeless(tmp_path / "ray") == serial


def test_lines_tables_and_the_default_folder(
    tmp_path: Path, problem: Path, call: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    file = experiment(tmp_path, problem)
    planned = call("sweep", file, "--dry-run")
    assert planned.code == 0
    assert len(planned.out.splitlines()) == 4
    assert "results/small: 4 runs: 0 done, 4 to do." in planned.err
    assert not Path("results").exists()
    answer = call("sweep", file, "--engine", "inline")
    assert answer.code == 0
    assert "1/4 uniform on small, seed 0: 20 rounds in" in answer.err
    assert "All 4 runs are in results/small." in answer.err
    assert "oracle" in answer.out
    assert "\x1b" not in answer.err + answer.out
    assert done(Path("results/small")) == {line.split()[0] for line in planned.out.splitlines()}
    assert call("sweep", file, "--dry-run").out == ""
    file.write_text(file.read_text().replace("rounds = 20", "rounds = 21"))
    assert "4 runs: 0 done, 4 to do. 4 further records are of other settings" in call("sweep", file, "--dry-run").err


def test_failed_runs_are_counted_and_do_not_stop_the_others(tmp_path: Path, problem: Path, call: Command) -> None:
    broken = '[[policy]]\npolicy = "neuclust"\nclusters = 30\nsettings = { "clustering.small" = "error" }\n'
    file, out = experiment(tmp_path, problem, more=broken), tmp_path / "out"
    answer = call("sweep", file, "--out", out, "--engine", "inline")
    assert answer.code == 1
    assert "FAILED" in answer.err
    assert f"1 of 5 runs failed: {out / 'failures'} says why; --retry-failed" in answer.err
    assert len(done(out)) == 4
    again = call("sweep", file, "--out", out, "--engine", "inline")
    assert again.code == 1
    assert "FAILED" not in again.err
    assert "1 failed earlier and are left alone" in again.err
    retried = call("sweep", file, "--out", out, "--engine", "inline", "--retry-failed", "--quiet")
    assert (retried.code, "FAILED" in retried.err) == (1, True)


def test_a_damaged_record_is_said_even_when_quiet_and_played_again(
    tmp_path: Path, problem: Path, call: Command
) -> None:
    file, out = experiment(tmp_path, problem), tmp_path / "out"
    call("sweep", file, "--out", out, "--engine", "inline", "--quiet")
    clean = timeless(out)
    bad = sorted((out / "runs").iterdir())[1]
    bad.write_bytes(bad.read_bytes()[:500])
    for words in (("compare", out), ("report", out, "--out", tmp_path / "report")):
        told = call(*words)
        assert told.code == 0
        assert f"neuclust: {bad}: expected a record of one run, got a file cut short" in told.err
        assert "it is left out" in told.err
    planned = call("sweep", file, "--out", out, "--dry-run")
    assert f"{bad}: expected a record of one run" in planned.err
    assert [line.split()[0] for line in planned.out.splitlines()] == [bad.stem]
    answer = call("sweep", file, "--out", out, "--engine", "inline", "--quiet")
    assert (answer.code, answer.out) == (0, "")
    assert f"its files are now in {out / 'bad'} and the run is played again" in answer.err
    assert timeless(out) == clean
    assert call("sweep", file, "--out", out, "--engine", "inline", "--quiet") == (0, "", "")


def test_a_folder_in_use_is_left_to_its_owner(tmp_path: Path, problem: Path, call: Command) -> None:
    file, out = experiment(tmp_path, problem), tmp_path / "out"
    call("sweep", file, "--out", out, "--engine", "inline")
    with locked(out):
        answer = call("sweep", file, "--out", out)
    assert answer.code == 2
    assert f"another sweep (process {os.getpid()}) does" in answer.err


def test_mistakes_are_said_before_anything_is_written(tmp_path: Path, problem: Path, call: Command) -> None:
    file, out = experiment(tmp_path, problem), tmp_path / "out"
    good = file.read_text()
    for text, words in (
        (good.replace("rounds = 20", "rounds = = 20"), f"{file}:2: expected TOML"),
        (good.replace('"linucb"', '"linucbb"'), f"{file}:9: policy: no policy 'linucbb'; did you mean linucb"),
    ):
        file.write_text(text)
        answer = call("sweep", file, "--out", out)
        assert answer.code == 2
        assert words in answer.err
        assert not out.exists()
    assert "expected one of processes, inline, ray, device" in call("sweep", file, "--engine", "cloud").err


def test_records_of_another_version_and_other_files_are_left_alone(
    tmp_path: Path, problem: Path, call: Command
) -> None:
    file, out = experiment(tmp_path, problem), tmp_path / "out"
    out.mkdir()
    for name, text, words in (("store.json", '{"format": 0}', "format 1, got 0"), ("a.txt", "x", "found other files")):
        (out / name).write_text(text)
        answer = call("sweep", file, "--out", out)
        assert answer.code == 65
        assert words in answer.err
        assert {entry.name: entry.read_text() for entry in out.iterdir()} == {name: text}
        (out / name).unlink()


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 64 kB, where one may be mounted."""
    disk = tmp_path / "disk"
    disk.mkdir()
    made = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", disk], capture_output=True)
    if made.returncode:
        pytest.skip("no disk may be mounted here")
    try:
        yield disk
    finally:
        subprocess.run(["umount", "--lazy", disk], check=True)


def test_a_full_disk_is_said_and_more_room_is_enough(
    tmp_path: Path, small_disk: Path, problem: Path, call: Command
) -> None:
    file, out = experiment(tmp_path, problem, seeds=3), small_disk / "out"
    answer = call("sweep", file, "--out", out, "--engine", "inline", "--quiet")
    assert answer.code == 65
    assert "could not write it (no room is left on its disk); make room" in answer.err
    kept = read_store(out)
    assert 0 < len(kept) < 12
    subprocess.run(["mount", "-o", "remount,size=4m", small_disk], check=True)
    assert call("sweep", file, "--out", out, "--engine", "inline", "--quiet").code == 0
    after = read_store(out)
    assert len(after) == 12
    assert {key: after[key] for key in kept} == kept


def test_a_record_that_may_not_be_written_is_no_record(tmp_path: Path, problem: Path) -> None:
    file, out = experiment(tmp_path, problem), tmp_path / "out"
    order = f"ulimit -f 1; exec {NEUCLUST} sweep {file} --out {out} --engine inline"
    done_ = subprocess.run(
        ["bash", "-c", order], capture_output=True, text=True, env=clean_environment(), timeout=HANG_SECONDS
    )
    assert done_.returncode == 65
    assert "could not write it (the file would be too large for it)" in done_.stderr
    assert read_store(out) == {}
    assert not list(out.rglob("*.scratch"))


def test_the_live_table_shows_runs_under_way_and_the_whole(tmp_path: Path, problem: Path) -> None:
    tasks = tasks_of(read_spec(experiment(tmp_path, problem)))
    screen = StringIO()
    console = Console(file=screen, force_terminal=True, highlight=False, width=160)
    view = LiveView(console, lambda: False)
    view.begin(Standing((), (), tasks, tmp_path), tasks)
    for outcome in play_inline(tasks, view):
        view._rows.refresh()
        view.ended(outcome)
    view.close()
    shown = screen.getvalue()
    assert "0 of 4 runs" in shown
    assert "20/20" in shown
    assert "4/4 oracle on small, seed 0: 20 rounds in" in shown
