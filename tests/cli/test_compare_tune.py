"""`neuclust compare` and `neuclust tune` as people and programs meet them."""

from __future__ import annotations

import csv
import json
import shlex
import signal
import subprocess
import time
from pathlib import Path

import pytest
from command_line import NEUCLUST, Answer, Command, clean_environment, completed
from patience import HANG_SECONDS

from neuclust.experiment.records import read_runs
from neuclust.experiment.store import open_store, read_store, write_run

SHORT = ["--rounds", 20, "--tune-seeds", "100..102", "--report-seeds", "0..5", "-q"]


@pytest.fixture(scope="module")
def runs(problem: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of 6 seeds of three policies."""
    out = tmp_path_factory.mktemp("runs") / "out"
    order = ["run", "--data", problem, "--rounds", 20, "--seeds", 6, "--json", out / "runs.json", "-q"]
    names = ["--policy", "linucb", "--policy", "uniform", "--policy", "oracle"]
    out.mkdir()
    completed(*order, *names, clean=True).check_returncode()
    return out


def test_compare_prints_differences_and_says_how_they_were_tested(call: Command, runs: Path) -> None:
    answer = call("compare", runs)
    assert answer.code == 0
    lines = answer.out.splitlines()
    row = next(line.split() for line in lines if line.split()[:2] == ["uniform", "linucb"])
    assert row[2] == "6"
    assert row[-4:] == ["0.0312", "0.0312", "more", "regret"]
    assert "two-sided Wilcoxon signed-rank test" in answer.out
    assert "they know the truth: oracle" in answer.out


def test_compare_reads_a_store_a_folder_and_a_file_alike(call: Command, runs: Path, tmp_path: Path) -> None:
    open_store(tmp_path / "store", make=True)
    for place, record in enumerate(read_runs(runs / "runs.json")):
        write_run(tmp_path / "store", f"k{place}", record)
    answers = [call("compare", source, "--json", "-") for source in (runs, runs / "runs.json", tmp_path / "store")]
    assert {answer.code for answer in answers} == {0}
    documents = [json.loads(answer.out) for answer in answers]
    assert documents[0] == documents[1] == documents[2]
    assert documents[0]["problems"][0]["differences"][0]["seeds"] == [0, 1, 2, 3, 4, 5]


def test_compare_writes_files_and_takes_a_baseline(call: Command, runs: Path, tmp_path: Path) -> None:
    files = ["--csv", tmp_path / "c.csv", "--json", tmp_path / "c.json"]
    answer = call("compare", runs, "--baseline", "uniform", "--confidence", 0.9, *files)
    assert answer.code == 0
    (row,) = csv.DictReader((tmp_path / "c.csv").open())
    assert (row["policy"], row["against"], row["confidence"], row["verdict"]) == (
        "linucb",
        "uniform",
        "0.9",
        "less regret",
    )
    assert json.loads((tmp_path / "c.json").read_text())["problems"][0]["confidence"] == 0.9


@pytest.mark.parametrize(
    ("more", "code", "message"),
    [
        (["--baseline", "nobody"], 2, "--baseline: expected one of linucb, oracle, uniform, got 'nobody'"),
        (["--confidence", "2"], 2, "--confidence: expected a number from 0.5"),
        (
            ["--csv", "no/such/folder/c.csv"],
            2,
            "--csv: expected a place that can be written, got no/such/folder/c.csv (the folder no ",
        ),
    ],
)
def test_compare_refuses_what_cannot_work(call: Command, runs: Path, more: list[str], code: int, message: str) -> None:
    answer = call("compare", runs, *more)
    assert (answer.code, answer.out) == (code, "")
    assert message in answer.err


def test_compare_refuses_folders_without_records(call: Command, tmp_path: Path) -> None:
    answer = call("compare", tmp_path)
    assert (answer.code, answer.out) == (65, "")
    assert "expected a folder of records (store.json or runs.json inside)" in answer.err
    assert call("compare", tmp_path / "nothing").code == 65


def tune(call: Command, problem: Path, *more: str | Path | int) -> Answer:
    return call("tune", "--data", problem, "--policy", "linucb", *SHORT, *more)


def test_tune_prints_trials_budget_report_and_a_command_that_runs(call: Command, problem: Path, tmp_path: Path) -> None:
    answer = tune(call, problem, "--grid", "paper", "--trials", 4)
    assert (answer.code, answer.err) == (0, "")
    assert "Budget: 4 trials on 3 seeds of 20 rounds (every setting of the grid); spent: 3 trials" in answer.out
    assert "tuned on rounds 21 to 40, reported on rounds 1 to 20" in answer.out
    assert "on 6 fresh seeds" in answer.out
    command = next(line for line in answer.out.splitlines() if line.startswith("To run the best setting: "))
    words = shlex.split(command.partition(": ")[2])
    assert words[0] == "neuclust"
    again = call(*words[1:], "--json", "-", "-q")
    regrets = [run["expected_regret"] for run in json.loads(again.out)["runs"]]
    assert len(regrets) == 6
    mean = sum(regrets) / 6
    assert f"{mean:.2f}" in answer.out  # what the report says of it


def test_tune_as_json(call: Command, problem: Path, tmp_path: Path) -> None:
    answer = tune(call, problem, "--param", "alpha=0.1,10", "--json", "-", "--out", tmp_path)
    assert (answer.code, answer.err) == (0, "")
    document = json.loads(answer.out)
    assert json.loads((tmp_path / "tune.json").read_text()) == document
    assert [document[key] for key in ("schema", "policy", "preset", "env")] == [1, "linucb", "default", "small"]
    assert [trial["settings"] for trial in document["trials"]] == [{"alpha": "0.1"}, {"alpha": "10"}]
    assert all(trial.keys() >= {"settings", "regret", "seeds", "state"} for trial in document["trials"])
    assert document["best"] == min(document["trials"], key=lambda trial: trial["regret"])["settings"]
    assert document["budget"]["trials_tried"] == 2
    (difference,) = document["report"]["differences"]
    assert (difference["against"], difference["seeds"]) == ("linucb", [0, 1, 2, 3, 4, 5])
    assert f"alpha={document['best']['alpha']}" in document["command"]
    kept = call("compare", tmp_path / "report", "--baseline", "linucb", "--json", "-")
    assert json.loads(kept.out)["problems"][0] == document["report"]


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--grid", "paper", "--report-seeds", "102..110"], "got 102 in both"),
        (["--grid", "paper", "--env", "bump"], "got both; drop one of them"),
        (["--grid", "paper", "--rounds", "200"], "expected at most 150 rounds, half of the 300"),
        (["--param", "nonsense=1,2"], "--param nonsense: no such setting"),
        (["--param", "alpha=1,2", "--tune-seeds", "x"], "--tune-seeds: expected seeds such as 0..9"),
        (["--policy", "uniform"], "cn-ucb, linucb, linucb-disjoint but not uniform; add KEY=V1,V2"),
    ],
)
def test_tune_refuses_what_cannot_work(call: Command, problem: Path, more: list[str], message: str) -> None:
    answer = tune(call, problem, *more)
    assert (answer.code, answer.out) == (2, "")
    assert message in answer.err


def test_ctrl_c_keeps_trials_and_the_same_command_goes_on(tmp_path: Path) -> None:
    space = ["--param", "alpha=0.1,1,10", "--tune-seeds", "100..102", "--report-seeds", "0,1"]
    order = ["tune", "--env", "bump", "--rounds", 150, "--policy", "linucb", *space, "--out", tmp_path / "t"]
    words = [str(NEUCLUST), *map(str, order)]
    pipe = subprocess.PIPE
    process = subprocess.Popen(words, stdout=pipe, stderr=pipe, text=True, env=clean_environment())
    deadline = time.monotonic() + HANG_SECONDS
    while len(list((tmp_path / "t" / "tuning" / "runs").glob("*.parquet"))) < 2 and time.monotonic() < deadline:
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=HANG_SECONDS)
    assert process.returncode == 130
    assert "Stopped by Ctrl-C" in err
    assert "the same command goes on from there" in err
    assert "Traceback" not in err
    kept = set(read_store(tmp_path / "t" / "tuning"))
    assert len(kept) >= 2
    document = json.loads((tmp_path / "t" / "tune.json").read_text())
    assert (document["stopped"], document["report"]) == (True, None)
    done = subprocess.run(words, capture_output=True, text=True, env=clean_environment(), timeout=HANG_SECONDS)
    assert done.returncode == 0
    document = json.loads((tmp_path / "t" / "tune.json").read_text())
    assert (document["stopped"], len(document["trials"])) == (False, 3)
    assert kept <= set(read_store(tmp_path / "t" / "tuning"))
    played_again = done.stderr.count(", seed 10")
    assert played_again == sum(trial["seeds"] for trial in document["trials"]) - len(kept)


@pytest.mark.parametrize("name", ["compare", "tune"])
def test_help_is_quick_and_complete(command: Command, name: str) -> None:
    answer = command(name, "--help", env={"COLUMNS": "160"})
    assert answer.code == 0
    wanted = {"compare": ["--baseline", "--confidence", "--csv"], "tune": ["--param", "--grid", "--trials"]}
    assert [option for option in wanted[name] if option not in answer.out] == []
