"""Runs on Ray: a cluster that is there, or a local one for this sweep. Nodes need neuclust, but no disk in common."""

from __future__ import annotations

import importlib.util
import logging
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from neuclust.data.dataset import ProfileDataset, load_dataset
from neuclust.errors import ConfigError
from neuclust.experiment.engines.engine import Failure, Outcome, Watch
from neuclust.experiment.records import RunRecord
from neuclust.experiment.tasks import Task, play

POLL_SECONDS = 0.2
RETRIES = 3  # of a run whose node or process died; an error the run itself raised is not tried again


def require_ray() -> None:
    """Refuse at once where Ray is not installed."""
    if importlib.util.find_spec("ray") is None:
        raise ConfigError("--engine ray: expected Ray, which is not installed; `pip install 'neuclust[ray]'`")


@dataclass(frozen=True, slots=True)
class RayEngine:
    """At most `workers` runs in flight (None: as many as the cluster has cores), one core each."""

    workers: int | None = None
    address: str | None = None

    def play(self, tasks: Sequence[Task], watch: Watch) -> Iterator[Outcome]:
        import ray

        with _connected(self.workers, self.address):
            files = sorted({task.problem.data for task in tasks if task.problem.data is not None})
            datasets = {file: ray.put(load_dataset(file)) for file in files}  # once, whatever the number of runs
            remote = ray.remote(num_cpus=1, max_retries=RETRIES, max_calls=200)(_play)
            yield from _dealt(remote, deque(tasks), datasets, self.workers, watch)


def _dealt(
    remote: Any, waiting: deque[Task], datasets: dict[Path, Any], workers: int | None, watch: Watch
) -> Iterator[Outcome]:
    """Keep the cluster's cores busy and no more than that waiting; answer runs as they end."""
    import ray

    flying: dict[Any, Task] = {}
    try:
        while (waiting or flying) and not watch.stopped():
            room = workers or _cores(ray)
            while waiting and len(flying) < room:
                task = waiting.popleft()
                watch.started(task)
                flying[remote.remote(task, None if task.problem.data is None else datasets[task.problem.data])] = task
            ready, _ = ray.wait(list(flying), num_returns=1, timeout=POLL_SECONDS)
            for reference in ready:
                yield Outcome(flying.pop(reference), _result(reference))
    finally:
        for reference in flying:
            ray.cancel(reference, force=True)


def _cores(ray: Any) -> int:
    """Of the whole cluster as it is now: nodes come and go."""
    return max(1, int(ray.cluster_resources().get("CPU", 1)))


def _play(task: Task, dataset: ProfileDataset | None) -> RunRecord | Failure:
    """On a node: the same as anywhere."""
    import torch

    torch.set_num_threads(1)
    try:
        return play(task, dataset=dataset)
    except Exception as error:
        return Failure.of(error)


def _result(reference: Any) -> RunRecord | Failure:
    import ray

    try:
        result: RunRecord | Failure = ray.get(reference)
    except ray.exceptions.RayError as error:  # its process or node died more often than it was tried again
        return Failure.of(error)
    return result


@contextmanager
def _connected(workers: int | None, address: str | None) -> Iterator[None]:
    """The cluster at `address`, the one this process is connected to, or a local one that ends with the sweep."""
    import ray

    if ray.is_initialized():
        yield
        return
    quiet: dict[str, Any] = {"include_dashboard": False, "num_cpus": workers} if address is None else {}
    try:
        ray.init(address=address or "local", log_to_driver=False, logging_level=logging.ERROR, **quiet)
    except (ConnectionError, RuntimeError, ValueError, TimeoutError) as error:
        raise ConfigError(
            f"--address: expected a Ray cluster at {address or 'this machine'}, could not reach it ({error}); "
            "`ray start --head` starts one"
        ) from None
    try:
        yield
    finally:
        ray.shutdown()
