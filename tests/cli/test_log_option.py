"""`neuclust run --log`: every decision of every run in one file."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from command_line import Command

from neuclust.logs import open_log


@pytest.mark.parametrize("suffix", [".jsonl", ".parquet"])
def test_every_run_is_in_the_log(call: Command, problem: Path, tmp_path: Path, suffix: str) -> None:
    """Fails when a run or a round is missing, or rewards of the log do not add up to those of the record."""
    file = tmp_path / f"a{suffix}"
    players = ("--policy", "uniform", "--policy", "epsilon-greedy", "--seeds", 2)
    answer = call("run", "--data", problem, *players, "--rounds", 8, "--json", "-", "--log", file)
    assert answer.code == 0
    log = open_log(file)
    assert list(log.runs) == ["uniform-seed0", "epsilon-greedy-seed0", "uniform-seed1", "epsilon-greedy-seed1"]
    starts = log.runs["uniform-seed0"], log.runs["epsilon-greedy-seed0"]
    assert [start.learning for start in starts] == [False, True]
    assert starts[0].reward == "threshold:0.8"
    assert starts[0].reward_values == (0, 0, 0, 0, 1, 1)
    decisions = list(log.decisions())
    for record in json.loads(answer.out)["runs"]:
        own = [each for each in decisions if each.run == f"{record['policy']}-seed{record['seed']}"]
        assert [each.id for each in own] == [str(t) for t in range(1, 9)]
        assert sum(each.slate_reward for each in own) == record["successes"]
        assert sum(each.rewards.sum() for each in own) == record["arm_successes"]
        kind = {"uniform": "uniform", "epsilon-greedy": "one-coin"}[record["policy"]]
        assert {each.design.kind for each in own} == {kind}
        assert [each.version for each in own] == [str(t) for t in range(8)]


def test_late_and_lost_feedback_is_an_event_of_its_own(call: Command, tmp_path: Path) -> None:
    """Fails when late feedback is logged as if it had been there at once, is lost, or comes when none came."""
    file = tmp_path / "a.jsonl"
    assert call("run", "--env", "delayed", "--policy", "uniform", "--rounds", 120, "--log", file, "--quiet").code == 0
    events = [json.loads(line) for line in file.read_text().splitlines()]
    kinds = [event["event"] for event in events]
    asked = [event for event in events if event["event"] == "decision"]
    late = {event["decision"] for event in events if event["event"] == "feedback"}
    open_at_once = {event["id"] for event in asked if event["rewards"] is None}
    assert kinds.count("decision") == 120
    assert late
    assert late <= open_at_once
    for decision in open_log(file).decisions():
        assert bool(np.isnan(decision.slate_reward)) == (decision.id in open_at_once - late)


def test_logging_changes_no_number(call: Command, problem: Path, tmp_path: Path) -> None:
    """Fails when a run that logs plays otherwise than one that does not."""
    words = ("run", "--data", problem, "--policy", "linucb", "--rounds", 12, "--json", "-")
    plain, logged = (json.loads(call(*words, *more).out)["runs"] for more in ((), ("--log", tmp_path / "a.jsonl")))
    assert plain[0]["curve"] == logged[0]["curve"]
    assert plain[0]["successes"] == logged[0]["successes"]


def test_refusals_of_a_log(call: Command, problem: Path, tmp_path: Path) -> None:
    """Fails when a log that cannot be written is found out only after the runs, or an earlier one is written over."""
    words, file = ("run", "--data", problem, "--policy", "uniform", "--rounds", 3), tmp_path / "a.jsonl"
    assert call(*words, "--log", file).code == 0
    held = file.read_bytes()
    for more, said in (
        (("--log", file), "--log: expected a log without the run uniform-seed0"),
        (("--log", tmp_path / "a.txt"), "--log: expected a file named .jsonl or .parquet"),
        (("--log", tmp_path), "--log: expected a file, got the folder"),
        (("--log", tmp_path / "none" / "a.jsonl"), "--log: expected a place that can be written"),
        (("--log", tmp_path / "b.jsonl", "--device", "cpu"), "--log: expected runs one by one, got --device"),
    ):
        answer = call(*words, *more)
        assert answer.code == 2, answer.err
        assert said in answer.err
        assert answer.out == ""
    assert file.read_bytes() == held


def test_runs_that_explore_can_be_judged_from_their_log(call: Command, problem: Path, tmp_path: Path) -> None:
    """Fails when --explore leaves no propensities, so that a log of `run` can judge nobody."""
    file = tmp_path / "a.jsonl"
    words = ("--data", problem, "--policy", "linucb", "--rounds", 40, "--slate-size", 2)
    assert call("run", *words, "--explore", 0.5, "--log", file, "--quiet").code == 0
    assert {each.design.kind for each in open_log(file).decisions()} == {"sequential"}
    judged = call("evaluate", file, "--policy", "uniform", "--json", "-")
    assert judged.code == 0
    refused = call("run", *words, "--explore", 0.5, "--save", tmp_path / "kept")
    assert refused.code == 2
    assert "--explore" in refused.err
