"""A tiny problem and experiment on disk, a watch that keeps what it sees, and records without their timings."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from neuclust.data.dataset import ProfileDataset
from neuclust.experiment.engines.engine import Outcome, Progress
from neuclust.experiment.records import RunRecord
from neuclust.experiment.spec import read_spec
from neuclust.experiment.sweep import Standing
from neuclust.experiment.tasks import Task, tasks_of
from neuclust.randomness import stream

EXPERIMENT = """\
name = "tiny"
rounds = {rounds}
slate_size = 3
seeds = {seeds}
[[environment]]
data = "tiny.npz"
[[policy]]
policy = "uniform"
[[policy]]
policy = "linucb"
[[policy]]
policy = "cn-ucb"
"""
CLUSTERED = """
[[policy]]
policy = "neuclust"
clusters = 3
"""
BROKEN = """
[[policy]]
policy = "neuclust"
clusters = 30
settings = { "clustering.small" = "error" }
"""  # only the first round finds that its clusters are too small


def tiny_dataset(name: str, label: str) -> ProfileDataset:
    """60 arms with 6 features and 60 rounds, drawn from the stream of this label."""
    generator = stream(0, label)
    rounds = generator.random((60, 6)) > 0.5
    rounds[:, 0] |= ~rounds.any(1)
    return ProfileDataset(
        name=name,
        arms=generator.uniform(0.5, 5.0, (60, 6)).astype(np.float32),
        rounds=rounds.astype(np.float32),
        arm_ids=np.arange(60),
        round_ids=np.arange(60),
        features=tuple("abcdef"),
    )


def write_problem(folder: Path) -> Path:
    tiny_dataset("tiny", "sweep problem").save(folder / "tiny.npz")
    return folder / "tiny.npz"


def write_experiment(folder: Path, text: str = "", seeds: int = 2, rounds: int = 12) -> Path:
    """The problem and an experiment on it; `text` goes after the policies that are always there."""
    write_problem(folder)
    file = folder / "tiny.toml"
    file.write_text(EXPERIMENT.format(seeds=seeds, rounds=rounds) + text)
    return file


def tiny_tasks(folder: Path, text: str = "", seeds: int = 2, rounds: int = 12) -> tuple[Task, ...]:
    return tasks_of(read_spec(write_experiment(folder, text, seeds, rounds)))


def timeless(records: Mapping[str, RunRecord]) -> dict[str, RunRecord]:
    """Records by key, equal where everything but the clock is equal."""
    return {
        key: replace(record, seconds=0.0, select_seconds=0.0, update_seconds=0.0) for key, record in records.items()
    }


class Ear:
    """A watch that keeps what an engine and a sweep report; `on_start` acts on it, `stop` stands in for Ctrl-C."""

    def __init__(
        self, on_start: Callable[[Task], None] | None = None, stop: Callable[[], bool] = lambda: False
    ) -> None:
        self.starts: list[Task] = []
        self.rounds: dict[str, int] = {}
        self.sentences: list[str] = []
        self.outcomes: list[Outcome] = []
        self._on_start, self.stopped = on_start, stop

    def started(self, task: Task) -> None:
        self.starts.append(task)
        if self._on_start is not None:
            self._on_start(task)

    def played(self, task: Task, progress: Progress) -> None:
        self.rounds[task.key] = progress.rounds

    def begin(self, before: Standing, todo: Sequence[Task]) -> None:
        assert {task.key for task in before.missing} <= {task.key for task in todo}

    def ended(self, outcome: Outcome) -> None:
        self.outcomes.append(outcome)

    def say(self, text: str) -> None:
        self.sentences.append(text)
