"""`neuclust run`: the contract people build on."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from command_line import Command, clean_environment

from neuclust import __version__
from neuclust.experiment.records import read_runs

CONTRACT = {
    "policy", "preset", "env", "seed", "rounds", "expected_regret", "clipped_regret", "expected_clipped_regret",
    "clipped_floor", "successes", "best_expected", "seconds", "select_seconds", "update_seconds", "curve",
}  # fmt: skip
TIMINGS = {"seconds", "select_seconds", "update_seconds"}


def without_timings(document: str) -> list[dict[str, Any]]:
    return [{key: run[key] for key in run if key not in TIMINGS} for run in json.loads(document)["runs"]]


def test_json_on_stdout_is_alone_there_and_keeps_the_contract(command: Command, problem: Path) -> None:
    answer = command("run", "--data", problem, "--policy", "neuclust", "--clusters", 2, "--rounds", 30, "--json", "-")
    assert answer.code == 0
    document = json.loads(answer.out)
    assert document["schema"] == 1
    (run,) = document["runs"]
    assert run.keys() >= CONTRACT | {"realised_regret", "mean_gap", "expected_reward", "settings", "slate_size"}
    assert (run["policy"], run["preset"], run["env"], run["seed"]) == ("neuclust", "default", "small", 0)
    assert (run["rounds"], run["slate_size"], run["version"]) == (30, 5, __version__)
    assert run["curve"][-1] == [30, run["expected_regret"]]
    assert run["expected_reward"] + run["expected_regret"] == pytest.approx(run["best_expected"])
    assert run["expected_clipped_regret"] >= run["clipped_floor"] > 0
    assert answer.err.count("\n") == 2  # whose rewards, and the run
    assert "neuclust, seed 0: 30 rounds" in answer.err


def test_the_same_command_twice_gives_the_same_numbers(command: Command, problem: Path) -> None:
    order = ["run", "--data", problem, "--policy", "neuclust", "--policy", "cn-ucb", "--clusters", 2]
    first, second = (command(*order, "--rounds", 12, "--json", "-") for _ in range(2))
    assert without_timings(first.out) == without_timings(second.out)
    assert len(without_timings(first.out)) == 2


def test_policies_meet_on_the_same_seeds(call: Command, problem: Path) -> None:
    order = ["run", "--data", problem, "--policy", "uniform", "--policy", "oracle", "--seeds", 2, "--first-seed", 7]
    runs = json.loads(call(*order, "--rounds", 25, "--json", "-").out)["runs"]
    assert [(run["seed"], run["policy"]) for run in runs] == [
        (7, "uniform"),
        (7, "oracle"),
        (8, "uniform"),
        (8, "oracle"),
    ]
    by_name = {(run["policy"], run["seed"]): run for run in runs}
    assert by_name["oracle", 7]["expected_regret"] == 0.0 < by_name["uniform", 7]["expected_regret"]
    assert by_name["oracle", 7]["best_expected"] == by_name["uniform", 7]["best_expected"]
    assert by_name["uniform", 7]["successes"] != by_name["uniform", 8]["successes"]


def test_presets_and_settings_reach_the_policy_and_the_record(call: Command, problem: Path) -> None:
    order = ["run", "--data", problem, "--rounds", 15, "--json", "-"]
    many = ["--policy", "cn-ucb:paper", "--policy", "linucb", "--set", "linucb.alpha=0.0"]
    runs = json.loads(call(*order, *many).out)["runs"]
    assert [(run["policy"], run["preset"], run["settings"]) for run in runs] == [
        ("cn-ucb", "paper", {}),
        ("linucb", "default", {"alpha": "0.0"}),
    ]
    plain = json.loads(call(*order, "--policy", "linucb").out)["runs"][0]
    assert plain["expected_regret"] != runs[1]["expected_regret"]


def test_problem_options_reach_the_environment_and_the_record(call: Command, problem: Path) -> None:
    order = ["run", "--data", problem, "--policy", "oracle", "--rounds", 20, "--json", "-"]
    plain = json.loads(call(*order).out)["runs"][0]
    mean = json.loads(call(*order, "--slate-reward", "mean").out)["runs"][0]
    fewer = json.loads(call(*order, "--arms-per-round", 8, "--slate-size", 3).out)["runs"][0]
    assert plain["problem"] == {"slate_reward": None, "arms_per_round": None, "start_ratings": None}
    assert mean["problem"]["slate_reward"] == "mean"
    assert mean["best_expected"] != plain["best_expected"]
    assert fewer["slate_size"] == 3
    assert fewer["best_expected"] < plain["best_expected"]
    cold = json.loads(call(*order[:4], "neuclust-online", *order[5:], "--clusters", 2, "--start-ratings", 3).out)
    assert cold["runs"][0]["problem"]["start_ratings"] == 3


def test_built_in_problems_run(call: Command) -> None:
    (run,) = json.loads(call("run", "--env", "clusters", "--policy", "linucb", "--rounds", 10, "--json", "-").out)[
        "runs"
    ]
    assert run["env"] == "clusters"


def test_rounds_default_to_all_of_a_short_file(call: Command, problem: Path) -> None:
    assert (
        json.loads(call("run", "--data", problem, "--policy", "uniform", "--json", "-").out)["runs"][0]["rounds"] == 300
    )


def test_out_holds_records_tables_and_pictures(call: Command, problem: Path, tmp_path: Path) -> None:
    order = [
        "run",
        "--data",
        problem,
        "--policy",
        "uniform",
        "--policy",
        "linucb",
        "--rounds",
        20,
        "--out",
        tmp_path / "a/b",
    ]
    answer = call(*order)
    names = {f"{name}.{ending}" for name in ("regret", "reward", "clipped") for ending in ("png", "svg")}
    assert {path.name for path in (tmp_path / "a/b").iterdir()} == names | {"runs.json", "table.txt", "table.csv"}
    assert [record.policy for record in read_runs(tmp_path / "a/b/runs.json")] == ["uniform", "linucb"]
    assert (tmp_path / "a/b/table.txt").read_text() == answer.out
    assert "is an expectation: what a perfect policy pays on average" in answer.out


def test_earlier_results_in_the_folder_are_put_aside(call: Command, problem: Path, tmp_path: Path) -> None:
    order = ["run", "--data", problem, "--rounds", 5, "--out", tmp_path]
    call(*order, "--policy", "uniform")
    answer = call(*order, "--policy", "oracle", "--policy", "linucb")
    assert [record.policy for record in read_runs(tmp_path / "runs.json")] == ["oracle", "linucb"]
    assert [record.policy for record in read_runs(tmp_path / "runs.previous.json")] == ["uniform"]
    assert "runs.previous.json" in answer.err


def test_a_policy_that_breaks_does_not_take_finished_runs_with_it(call: Command, problem: Path, tmp_path: Path) -> None:
    order = ["run", "--data", problem, "--rounds", 5, "--out", tmp_path, "--policy", "uniform"]
    answer = call(*order, "--policy", "neuclust:authors-ml", "--clusters", 50)  # clusters too small for a slate
    assert answer.code in (2, 65)
    assert "cluster" in answer.err.splitlines()[-1]
    assert [record.policy for record in read_runs(tmp_path / "runs.json")] == ["uniform"]
    assert (tmp_path / "regret.png").exists()


def test_plot_and_json_files_without_a_folder(call: Command, problem: Path, tmp_path: Path) -> None:
    order = ["run", "--data", problem, "--policy", "uniform", "--rounds", 5]
    answer = call(*order, "--plot", tmp_path / "curve.svg", "--json", tmp_path / "some.json", "--quiet")
    assert {path.name for path in tmp_path.iterdir()} == {"curve.svg", "some.json"}
    assert answer == (0, "", "")


def test_save_keeps_the_policy_of_the_last_run(call: Command, problem: Path, tmp_path: Path) -> None:
    order = ["run", "--data", problem, "--rounds", 5, "--seeds", 2, "--save", tmp_path / "kept"]
    assert call(*order, "--policy", "linucb").code == 0
    assert json.loads((tmp_path / "kept/manifest.json").read_text())["policy"] == "linucb"
    assert json.loads((tmp_path / "kept/manifest.json").read_text())["seed"] == 1
    refused = call(*order, "--policy", "linucb", "--policy", "uniform")
    assert (refused.code, "--save: expected one policy to keep, got 2" in refused.err) == (2, True)


def test_threads_are_limited(problem: Path) -> None:
    program = "import sys, torch\nfrom neuclust.cli import main\ntry: main()\nfinally: print(torch.get_num_threads())"
    order = ["run", "--data", str(problem), "--policy", "uniform", "--rounds", "2", "--json", "-", "--threads", "1"]
    environment = clean_environment(OMP_NUM_THREADS="2")
    done = subprocess.run([sys.executable, "-c", program, *order], capture_output=True, text=True, env=environment)
    assert done.stdout.endswith("\n1\n")


def test_a_warning_about_learning_is_one_plain_sentence(command: Command) -> None:
    options = ("--env", "quadratic", "--policy", "cn-ucb", "--set", "arms.training.step=1e12", "--rounds", "12")
    answer = command("run", *options, "--quiet")
    assert answer.code == 0
    assert "warning: 10 trainings of the arm net in a row found no step that helps: rewards reach" in answer.err
    assert "lower the training step" in answer.err
    assert "LearningWarning" not in answer.err
    assert ".py:" not in answer.err
