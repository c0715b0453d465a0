"""A problem by name or file with its options, and how it is opened: an environment per seed."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from neuclust.data.dataset import ProfileDataset, load_dataset
from neuclust.environments.catalogue import build_environment, takes_data
from neuclust.environments.profiles import profile_environment, refuse_simulation
from neuclust.environments.rewards import parse_reward
from neuclust.environments.slates import SlateEnvironment
from neuclust.errors import ConfigError

DEFAULT_ENV = "movielens-twin"
DEFAULT_ROUNDS = 1000


@dataclass(frozen=True, slots=True)
class Problem:
    """A catalogue environment, a prepared file (`data`), or an environment made of a file (`ml-*` on MovieLens).

    `rounds` None = 1000, or all of a shorter file. A file with offers is replayed, another is simulated.
    """

    env: str = DEFAULT_ENV
    data: Path | None = None
    slate_size: int = 5
    rounds: int | None = None
    slate_reward: str | None = None
    arms_per_round: int | None = None
    start_ratings: int | None = None

    @property
    def name(self) -> str:
        """What records and pictures call it."""
        if takes_data(self.env):
            return f"{self.env} (twin)" if self.data is None else self.env
        return self.env if self.data is None else self.data.stem

    @property
    def options(self) -> dict[str, str | int | None]:
        """What a record keeps beside the name."""
        return {name: getattr(self, name) for name in ("slate_reward", "arms_per_round", "start_ratings")}


@dataclass(frozen=True, slots=True)
class OpenProblem:
    """A problem ready to be played, without its first `skipped` rounds; `label` joins the options in records."""

    environment: Callable[[int], SlateEnvironment]
    rounds: int
    rewards: str = "built-in"  # their source: built-in, simulated or replayed
    skipped: int = 0
    label: Mapping[str, str] = field(default_factory=dict)


def rewards_sentence(source: str, name: str) -> str:
    """The source of rewards in words; empty for a record that does not say."""
    words = {
        "built-in": f"rewards: of the built-in problem {name}",
        "simulated": "rewards: simulated from the profiles (the paper's model, tanh(s/4)), not from the file",
        "replayed": "rewards: the file's own, replayed",
    }
    return words.get(source, "")


def open_problem(problem: Problem, dataset: ProfileDataset | None = None) -> OpenProblem:
    """How each seed's environment is made; `dataset` is the content of the problem's file where it was read before."""
    if problem.slate_reward is not None:
        parse_reward(problem.slate_reward, problem.slate_size)
    if dataset is None and problem.data is not None:
        dataset = load_dataset(problem.data)
    rounds = DEFAULT_ROUNDS if problem.rounds is None else problem.rounds
    if dataset is None or takes_data(problem.env):
        return OpenProblem(lambda seed: _environment(problem, rounds, seed, dataset), rounds)
    if dataset.offers is not None:
        refuse_simulation(problem.data, arms_per_round=problem.arms_per_round, start_ratings=problem.start_ratings)
    held, source = len(dataset.rounds), "simulated" if dataset.offers is None else "replayed"
    length = min(rounds, held) if problem.rounds is None else rounds
    if length > held:
        wanted = f"at most the {held} rounds it holds"
        raise ConfigError(f"{problem.data}: expected {wanted}, got {length}; ask for fewer rounds")
    return OpenProblem(lambda seed: _environment(problem, length, seed, dataset), length, source)


def _environment(problem: Problem, rounds: int, seed: int, dataset: ProfileDataset | None) -> SlateEnvironment:
    text, size = problem.slate_reward, problem.slate_size
    options: dict[str, Any] = {"slate_size": size, "horizon": rounds, "seed": seed}
    options |= {"arms_per_round": problem.arms_per_round, "start_ratings": problem.start_ratings}
    if dataset is None or takes_data(problem.env):
        environment = build_environment(problem.env, reward=text, dataset=dataset, **options)
        return cast("SlateEnvironment", environment)  # or another kind, for a name from outside
    reward = None if text is None else parse_reward(text, size)
    return profile_environment(dataset, reward=reward, **options)
