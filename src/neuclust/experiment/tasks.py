"""One run as data: a contestant, a problem and a seed; the key that names it, and how it is played."""

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import neuclust
from neuclust.core import Policy
from neuclust.data.dataset import ProfileDataset, load_dataset
from neuclust.environments.slates import SlateEnvironment
from neuclust.errors import ConfigError, DataError
from neuclust.experiment.contestants import Contestant, parse_contestants
from neuclust.experiment.held_out import LaterRounds, Part, split_problem
from neuclust.experiment.problem import DEFAULT_ENV, OpenProblem, Problem, open_problem
from neuclust.experiment.records import RunRecord
from neuclust.experiment.run import Hooks as RunHooks
from neuclust.experiment.run import RunLabel, Tally, run
from neuclust.experiment.run_log import RunLog, run_start
from neuclust.experiment.spec import SweepSpec
from neuclust.logs import LogWriter
from neuclust.registry import policy_config, source_hash

KEY_LETTERS = 32
# Sources that decide a run's numbers; words and pictures around them may change without making records old.
_DECIDING = ("*.py", "experiment/run.py", "experiment/delayed_feedback.py", "experiment/problem.py")
_DECIDING_ROOMS = ("kernels", "presets", "models", "slates", "policies", "environments", "data")


@dataclass(frozen=True, slots=True)
class Task:
    """One contestant on one problem, or a `part` of it, with one seed; `content` is the hash of the problem's file."""

    key: str
    problem: Problem
    content: str | None
    contestant: Contestant
    seed: int
    rounds: int
    part: Part | None = None

    @property
    def title(self) -> str:
        settings = ", ".join(f"{key}={value}" for key, value in self.contestant.settings.items())
        clusters = "" if self.contestant.clusters is None else f"{self.contestant.clusters} clusters"
        extra = ", ".join(text for text in (clusters, settings) if text)
        who = f"{self.contestant.title} ({extra})" if extra else self.contestant.title
        return f"{who} on {self.problem.name}, seed {self.seed}"


def tasks(
    policies: str | Sequence[str],
    env: str | Problem = DEFAULT_ENV,
    *,
    seeds: int | Iterable[int] = (0,),
    rounds: int | None = None,
    settings: Sequence[str] = (),
) -> tuple[Task, ...]:
    """The runs of policies (`NAME` or `NAME:PRESET`) on a problem, for every seed; all of it is checked here.

    `env` is a built-in problem, or a `Problem` with a file and options. `seeds` are the seeds themselves, or how many:
    0, 1, …. `settings` are `key=value`, or `NAME.key=value` for one policy.
    """
    problem = env if isinstance(env, Problem) else Problem(env)
    if rounds is not None:
        problem = replace(problem, rounds=rounds)
    names = [policies] if isinstance(policies, str) else policies
    return make_tasks(problem, parse_contestants(names, settings=settings), _seeds(seeds))


def _seeds(given: int | Iterable[int]) -> tuple[int, ...]:
    found = tuple(range(given) if isinstance(given, int) else given)
    if not found or not all(isinstance(seed, int) and seed >= 0 for seed in found):
        wanted = "seeds of at least 0, or how many of them"
        raise ConfigError(f"expected {wanted}, got {given!r:.100}; name at least one", field="seeds")
    return found


def make_tasks(problem: Problem, contestants: Sequence[Contestant], seeds: Sequence[int]) -> tuple[Task, ...]:
    """Every contestant with every seed, after each was built once: what cannot be played is refused here."""
    content = content_of(problem)
    rounds = _opened(problem, content, None).rounds
    first = _environment(problem, content, None, seeds[0])
    for contestant in contestants:
        contestant.check(first)
        contestant.build(first, seeds[0])
    return tasks_of(SweepSpec("", (problem,), (rounds,), tuple(contestants), tuple(seeds)))


def tasks_of(spec: SweepSpec) -> tuple[Task, ...]:
    """Every run of a sweep, seed by seed, so that one cut short still holds paired runs; equal configurations once."""
    code, found = code_version(), dict[str, Task]()
    first = [
        Task("", problem, content_of(problem), contestant, spec.seeds[0], rounds)
        for problem, rounds in zip(spec.problems, spec.rounds, strict=True)
        for contestant in spec.contestants
    ]
    documents = [configuration(task) | {"code": code} for task in first]  # once: seeds differ in nothing else
    for seed in spec.seeds:
        for task, document in zip(first, documents, strict=True):
            key = key_of(document | {"seed": seed})
            found.setdefault(key, replace(task, key=key, seed=seed))
    return tuple(found.values())


