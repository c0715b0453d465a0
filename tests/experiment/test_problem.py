"""Problems are opened by name or file, and tasks on them are refused where they cannot be played."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from neuclust.data.dataset import ProfileDataset, load_dataset
from neuclust.data.offers import Offers
from neuclust.errors import ConfigError
from neuclust.experiment.contestants import parse_contestants
from neuclust.experiment.problem import Problem, open_problem
from neuclust.experiment.tasks import environment_of, make_tasks
from neuclust.randomness import stream


@pytest.fixture
def small(tmp_path: Path) -> Path:
    path = tmp_path / "small.npz"
    arms = stream(0, "plan arms").uniform(0.5, 5.0, (30, 4)).astype(np.float32)
    rounds = np.ones((40, 4), dtype=np.float32)
    ProfileDataset("small", arms, rounds, np.arange(30), np.arange(40), tuple("abcd")).save(path)
    return path


def test_contestants_share_the_environment_of_a_seed(small: Path) -> None:
    tasks = make_tasks(Problem(data=small, slate_size=3), parse_contestants(["uniform", "oracle"]), [4, 9])
    assert [(task.seed, task.contestant.policy) for task in tasks] == [
        (4, "uniform"), (4, "oracle"), (9, "uniform"), (9, "oracle"),
    ]  # fmt: skip
    environments = [environment_of(task) for task in tasks]
    assert environments[0] is environments[1]
    assert [environment.seed for environment in environments] == [4, 4, 9, 9]
    assert {(task.rounds, task.problem.name) for task in tasks} == {(40, "small")}


def test_settings_change_what_is_built(small: Path) -> None:
    (contestant,) = parse_contestants(["linucb"], settings=["alpha=0.125"])
    built: Any = contestant.build(open_problem(Problem(data=small)).environment(0), 0)
    assert built.config.alpha == 0.125


@pytest.mark.parametrize(
    ("problem", "policy", "complaint"),
    [
        ({"rounds": 41}, "uniform", "at most the 40 rounds it holds, got 41"),
        ({"slate_size": 31}, "uniform", "30 arms offered"),
        ({"slate_reward": "sum"}, "uniform", "'sum'"),
        ({"arms_per_round": 31}, "uniform", "1 to 30 arms offered"),
        ({}, "unifrom", "did you mean uniform"),
        ({}, "neuclust:papper", "did you mean paper"),
    ],
)
def test_what_cannot_be_played_is_refused(small: Path, problem: dict[str, Any], policy: str, complaint: str) -> None:
    with pytest.raises(ConfigError, match=complaint):
        make_tasks(Problem(data=small, **problem), parse_contestants([policy]), [0])


def test_catalogue_problems_run_a_thousand_rounds_unless_told() -> None:
    assert open_problem(Problem(env="bump")).rounds == 1000
    assert open_problem(Problem(env="bump", rounds=1500)).rounds == 1500


@pytest.fixture
def replay(small: Path) -> Path:
    """The same file with a record of 8 of the 30 arms in each of its 40 rounds, half of which paid."""
    arms = np.concatenate([np.sort(stream(0, "plan offers", t).permutation(30)[:8]) for t in range(40)])
    offers = Offers(np.arange(0, 321, 8), arms, np.tile([0.0, 1.0], 160).astype(np.float32))
    path = small.with_name("replay.npz")
    replace(load_dataset(small), offers=offers).save(path)
    return path


def test_a_file_with_recorded_offers_is_played_back(replay: Path) -> None:
    tasks = make_tasks(Problem(data=replay, slate_size=4, rounds=30), parse_contestants(["uniform"]), [0, 1])
    environments = [environment_of(task) for task in tasks]
    for environment in environments:
        round = environment.round(3)
        assert environment.means(round).tolist() == [0.0, 1.0] * 4
        assert environment.best_expected_reward(round) == 1.0
    assert (tasks[0].rounds, tasks[0].problem.name) == (30, "replay")
    first, second = ([e.round(t).arm_ids.tolist() for t in range(1, 31)] for e in environments)
    assert first != second


def test_the_reward_of_a_replay_can_be_chosen(replay: Path) -> None:
    environment = open_problem(Problem(data=replay, slate_size=8, slate_reward="mean")).environment(0)
    assert environment.best_expected_reward(environment.round(1)) == 0.5


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"arms_per_round": 5}, "arms_per_round: expected none with .*replay.npz"),
        ({"start_ratings": 5}, "start_ratings: expected none with .*replay.npz"),
        ({"slate_size": 9}, "1 to the 8 arms of the smallest round"),
        ({"rounds": 41}, "at most the 40 rounds it holds"),
    ],
)
def test_what_cannot_be_played_back_is_refused(replay: Path, options: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ConfigError, match=complaint):
        make_tasks(Problem(data=replay, **options), parse_contestants(["uniform"]), [0])
