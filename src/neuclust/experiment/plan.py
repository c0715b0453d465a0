"""What is to be run: a problem, the policies that meet on it and the seeds, checked before the start."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, cast

from neuclust.data.dataset import ProfileDataset, load_dataset
from neuclust.environments.catalogue import build_environment, takes_data
from neuclust.environments.profiles import profile_environment
from neuclust.environments.rewards import parse_reward
from neuclust.environments.slates import SlateEnvironment
from neuclust.errors import ConfigError
from neuclust.experiment.contestants import Contestant

RewardSource = Literal["built-in", "simulated", "replayed"]
DEFAULT_ENV = "movielens-twin"
DEFAULT_ROUNDS = 1000


@dataclass(frozen=True, slots=True)
class Problem:
    """A catalogue environment, a prepared file (`data`), or an environment made of a file (`ml-*` on MovieLens);
    `rounds` None = 1000, or all of a shorter file.

    A file that says who was really offered is played back; any other is simulated from its profiles.
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
        if takes_data(self.env):
            return f"{self.env} (twin)" if self.data is None else self.env
        return self.env if self.data is None else self.data.stem

    @property
    def options(self) -> dict[str, str | int | None]:
        """What a record keeps beside the name."""
        return {
            "slate_reward": self.slate_reward,
            "arms_per_round": self.arms_per_round,
            "start_ratings": self.start_ratings,
        }


@dataclass(frozen=True, slots=True)
class Plan:
    """Every contestant meets every seed's environment, the same one for all: common random numbers."""

    problem: Problem
    contestants: tuple[Contestant, ...]
    seeds: tuple[int, ...]
    rounds: int
    environment: Callable[[int], SlateEnvironment]
    rewards: RewardSource = "built-in"

    @property
    def size(self) -> int:
        return len(self.contestants) * len(self.seeds)

    def matches(self) -> Iterator[tuple[int, SlateEnvironment, Contestant]]:
        """Seed by seed, so that a plan cut short still holds paired runs."""
        for seed in self.seeds:
            environment = self.environment(seed)
            for contestant in self.contestants:
                yield seed, environment, contestant


def make_plan(problem: Problem, contestants: Sequence[Contestant], seeds: Sequence[int]) -> Plan:
    """Open the problem and try every contestant on it; whatever cannot work is refused here."""
    if problem.slate_reward is not None:
        parse_reward(problem.slate_reward, problem.slate_size)
    dataset = None if problem.data is None else load_dataset(problem.data)
    environment_of, rounds = open_problem(problem, dataset)
    first = environment_of(seeds[0])
    for contestant in contestants:
        contestant.check(first)
        contestant.build(first, seeds[0])
    return Plan(problem, tuple(contestants), tuple(seeds), rounds, environment_of, reward_source(problem, dataset))


def reward_source(problem: Problem, dataset: ProfileDataset | None) -> RewardSource:
    """Whose rewards are played: those of a problem of the catalogue, of the paper's model, or of the file itself."""
    if dataset is None or takes_data(problem.env):
        return "built-in"
    return "simulated" if dataset.offers is None else "replayed"


def rewards_sentence(source: str, name: str) -> str:
    """Whose rewards are played on the problem of this name; nothing where a record does not say."""
    words = {
        "built-in": f"rewards: of the built-in problem {name}",
        "simulated": "rewards: simulated from the profiles (the paper's model, tanh(s/4)), not from the file",
        "replayed": "rewards: the file's own, replayed",
    }
    return words.get(source, "")


def open_problem(
    problem: Problem, dataset: ProfileDataset | None = None
) -> tuple[Callable[[int], SlateEnvironment], int]:
    """How each seed's environment is made, and how many rounds it is played; `dataset` where the file was read."""
    if problem.data is None:
        rounds = DEFAULT_ROUNDS if problem.rounds is None else problem.rounds
        return lambda seed: _from_catalogue(problem, rounds, seed), rounds
    dataset = load_dataset(problem.data) if dataset is None else dataset
    if takes_data(problem.env):
        rounds = DEFAULT_ROUNDS if problem.rounds is None else problem.rounds
        return lambda seed: _from_catalogue(problem, rounds, seed, dataset), rounds
    if dataset.offers is not None:
        _refuse_simulation(problem)
    held = len(dataset.rounds)
    rounds = min(DEFAULT_ROUNDS, held) if problem.rounds is None else problem.rounds
    if rounds > held:
        raise ConfigError(
            f"{problem.data}: expected at most the {held} rounds it holds, got {rounds}; ask for fewer rounds"
        )
    return lambda seed: _from_dataset(problem, dataset, rounds, seed), rounds


def _from_catalogue(
    problem: Problem, rounds: int, seed: int, dataset: ProfileDataset | None = None
) -> SlateEnvironment:
    environment = build_environment(
        problem.env,
        slate_size=problem.slate_size,
        horizon=rounds,
        seed=seed,
        reward=problem.slate_reward,
        arms_per_round=problem.arms_per_round,
        start_ratings=problem.start_ratings,
        dataset=dataset,
    )
    return cast("SlateEnvironment", environment)  # or another kind, for a name from outside


def _from_dataset(problem: Problem, dataset: ProfileDataset, rounds: int, seed: int) -> SlateEnvironment:
    text = problem.slate_reward
    reward = None if text is None else parse_reward(text, problem.slate_size)
    return profile_environment(
        dataset,
        slate_size=problem.slate_size,
        horizon=rounds,
        seed=seed,
        reward=reward,
        arms_per_round=problem.arms_per_round,
        start_ratings=problem.start_ratings,
    )


def _refuse_simulation(problem: Problem) -> None:
    """Options that would change what really happened."""
    for name, value in (("arms-per-round", problem.arms_per_round), ("start-ratings", problem.start_ratings)):
        if value is not None:
            raise ConfigError(
                f"--{name}: expected none with {problem.data}, which plays back recorded rewards of the arms that were "
                f"really there, got {value}; drop it"
            )