def configuration(task: Task) -> dict[str, Any]:
    """Everything that decides the outcome of a run, as JSON values; defaults are written out."""
    who, problem = task.contestant, task.problem
    config = policy_config(who.policy, who.preset, who.clusters, who.settings)
    policy = {"name": who.policy, "preset": who.preset, "config": asdict(config), **_source(who.policy)}
    policy |= {"explore": f"{who.explore:g}"} if who.explore else {}
    sizes = {"name": problem.name, "content": task.content, "slate_size": problem.slate_size}
    made = {**sizes, **problem.options, **_source(problem.env)}
    return {"policy": policy, "problem": made, "rounds": task.rounds, "seed": task.seed}


def _source(name: str) -> dict[str, str]:
    """The hash of the module behind a name registered from outside; nothing for what neuclust ships."""
    found = source_hash(name)
    return {} if found is None else {"source": found}


def key_of(document: dict[str, Any]) -> str:
    """The first 32 hexadecimal digits of SHA-256 over canonical JSON: equal runs, equal keys."""
    text = json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()[:KEY_LETTERS]


def content_of(problem: Problem) -> str | None:
    """The hash of the problem's file; None without one."""
    return None if problem.data is None else file_hash(problem.data)


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
        yield from root.glob(pattern)
    for room in _DECIDING_ROOMS:
        yield from (file for file in (root / room).rglob("*") if file.suffix in (".py", ".json"))


@dataclass(frozen=True, slots=True)
class Hooks:
    """Calls made during a run: `on_round` after every round, `stop` before it, `on_policy` with the final policy, and
    the `log` it is written to."""

    on_round: Callable[[Tally], None] | None = None
    stop: Callable[[], bool] | None = None
    on_policy: Callable[[Policy], None] | None = None
    log: LogWriter | None = None  # gets every decision, as the run `run_name`


def play_task(task: Task, hooks: Hooks | None = None, dataset: ProfileDataset | None = None) -> RunRecord:
    """The record of a task; `dataset` is the content of the problem's file where it was read elsewhere."""
    if task.contestant.clustering is not None:
        import sklearn.cluster  # noqa: F401  # loaded here, or the first run's clock would count it
    hooks = Hooks() if hooks is None else hooks
    opened = opened_problem(task) if dataset is None else _open(task.problem, dataset, task.part)
    environment = environment_of(task) if dataset is None else opened.environment(task.seed)
    task.contestant.check(environment)
    policy = task.contestant.build(environment, task.seed)
    played = LaterRounds(environment, opened.skipped) if opened.skipped else environment
    label = label_of(task, opened)
    log = None
    if hooks.log is not None:
        log = RunLog(hooks.log, run_start(run_name(task), task.contestant.title, policy, environment))
    calls = RunHooks(on_round=hooks.on_round, stop=hooks.stop, log=log)
    record = run(policy, played, task.rounds, task.seed, label=label, **calls)
    if hooks.on_policy is not None and record.rounds:
        hooks.on_policy(policy)
    return record


def run_name(task: Task) -> str:
    """The run of a task in a log: `linucb-seed0`."""
    return f"{task.contestant.title}-seed{task.seed}"


def label_of(task: Task, opened: OpenProblem) -> RunLabel:
    """What the record says of policy and problem."""
    who, problem = task.contestant, task.problem
    options = {**problem.options, **opened.label}
    return RunLabel(who.policy, who.preset, problem.name, who.clusters, who.told, options, opened.rewards)


def labelled(record: RunRecord, task: Task) -> RunRecord:
    """A run under the names of this task: equal runs are played once, under the names of the first task."""
    asked = task.contestant
    return replace(record, policy=asked.policy, preset=asked.preset, clusters=asked.clusters, settings=asked.told)


def opened_problem(task: Task) -> OpenProblem:
    """The problem of a task, opened once per process."""
    return _opened(task.problem, task.content, task.part)


def environment_of(task: Task) -> SlateEnvironment:
    """The environment of its seed, shared with the last tasks of the same problem and seed."""
    return _environment(task.problem, task.content, task.part, task.seed)


@lru_cache(maxsize=4)
def _opened(problem: Problem, content: str | None, part: Part | None) -> OpenProblem:
    return _open(problem, None if problem.data is None else _dataset(problem.data, content), part)


def _open(problem: Problem, dataset: ProfileDataset | None, part: Part | None) -> OpenProblem:
    return open_problem(problem, dataset) if part is None else split_problem(problem, dataset).part(part)


@lru_cache(maxsize=1)
def _environment(problem: Problem, content: str | None, part: Part | None, seed: int) -> SlateEnvironment:
    """One environment for the contestants of a seed: it has no state, and some take seconds to make."""
    return _opened(problem, content, part).environment(seed)


@lru_cache(maxsize=2)
def _dataset(file: Path, content: str | None) -> ProfileDataset:
    """The file as it was when the tasks were made, or a refusal: its hash stands in their keys."""
    if file_hash(file) != content:
        raise DataError(f"{file}: expected the file the sweep began with, got another; start the sweep again")
    return load_dataset(file)
