"""Runs on Ray: a cluster that is there, or a local one for this sweep. Nodes need neuclust, but no disk in common."""

import logging
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from neuclust.data.dataset import ProfileDataset, load_dataset
from neuclust.errors import ConfigError
from neuclust.experiment.engines.engine import Failure, Outcome, Watch
from neuclust.experiment.records import RunRecord
from neuclust.experiment.tasks import Task, play_task
from neuclust.registry import Registration, adopt, outside

POLL_SECONDS = 0.2
RETRIES = 3  # of a run whose node or process died; an error the run itself raised is not tried again


@dataclass(frozen=True, slots=True)
class RayEngine:
    """At most `workers` runs in flight (None: as many as the cluster has cores), one core each."""

    workers: int | None = None
    address: str | None = None

    def play(self, tasks: Sequence[Task], watch: Watch) -> Iterator[Outcome]:
        import ray

        with _connected(self.workers, self.address):
            files = {task.problem.data for task in tasks}
            datasets: dict[Path | None, Any] = {file: ray.put(load_dataset(file)) for file in files if file is not None}
            remote = ray.remote(num_cpus=1, max_retries=RETRIES, max_calls=200)(_play)
            registrations = outside()

            def send(task: Task) -> Any:
                return remote.remote(task, datasets.get(task.problem.data), registrations)

            yield from _played(send, deque(tasks), self.workers, watch)


def _played(send: Callable[[Task], Any], waiting: deque[Task], workers: int | None, watch: Watch) -> Iterator[Outcome]:
    """Keep the cluster's cores busy and no more than that waiting; yield runs as they end."""
    import ray

    cluster: Any = ray
    running: dict[Any, Task] = {}
    try:
        while (waiting or running) and not watch.stopped():
            room = workers or max(1, int(cluster.cluster_resources().get("CPU", 1)))  # now: nodes come and go
            while waiting and len(running) < room:
                task = waiting.popleft()
                watch.started(task)
                running[send(task)] = task
            ready, _ = ray.wait(list(running), num_returns=1, timeout=POLL_SECONDS)
            for reference in ready:
                yield Outcome(running.pop(reference), _result(reference))
    finally:
        for reference in running:
            ray.cancel(reference, force=True)


def _play(task: Task, dataset: ProfileDataset | None, registrations: Sequence[Registration]) -> RunRecord | Failure:
    """A run on a node of the cluster."""
    import torch

    torch.set_num_threads(1)
    try:
        adopt(registrations)
        return play_task(task, dataset=dataset)
    except Exception as error:
        return Failure.of(error).sendable


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
        text = f"expected a Ray cluster at {address or 'this machine'}, could not reach it ({error})"
        raise ConfigError(f"{text}; `ray start --head` starts one", field="address") from None
    try:
        yield
    finally:
        ray.shutdown()
