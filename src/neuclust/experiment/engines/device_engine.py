"""Runs in batches on one device: tasks of one problem whose policies have one shape are played together."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import cast

from neuclust.experiment.engines.device import BatchRun, batches_of, run_batch
from neuclust.experiment.engines.device.batches import PolicyConfig, check_memory
from neuclust.experiment.engines.device.runner import usable_device
from neuclust.experiment.engines.engine import Outcome, Watch
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
            runs = [_batch_run(task) for task in _one_of_each(group)]
            batches_of(runs)
            for run in runs:
                check_memory(run.config, group[0].rounds, run.environment.slate_size)
        for group in groups:
            runs = [_batch_run(task) for task in group]
            for places in batches_of(runs):
                if watch.stopped():
                    return
                batch = [runs[place] for place in places]
                records = run_batch(batch, group[0].rounds, device=self.device, stop=watch.stopped)
                yield from (
                    Outcome(group[place], record)
                    for place, record in zip(places, records, strict=False)  # none where it was stopped
                    if record.rounds
                )


def _one_of_each(tasks: Sequence[Task]) -> Iterator[Task]:
    """The tasks of the first seed: they show whether every contestant can be played."""
    return (task for task in tasks if task.seed == tasks[0].seed)


def _batch_run(task: Task) -> BatchRun:
    who = task.contestant
    config = policy_config(who.policy, who.preset, who.clusters, who.settings)
    # batches_of refuses other configurations
    return BatchRun(cast(PolicyConfig, config), environment_of(task), task.seed, label_of(task, opened_problem(task)))
