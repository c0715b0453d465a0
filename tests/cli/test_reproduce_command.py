"""`neuclust reproduce`: a whole page from a tiny problem, taken up where it was stopped."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import time
from dataclasses import replace
from pathlib import Path

import pytest
from command_line import NEUCLUST, Command, clean_environment
from patience import HANG_SECONDS

from neuclust.cli.reproduce_session import SearchJob, best_of
from neuclust.experiment.problem import Problem
from neuclust.experiment.reproduction.phases import STUDIES, open_study, quick_scale
from neuclust.experiment.reproduction.tuning import tuned_plans
from neuclust.experiment.store import done, read_store

TINY = ("--rounds", "12", "--runs", "2", "--seeds", "2", "--cluster-seeds", "1", "--clusters", "1,3,22")
FEW = ("--policy", "neuclust", "--policy", "cn-ucb", "--policy", "linucb", "--policy", "uniform")


def test_one_command_gives_page_tables_figures_and_summary(tmp_path: Path, problem: Path, call: Command) -> None:
    out = tmp_path / "out"
    command = ("reproduce", "movielens", "--data", problem, "--out", out, "--engine", "inline", *TINY, *FEW)
    answer = call(*command, "--quick")
    assert answer.code == 0, answer.err
    assert answer.out == f"{out / 'index.html'}\n"
    assert "\x1b" not in answer.err
    assert {"index.html", "summary.json", "table1.csv", "table1.md", "table1.tex", "figures", "records"} == {
        entry.name for entry in out.iterdir()
    }
    summary = json.loads((out / "summary.json").read_text())
    assert (summary["rounds"], summary["quick"], summary["twin"], summary["runs_missing"]) == (12, True, False, 0)
    assert {row["protocol"] for row in summary["rows"]} == {"paper", "readings", "ours", "clusters"}
    paper = {row["policy"]: row for row in summary["rows"] if row["protocol"] == "paper"}
    assert paper["neuclust"]["seeds"] == 2
    assert paper["neuclust"]["published_regret"] == 152
    assert paper["oracle"]["expected_regret_mean"] == 0.0
    page = (out / "index.html").read_text()
    assert "Played on small.npz" in page
    assert "quick: T = 12, 2 seeds" in page
    before = {file: file.stat().st_mtime_ns for file in (out / "records" / "runs").iterdir()}
    again = call(*command, "--quick")
    assert again.code == 0
    assert "0 to do" in again.err
    assert {file: file.stat().st_mtime_ns for file in (out / "records" / "runs").iterdir()} == before


def test_runs_that_fail_are_on_the_page_and_in_the_exit_code(tmp_path: Path, problem: Path, call: Command) -> None:
    """The authors' settings refuse clusters smaller than a slate, which 60 arms in 22 clusters must have."""
    options = ("--engine", "inline", "--quiet", *TINY, "--policy", "uniform", "--authors")
    answer = call("reproduce", "movielens", "--data", problem, "--out", tmp_path / "out", *options)
    assert answer.code == 1
    assert re.search(r"\b2 of \d+ runs failed", answer.err)
    page = (tmp_path / "out" / "index.html").read_text()
    assert "2 runs ended in an error" in page
    assert "expected every cluster to hold at least K = 5 arms" in page
    summary = json.loads((tmp_path / "out" / "summary.json").read_text())
    authors = {row["policy"] for row in summary["rows"] if row["protocol"] == "authors"}
    assert "cn-ucb" in authors
    assert "neuclust" not in authors


def test_searches_choose_settings_and_the_page_shows_them(tmp_path: Path, problem: Path, call: Command) -> None:
    out = tmp_path / "out"
    options = ("--engine", "inline", "--quiet", *TINY, "--policy", "linucb", "--policy", "uniform", "--tune", "2")
    answer = call("reproduce", "movielens", "--data", problem, "--out", out, *options)
    assert (answer.code, answer.err) == (0, "")
    summary = json.loads((out / "summary.json").read_text())
    (search,) = summary["searches"]
    assert (search["policy"], search["trials"], search["seeds"]) == ("linucb", 2, [1000, 1001, 1002])
    assert set(search["best"]) == {"alpha", "ridge"}
    (tuned,) = [row for row in summary["rows"] if row["protocol"] == "tuned"]
    assert (tuned["policy"], tuned["seeds"]) == ("linucb", 2)
    assert "with 2 trials each" in (out / "index.html").read_text()
    assert call("reproduce", "movielens", "--data", problem, "--out", out, *options).code == 0


