"""A run says whose rewards it plays, and warns where no slate can be paid."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from command_line import Command
from datasets import dataset_of

from neuclust.data.offers import Offers
from neuclust.randomness import stream

SIMULATED = "rewards: simulated from the profiles (the paper's model, tanh(s/4)), not from the file"
REPLAYED = "rewards: the file's own, replayed"
ARMS, ROUNDS, OFFERED = 40, 30, 12


@pytest.fixture(scope="module")
def clicks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """30 rounds of 12 offered arms, of which one was clicked."""
    generator = stream(0, "clicks")
    arms = np.concatenate([np.sort(generator.choice(ARMS, OFFERED, replace=False)) for _ in range(ROUNDS)])
    rewards = np.concatenate([np.eye(OFFERED)[generator.integers(OFFERED)] for _ in range(ROUNDS)])
    path = tmp_path_factory.mktemp("clicks") / "clicks.npz"
    offers = Offers(np.arange(ROUNDS + 1) * OFFERED, arms, rewards.astype(np.float32))
    dataset_of("clicks", generator.random((ARMS, 4)), np.ones((ROUNDS, 4)), offers).save(path)
    return path


def test_a_file_without_recorded_offers_is_said_to_be_simulated(call: Command, problem: Path, tmp_path: Path) -> None:
    answer = call("run", "--data", problem, "--policy", "uniform", "--rounds", 5, "--out", tmp_path)
    assert answer.err.splitlines()[0] == SIMULATED
    assert "simulated" not in answer.out.split("Rewards: ")[0]
    assert "Rewards: simulated from the profiles" in answer.out
    assert json.loads((tmp_path / "runs.json").read_text())["runs"][0]["rewards"] == "simulated"
    assert call("report", tmp_path).code == 0
    assert "Rewards: simulated from the profiles" in (tmp_path / "report" / "report.html").read_text()


def test_every_source_has_its_words_and_quiet_has_none(call: Command, clicks: Path, problem: Path) -> None:
    for options, sentence, word in (
        (["--data", clicks, "--slate-reward", "mean"], REPLAYED, "replayed"),
        (["--data", problem], SIMULATED, "simulated"),
        (["--env", "bump"], "rewards: of the built-in problem bump", "built-in"),
    ):
        order = ["run", *options, "--policy", "uniform", "--rounds", 5, "--json", "-"]
        answer = call(*order)
        assert answer.err.splitlines()[0] == sentence
        (run,) = json.loads(answer.out)["runs"]
        assert run["rewards"] == word
        assert call(*order, "-q").err == ""


def test_a_sweep_and_a_tuning_say_it_too(call: Command, clicks: Path, problem: Path, tmp_path: Path) -> None:
    file = tmp_path / "sweep.toml"
    tables = "".join(f'[[environment]]\ndata = "{path}"\nslate_reward = "mean"\n' for path in (clicks, problem))
    file.write_text(f'rounds = 3\n{tables}[[environment]]\nenv = "bump"\n[[policy]]\npolicy = "uniform"\n')
    answer = call("sweep", file, "--out", tmp_path / "out", "--engine", "inline")
    assert answer.err.splitlines()[:3] == [
        f"clicks: {REPLAYED}",
        f"small: {SIMULATED}",
        "bump: rewards: of the built-in problem bump",
    ]
    tuned = ["tune", "--data", clicks, "--policy", "linucb", "--param", "alpha=1", "--slate-reward", "mean"]
    answer = call(*tuned, "--rounds", 3, "--tune-seeds", "5", "--report-seeds", "0")
    assert answer.err.splitlines()[0] == REPLAYED


def test_clicks_under_a_threshold_are_warned_about(command: Command, call: Command, clicks: Path) -> None:
    order = ["run", "--data", clicks, "--policy", "uniform", "--policy", "oracle", "--json", "-", "-q"]
    answer = command(*order)
    assert answer.code == 0
    assert json.loads(answer.out)["runs"][1]["arm_successes"] == ROUNDS
    assert answer.err.startswith("warning: clicks: hardly any slate can be paid: the best ones earn 0 per round under")
    assert "the default slate reward, threshold:0.8" in answer.err
    assert "the slate rewards mean and at-least-one pay for fewer" in answer.err
    for reward in ("mean", "at-least-one"):
        assert call(*order, "--slate-reward", reward).err == ""


def test_a_threshold_out_of_reach_of_a_known_truth_is_warned_about(call: Command, tmp_path: Path) -> None:
    path = tmp_path / "poor.npz"
    dataset_of("poor", np.full((20, 2), 0.4), np.ones((200, 2))).save(path)  # means of tanh(0.1)
    answer = call("run", "--data", path, "--policy", "uniform", "-q")
    assert answer.err.startswith("warning: poor: hardly any slate can be paid: the best ones earn 0.00045 per round")
    assert "Hardly any slate can be paid" in answer.out
