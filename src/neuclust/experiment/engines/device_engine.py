"""Runs in batches on one device: tasks of one problem whose policies have one shape are played together."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import cast

from neuclust.experiment.engines.device import BatchRun, batches_of, run_batch
from neuclust.experiment.engines.device.batches import PolicyConfig, check_memory
from neuclust.experiment.engines.device.runner import usable_device
from neuclust.experiment.engines.engine import Failure, Outcome, Watch
from neuclust.experiment.records import RunRecord
from neuclust.experiment.tasks import Task, environment_of, label_of, opened_problem
from neuclust.registry import policy_config


@dataclass(frozen=True, slots=True)
class DeviceEngine:
    """NeUClust (offline) and CN-UCB on `cpu` or `cuda`; other policies and problems are refused before the start."""

    device: str = "cpu"

    def play(self, tasks: Sequence[Task], watch: Watch) -> Iterator[Outcome]:
        usable_device(self.device)
        lengths = dict.fromkeys((task.problem, task.rounds) for task in tasks)
        groups = [[task for task in tasks if (task.problem, task.rounds) == length] for length in lengths]
        for group in groups:
            runs = _batch_runs(list(_one_of_each(group)))
            batches_of(runs)
            for run in runs:
                check_memory(run.config, group[0].rounds, run.environment.slate_size)
        for group in groups:
            runs = _batch_runs(group)
            for places in batches_of(runs):
                if watch.stopped():
                    return
                played = self._played([runs[place] for place in places], group[0].rounds, watch)
                yield from (
                    Outcome(group[place], result)
                    for place, result in zip(places, played, strict=False)  # none where it was stopped
                    if isinstance(result, Failure) or result.rounds
                )

    def _played(self, batch: list[BatchRun], rounds: int, watch: Watch) -> Sequence[RunRecord | Failure]:
        """The records of one batch; where it broke, the reason for every run of it."""
        try:
            return run_batch(batch, rounds, device=self.device, stop=watch.stopped)
        except Exception as error:
            return [Failure.of(error)] * len(batch)


def _one_of_each(tasks: Sequence[Task]) -> Iterator[Task]:
    """The tasks of the first seed: they show whether every contestant can be played."""
    return (task for task in tasks if task.seed == tasks[0].seed)


def _batch_runs(tasks: Sequence[Task]) -> list[BatchRun]:
    """The tasks with their configurations, each made once; `batches_of` refuses what is no `PolicyConfig`."""
    configs: dict[int, PolicyConfig] = {}
    found = []
    for task in tasks:
        who = task.contestant
        if id(who) not in configs:
            config = policy_config(who.policy, who.preset, who.clusters, who.settings)
            configs[id(who)] = cast(PolicyConfig, config)
        label = label_of(task, opened_problem(task))
        found.append(BatchRun(configs[id(who)], environment_of(task), task.seed, label))
    return found
