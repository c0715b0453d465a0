"""Engines: the same records everywhere, and workers or nodes that die take nobody with them."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sweep_files import BROKEN, CLUSTERED, Ear, timeless, tiny_tasks

from neuclust.errors import ConfigError, StateError
from neuclust.experiment.engines.engine import Engine, Failure, make_engine, play_inline
from neuclust.experiment.engines.processes import ProcessEngine
from neuclust.experiment.records import RunRecord
from neuclust.experiment.tasks import Task


def records(engine: Engine, tasks: tuple[Task, ...], watch: Ear | None = None) -> dict[str, RunRecord]:
    found = {outcome.task.key: outcome.result for outcome in engine(tasks, watch or Ear())}
    assert not [result for result in found.values() if isinstance(result, Failure)]
    return {key: result for key, result in found.items() if isinstance(result, RunRecord)}


def only_worker() -> int:
    (worker,) = multiprocessing.active_children()
    assert worker.pid is not None
    return worker.pid


def test_processes_give_the_records_of_this_process(tmp_path: Path) -> None:
    tasks, ear = tiny_tasks(tmp_path, CLUSTERED), Ear()
    serial = records(play_inline, tasks)
    assert len(serial) == 8
    assert timeless(records(make_engine("processes", 2), tasks, ear)) == timeless(serial)
    assert sorted(task.key for task in ear.starts) == sorted(serial)
    assert not multiprocessing.active_children()


@pytest.mark.parametrize("engine", [play_inline, ProcessEngine(1).play], ids=["inline", "process"])
def test_a_run_that_fails_does_not_stop_the_others(tmp_path: Path, engine: Engine) -> None:
    tasks = tiny_tasks(tmp_path, BROKEN, seeds=1)
    results = {outcome.task.title: outcome.result for outcome in engine(tasks, Ear())}
    failures = {title: result for title, result in results.items() if isinstance(result, Failure)}
    assert list(failures) == ["neuclust (30 clusters, clustering.small=error) on tiny, seed 0"]
    (failure,) = failures.values()
    assert "Error: " in failure.error
    assert "Traceback" in failure.traceback
    assert len(results) == 4


def test_a_killed_worker_is_replaced_and_its_run_played_again(tmp_path: Path) -> None:
    tasks = tiny_tasks(tmp_path)
    victim = tasks[2].key

    def kill_once(task: Task) -> None:
        if task.key == victim and [t.key for t in ear.starts].count(victim) == 1:
            os.kill(only_worker(), signal.SIGKILL)

    ear = Ear(kill_once)
    assert timeless(records(ProcessEngine(1).play, tasks, ear)) == timeless(records(play_inline, tasks))
    assert [task.key for task in ear.starts].count(victim) == 2


def test_a_run_whose_worker_dies_twice_is_given_up(tmp_path: Path) -> None:
    tasks = tiny_tasks(tmp_path, seeds=1)
    ear = Ear(lambda task: os.kill(only_worker(), signal.SIGKILL) if task == tasks[1] else None)
    results = {outcome.task.key: outcome.result for outcome in ProcessEngine(1).play(tasks, ear)}
    assert results[tasks[1].key] == Failure("the worker process died 2 times, last with signal 9")
    assert sum(isinstance(result, RunRecord) for result in results.values()) == 2


def test_workers_are_renewed(tmp_path: Path) -> None:
    workers: list[int] = []
    ear = Ear(lambda task: workers.append(only_worker()))
    assert len(records(ProcessEngine(1, runs_per_worker=3).play, tiny_tasks(tmp_path), ear)) == 6
    assert [workers.count(pid) for pid in dict.fromkeys(workers)] == [3, 3]


def test_workers_that_cannot_start_end_the_sweep(tmp_path: Path) -> None:
    multiprocessing.set_executable("/bin/false")
    try:
        with pytest.raises(StateError, match="expected worker processes to start"):
            records(ProcessEngine(2).play, tiny_tasks(tmp_path))
    finally:
        multiprocessing.set_executable(sys.executable)
    assert not multiprocessing.active_children()


@pytest.mark.parametrize("engine", [play_inline, ProcessEngine(2).play], ids=["inline", "process"])
def test_a_stop_leaves_runs_under_way_without_record(tmp_path: Path, engine: Engine) -> None:
    tasks = tiny_tasks(tmp_path, seeds=40, rounds=60)
    ear = Ear(stop=lambda: len(ear.starts) >= 4)
    ended = [outcome.result for outcome in engine(tasks, ear)]
    assert len(ended) <= 4
    assert all(isinstance(result, RunRecord) and result.rounds == 60 for result in ended)
    assert not multiprocessing.active_children()


def test_engines_are_chosen_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigError, match="engine: expected one of processes, inline, ray, device, got 'cloud'"):
        make_engine("cloud")
    with pytest.raises(ConfigError, match="workers: expected 1 with the engine inline, got 4"):
        make_engine("inline", 4)
    with pytest.raises(ConfigError, match="address: expected none with the engine processes"):
        make_engine("process", 1, "10.0.0.1:6379")  # the older name of `processes`
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ConfigError, match=r"pip install 'neuclust\[ray\]'"):
        make_engine("ray")


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Any, Any]]:
    """Two nodes of one core each on this machine, and the connection of this process to them."""
    ray = pytest.importorskip("ray", reason="Ray is not installed")
    from ray.cluster_utils import Cluster

    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    size: dict[str, Any] = {"num_cpus": 1, "object_store_memory": 100 * 2**20}
    made: Any = Cluster(initialize_head=True, head_node_args={**size, "include_dashboard": False})
    try:
        node = made.add_node(**size)
        ray.init(address=made.address, log_to_driver=False)
        yield made, node
    finally:
        ray.shutdown()
        made.shutdown()


@pytest.mark.soak  # Ray without a kill: tests/contracts/test_outside_package.py
def test_ray_gives_the_records_of_this_process_though_a_node_is_killed(
    tmp_path: Path, cluster: tuple[Any, Any]
) -> None:
    made, node = cluster
    tasks = tiny_tasks(tmp_path, CLUSTERED + BROKEN, seeds=3, rounds=60)
    ended = []
    for outcome in make_engine("ray")(tasks, Ear()):
        ended.append(outcome)
        if len(ended) == 4:  # both nodes are at work
            made.remove_node(node, allow_graceful=False)
    assert sorted(outcome.task.key for outcome in ended) == sorted(task.key for task in tasks)
    serial = {outcome.task.key: outcome.result for outcome in play_inline(tasks, Ear())}
    remote = {outcome.task.key: outcome.result for outcome in ended}
    assert {key: r.error for key, r in remote.items() if isinstance(r, Failure)} == {
        key: r.error for key, r in serial.items() if isinstance(r, Failure)
    }
    assert timeless({key: r for key, r in remote.items() if isinstance(r, RunRecord)}) == timeless(
        {key: r for key, r in serial.items() if isinstance(r, RunRecord)}
    )