@pytest.mark.soak  # sweeps, whose engine and store it uses, are interrupted in test_sweep_command
def test_ctrl_c_leaves_a_page_and_the_same_command_ends_as_if_undisturbed(
    tmp_path: Path, problem: Path, call: Command
) -> None:
    out = tmp_path / "out"
    command = ("reproduce", "movielens", "--data", str(problem), "--out", str(out), *TINY, *FEW)
    process = subprocess.Popen(
        [str(NEUCLUST), *command, "--rounds", "30", "--workers", "1"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=clean_environment(),
        start_new_session=True,
    )
    while process.poll() is None and len(done(out / "records")) < 3:
        time.sleep(0.01)
    os.killpg(process.pid, signal.SIGINT)
    answered, err = process.communicate(timeout=HANG_SECONDS)
    assert process.returncode == 130, err
    assert "Stopped by Ctrl-C" in err
    assert "Traceback" not in err
    assert answered == f"{out / 'index.html'}\n"
    assert "Not finished:" in (out / "index.html").read_text()
    kept = read_store(out / "records")
    assert call(*command, "--rounds", "30", "--engine", "inline", "--quiet").code == 0
    after = read_store(out / "records")
    assert {key: after[key] for key in kept} == kept
    assert len(after) > len(kept)
    assert "Not finished:" not in (out / "index.html").read_text()


def test_a_plan_is_printed_and_nothing_is_written(tmp_path: Path, problem: Path, call: Command) -> None:
    out = tmp_path / "out"
    answer = call("reproduce", "yelp", "--data", problem, "--out", out, "--plan", *TINY, *FEW, "--tune", "2")
    assert answer.code == 0
    lines = answer.out.splitlines()
    assert any(
        line.startswith("paper") and "neuclust:paper-yelp" in line and "2 runs of 12 rounds" in line for line in lines
    )
    assert any(line.startswith("tuned") and "linucb" in line for line in lines)
    assert "about" in answer.err
    assert not out.exists()


def test_what_cannot_be_reproduced_is_refused_in_a_sentence(tmp_path: Path, problem: Path, call: Command) -> None:
    unknown = call("reproduce", "netflix", "--out", tmp_path / "out")
    assert (unknown.code, unknown.out) == (2, "")
    assert "expected one of movielens, yelp, got 'netflix'" in unknown.err
    wrong = call("reproduce", "movielens", "--clusters", "3,none", "--out", tmp_path / "out")
    assert "expected whole numbers such as 1,10,22, got '3,none'" in wrong.err
    many = call("reproduce", "movielens", "--data", problem, "--clusters", "61", "--out", tmp_path / "out")
    assert "at most as many clusters as the 60 arms, got 61" in many.err
    assert not (tmp_path / "out").exists()


def test_searches_in_processes_choose_what_searches_here_choose(tmp_path: Path, problem: Path) -> None:
    scale = replace(quick_scale(STUDIES["movielens"]), rounds=20)
    layout = open_study(STUDIES["movielens"], Problem(data=problem), scale)
    plans = tuned_plans(layout, 3, ("linucb", "cucb"))

    def jobs(place: str) -> list[SearchJob]:
        return [SearchJob(plan, tmp_path / f"{place}-{plan.policy}") for plan in plans]

    here = best_of(jobs("here"), 1, lambda: False, quiet=True)
    apart = best_of(jobs("apart"), 2, lambda: False, quiet=True)
    assert apart == here
    assert [set(best or {}) for best in here] == [{"alpha", "ridge"}, {"bonus"}]
    assert best_of(jobs("stopped"), 1, lambda: True, quiet=True) == [None, None]
