"""One run of a sweep as data: what it is, the key that names it, and how it is played."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import neuclust
from neuclust.data.dataset import ProfileDataset, load_dataset
from neuclust.environments.slates import SlateEnvironment
from neuclust.errors import DataError
from neuclust.experiment.contestants import Contestant
from neuclust.experiment.plan import Problem, open_problem, reward_source
from neuclust.experiment.records import RunRecord
from neuclust.experiment.run import RunLabel, Tally, run
from neuclust.experiment.spec import SweepSpec
from neuclust.registry import policy_config

KEY_LETTERS = 32
# Sources that decide a run's numbers; words and pictures around them may change without making records old.
_DECIDING = (
    "*.py",
    "kernels",
    "presets",
    "models",
    "slates",
    "policies",
    "environments",
    "data",
    "experiment/run.py",
    "experiment/delayed_feedback.py",
    "experiment/plan.py",
)


@dataclass(frozen=True, slots=True)
class Task:
    """One contestant on one problem with one seed; `content` is the hash of the problem's file, if it has one."""

    key: str
    problem: Problem
    content: str | None
    contestant: Contestant
    seed: int
    rounds: int

    @property
    def title(self) -> str:
        settings = ", ".join(f"{key}={value}" for key, value in self.contestant.settings.items())
        clusters = "" if self.contestant.clusters is None else f"{self.contestant.clusters} clusters"
        extra = ", ".join(text for text in (clusters, settings) if text)
        who = f"{self.contestant.title} ({extra})" if extra else self.contestant.title
        return f"{who} on {self.problem.name}, seed {self.seed}"


def tasks_of(spec: SweepSpec) -> tuple[Task, ...]:
    """Every run of a sweep, seed by seed, so that a sweep cut short still holds paired runs.

    Contestants that come to the same configuration, such as a default and the same value written out, play once.
    """
    found: dict[str, Task] = {}
    for task in _tasks(spec):
        found.setdefault(task.key, task)
    return tuple(found.values())


def _tasks(spec: SweepSpec) -> Iterator[Task]:
    code = code_version()
    contents = {problem: None if problem.data is None else file_hash(problem.data) for problem in spec.problems}
    for seed in spec.seeds:
        for problem, rounds in zip(spec.problems, spec.rounds, strict=True):
            for contestant in spec.contestants:
                content = contents[problem]
                document = configuration(problem, content, contestant, seed, rounds) | {"code": code}
                yield Task(key_of(document), problem, content, contestant, seed, rounds)


def configuration(
    problem: Problem, content: str | None, contestant: Contestant, seed: int, rounds: int
) -> dict[str, Any]:
    """Everything that decides the outcome of a run, as JSON values; defaults are written out."""
    config = policy_config(contestant.policy, contestant.preset, contestant.clusters, contestant.settings)
    return {
        "policy": {"name": contestant.policy, "preset": contestant.preset, "config": asdict(config)},
        "problem": {"name": problem.name, "content": content, "slate_size": problem.slate_size, **problem.options},
        "rounds": rounds,
        "seed": seed,
    }


def key_of(document: dict[str, Any]) -> str:
    """The first 32 hexadecimal digits of SHA-256 over canonical JSON: equal runs, equal keys."""
    text = json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()[:KEY_LETTERS]


def file_hash(file: Path) -> str:
    """SHA-256 of a file's bytes."""
    try:
        with file.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError as error:
        raise DataError(f"{file}: expected a prepared .npz file, could not read it ({error.strerror})") from None


@lru_cache(maxsize=1)
def code_version() -> str:
    """The version, and a hash of the sources that decide a run's numbers: `0.1.0+3f2a…`."""
    root = Path(neuclust.__file__).parent
    digest = hashlib.sha256()
    for file in sorted(_sources(root)):
        digest.update(f"{file.relative_to(root).as_posix()}\0".encode())
        digest.update(hashlib.sha256(file.read_bytes()).digest())
    return f"{neuclust.__version__}+{digest.hexdigest()[:12]}"


def _sources(root: Path) -> Iterator[Path]:
    for pattern in _DECIDING:
        place = root / pattern
        if place.is_dir():
            yield from (file for file in place.rglob("*") if file.suffix in (".py", ".json"))
        else:
            yield from root.glob(pattern)


def play(
    task: Task,
    *,
    dataset: ProfileDataset | None = None,
    on_round: Callable[[Tally], None] | None = None,
    stop: Callable[[], bool] | None = None,
) -> RunRecord:
    """The record of a task; `dataset` is the problem's file where it was read elsewhere."""
    if task.contestant.clustering is not None:
        import sklearn.cluster  # noqa: F401  # loaded here, or the first run's clock would count it
    if dataset is None and task.problem.data is not None:
        dataset = _dataset(task.problem.data, task.content)
    environment = environment_of(task, dataset)
    policy = task.contestant.build(environment, task.seed)
    return run(policy, environment, task.rounds, task.seed, label=_label(task, dataset), on_round=on_round, stop=stop)


def labelled(record: RunRecord, task: Task) -> RunRecord:
    """A run under the names its task has here: equal runs are played once, under the names of whoever asked first."""
    asked = task.contestant
    return replace(record, policy=asked.policy, preset=asked.preset, clusters=asked.clusters, settings=asked.settings)


def environment_of(task: Task, dataset: ProfileDataset | None) -> SlateEnvironment:
    environment_at, _ = open_problem(task.problem, dataset)
    return environment_at(task.seed)


@lru_cache(maxsize=2)
def _dataset(file: Path, content: str | None) -> ProfileDataset:
    """The file as it was when the sweep began, or a refusal: its hash stands in the key."""
    if file_hash(file) != content:
        raise DataError(f"{file}: expected the file the sweep began with, got another; start the sweep again")
    return load_dataset(file)


def _label(task: Task, dataset: ProfileDataset | None) -> RunLabel:
    contestant = task.contestant
    return RunLabel(
        policy=contestant.policy,
        preset=contestant.preset,
        env=task.problem.name,
        clusters=contestant.clusters,
        settings=contestant.settings,
        problem=task.problem.options,
        rewards=reward_source(task.problem, dataset),
    )
