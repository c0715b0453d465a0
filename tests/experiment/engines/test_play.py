"""`neuclust.tasks` and `neuclust.play`: runs from Python, on every engine, with failures raised or passed on."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import pytest
from sweep_files import BROKEN, Ear, tiny_tasks, write_problem

import neuclust
from neuclust.errors import ConfigError, NeuclustError
from neuclust.experiment.engines.device_engine import DeviceEngine
from neuclust.experiment.engines.engine import Outcome, make_engine, play_inline
from neuclust.experiment.tasks import Task


def small_tasks(folder: Path, *policies: str, seeds: int = 2) -> tuple[Task, ...]:
    problem = neuclust.Problem(data=write_problem(folder), slate_size=3)
    settings = ["neuclust.clustering.count=3"] if "neuclust" in policies else []
    return neuclust.tasks(policies, problem, seeds=range(seeds), rounds=12, settings=settings)


def test_tasks_are_every_policy_with_every_seed_and_share_keys_with_sweeps(tmp_path: Path) -> None:
    tasks = small_tasks(tmp_path, "uniform", "linucb", "cn-ucb")
    assert [task.key for task in tasks] == [task.key for task in tiny_tasks(tmp_path)]
    assert [record.seed for record in neuclust.play(tasks)] == [0, 0, 0, 1, 1, 1]
    assert neuclust.tasks(["linucb"], "bump")[0].rounds == 1000


@pytest.mark.parametrize(
    ("policies", "env", "words"),
    [(["linuch"], "bump", "did you mean linucb"), (["linucb"], "bumb", "did you mean bump")],
)
def test_what_cannot_be_played_is_refused_before_it_runs(policies: list[str], env: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        neuclust.tasks(policies, env)


@pytest.mark.parametrize("engine", ["inline", "processes"])
def test_a_failure_is_raised_or_passed_on(tmp_path: Path, engine: str) -> None:
    tasks = tiny_tasks(tmp_path, BROKEN, seeds=1)[::-1]  # the one that fails first
    with pytest.raises(NeuclustError, match="expected every cluster to hold at least"):
        list(neuclust.play(tasks, engine, workers=1))
    failed: list[Outcome] = []
    records = list(neuclust.play(tasks, engine, workers=1, on_failure=failed.append))
    assert len(records) == 3
    assert [outcome.task for outcome in failed] == [tasks[0]]


def test_the_device_engine_plays_the_slates_of_single_runs_in_batches(tmp_path: Path) -> None:
    tasks = small_tasks(tmp_path, "neuclust", "cn-ucb")
    batched = {outcome.task.key: outcome.record() for outcome in make_engine("device")(tasks, Ear())}
    for outcome in play_inline(tasks, Ear()):
        alone, together = outcome.record(), batched[outcome.task.key]
        assert together.chosen_clusters == alone.chosen_clusters
        assert together.successes == alone.successes
        assert together.expected_regret == pytest.approx(alone.expected_regret)
        assert (together.policy, together.seed, together.problem) == (alone.policy, alone.seed, alone.problem)


def test_the_device_engine_refuses_before_it_plays_and_stops_when_asked(tmp_path: Path) -> None:
    ear = Ear()
    with pytest.raises(ConfigError, match="expected NeUClust or CN-UCB"):
        list(make_engine("device:cpu")(small_tasks(tmp_path, "cn-ucb", "linucb"), ear))
    with pytest.raises(ConfigError, match="expected cpu or cuda"):
        list(DeviceEngine("abacus").play(small_tasks(tmp_path, "cn-ucb"), ear))
    assert list(make_engine("device")(small_tasks(tmp_path, "cn-ucb"), Ear(stop=lambda: True))) == []


def test_seeds_are_named_or_counted() -> None:
    counted = neuclust.tasks("uniform", "quadratic", seeds=3, rounds=2)
    assert [task.seed for task in counted] == [0, 1, 2]
    assert counted == neuclust.tasks(["uniform"], "quadratic", seeds=(0, 1, 2), rounds=2)
    for wrong in (0, -1, (), ("1",), (-4,)):
        with pytest.raises(ConfigError, match="seeds"):
            neuclust.tasks("uniform", "quadratic", seeds=cast("int", wrong), rounds=2)
