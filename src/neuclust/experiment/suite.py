"""The suite: problems that separate methods, each with what it is meant to separate, and what frames its regret."""

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Literal

import torch

from neuclust.core import Slate
from neuclust.data.dataset import ProfileDataset
from neuclust.environments.catalogue import REPLAY_ADVICE
from neuclust.environments.slates import SlateEnvironment
from neuclust.errors import ConfigError, one_of
from neuclust.experiment.contestants import Contestant
from neuclust.experiment.problem import DEFAULT_ENV, Problem, open_problem
from neuclust.experiment.spec import SweepSpec
from neuclust.registry import build_policy

DATA_VARIABLE = "NEUCLUST_SHARED_DATA"
MOVIELENS_FILE, RAW_FOLDER = "movielens-25m.npz", "ml-latest-small"
QUICK_ROUNDS, QUICK_MANY = 40, 10


@dataclass(frozen=True, slots=True)
class SuiteInputs:
    """Real files at hand: the prepared MovieLens-25M, and recorded ratings prepared for replay."""

    movielens: Path | None = None
    replay: Path | None = None


NO_FILES = SuiteInputs()


@dataclass(frozen=True, slots=True)
class SuiteProblem:
    """A row of the suite; `source` says which files make it real: a prepared MovieLens, recorded ratings, or none."""

    name: str
    separates: str
    env: str
    rounds: int = 500
    slate_size: int = 5
    source: Literal["none", "movielens", "replay"] = "none"
    heavy: bool = False  # so many arms that a quick look plays few rounds

    def problem(self, inputs: SuiteInputs, rounds: int | None = None) -> Problem:
        """Ready to be played, on the files at hand."""
        data = {"none": None, "movielens": inputs.movielens, "replay": inputs.replay}[self.source]
        if self.source == "replay" and data is None:
            raise ConfigError(REPLAY_ADVICE, field="environment")
        env = DEFAULT_ENV if self.source == "replay" else self.env
        return Problem(env=env, data=data, slate_size=self.slate_size, rounds=rounds or self.rounds)

    def build(
        self, seed: int, horizon: int | None = None, data: ProfileDataset | None = None, inputs: SuiteInputs = NO_FILES
    ) -> SlateEnvironment:
        """One instance; `data` is the MovieLens or replay dataset where it was read elsewhere."""
        if data is not None and self.source != "none":
            inputs = replace(inputs, **{self.source: Path(f"{data.name}.npz")})
        return open_problem(self.problem(inputs, horizon), data).environment(seed)


# fmt: off
SUITE: tuple[SuiteProblem, ...] = (
    SuiteProblem("ml-paper",
        "Policies that explore needlessly where one linear score and one static slate are optimal.",
        "ml-paper", rounds=200, source="movielens"),
    SuiteProblem("ml-volatile", "Linear models from those that pay for flexibility or for slates inside one cluster.",
        "ml-volatile", source="movielens"),
    SuiteProblem("ml-ideal", "Neural from linear models: more is not better, near is.", "ml-ideal", source="movielens"),
    SuiteProblem("ml-quadratic", "Models of squares and signs from linear ones, which see one end of the axis at best.",
        "ml-quadratic", source="movielens"),
    SuiteProblem("clusters", "Policies that use true clusters from those that do not.", "clusters"),
    SuiteProblem("bump", "Local models from global ones: one spot is good.", "bump"),
    SuiteProblem("quadratic", "Linear luck from understanding: one end of the axis already pays well.", "quadratic"),
    SuiteProblem("yelp", "Sparse, wide, masked contexts from dense ones.", "yelp-volatile"),
    SuiteProblem("replay", "What holds on real ratings from what holds in simulation.", "replay", source="replay"),
    SuiteProblem("coverage", "Slates across clusters from the top K: each cluster pays once.", "coverage"),
    SuiteProblem("redundancy", "The same, less sharply: further successes of a cluster are worth half.", "redundancy"),
    SuiteProblem("cascade", "Policies that order their slate and stand unseen rewards from others.", "cascade"),
    SuiteProblem("drift-none", "Nothing: what the two drifting problems are held against.", "drift-none"),
    SuiteProblem("drift-abrupt", "Policies that can forget from those that average for ever.", "drift-abrupt"),
    SuiteProblem("drift-slow", "The same, where no moment of change could be detected.", "drift-slow"),
    SuiteProblem("delayed", "Policies that repeat themselves while they wait from those that spread out.", "delayed"),
    SuiteProblem("missing", "Policies that learn from fragments from those that need whole feedback.", "missing"),
    SuiteProblem("turnover", "What is learned of contexts from what is learned of single arms.", "turnover"),
    SuiteProblem("many-arms", "Policies that find the best few of 100,000 arms, and the time per round.",
        "many-arms", 200, heavy=True),
    SuiteProblem("long-slate", "Slates of 20: no single cluster can fill one.", "long-slate", slate_size=20),
    SuiteProblem("shop-rare", "Policies that learn from ten clicks from those that need hundreds.", "shop-rare", 1500),
    SuiteProblem("shop-late", "The same where clicks come late and some never: policies that can wait from others.",
        "shop-late", 1500),
    SuiteProblem("shop-tastes", "Non-linear from linear models at a click rate of 5 %.", "shop-tastes", 1500),
    SuiteProblem("shop-items", "Policies that learn items by themselves from those that see features alone.",
        "shop-items", 1500),
    SuiteProblem("shop-slots", "Policies that tell an unseen slot from a bad item, and order their slate.",
        "shop-slots", 1500),
    SuiteProblem("money", "Policies that learn amounts of any size and sign from those for chances.", "money", 1500),
    SuiteProblem("long-life", "Policies as good and as fast after 20,000 rounds as after 2,000.", "long-life", 20_000),
)
# fmt: on


def find_inputs(folder: Path | None, replay: Path | None = None) -> SuiteInputs:
    """The real files below `folder`, else below the folder NEUCLUST_SHARED_DATA names; neither is required."""
    named = os.environ.get(DATA_VARIABLE)
    place = folder if folder is not None else Path(named) if named else None
    if place is None:
        return SuiteInputs(None, replay)
    if not place.is_dir():
        wanted = f"a folder with {MOVIELENS_FILE} or {RAW_FOLDER}"
        raise ConfigError(f"expected {wanted}, got {place}; name another", field="data")
    file = place / MOVIELENS_FILE
    return SuiteInputs(file.absolute() if file.is_file() else None, replay)


def chosen_problems(names: Sequence[str], inputs: SuiteInputs) -> tuple[SuiteProblem, ...]:
    """The named problems, or all; `replay` only where recorded ratings are at hand."""
    known = {problem.name: problem for problem in SUITE}
    for name in names:
        if name not in known:
            raise ConfigError(one_of(name, known), field="problem")
    found = tuple(known[name] for name in names) or SUITE
    return tuple(problem for problem in found if problem.source != "replay" or inputs.replay is not None)


def suite_spec(
    problems: Sequence[SuiteProblem],
    contestants: Sequence[Contestant],
    seeds: Sequence[int],
    inputs: SuiteInputs,
    rounds: int | None = None,
    quick: bool = False,
) -> SweepSpec:
    """The suite as a sweep; `rounds` shortens every problem, `quick` to a first look."""
    quickly = [min(one.rounds, QUICK_MANY if one.heavy else QUICK_ROUNDS) if quick else one.rounds for one in problems]
    lengths = tuple(quickly if rounds is None else [rounds] * len(quickly))
    played = tuple(problem.problem(inputs, length) for problem, length in zip(problems, lengths, strict=True))
    return SweepSpec("suite", played, lengths, tuple(contestants), tuple(seeds))


@dataclass(frozen=True, slots=True)
class References:
    """Regrets that frame a problem: the best slate earns `oracle` and has none, the others lose so much to it."""

    oracle: float  # Σ u*
    top_k: float  # regret of the K largest means: 0 where the reward counts arms
    static: float  # regret of the best slate by every arm's average mean
    cluster: float  # regret of the best slate inside one k-means cluster
    uniform: float


def references(environment: SlateEnvironment, rounds: int, clusters: int = 15) -> References:
    """Regrets of policies that know the truth, and of uniform slates, in the first `rounds` rounds."""
    named = {"top_k": "oracle", "cluster": "cluster-oracle", "uniform": "uniform"}
    build = partial(build_policy, environment=environment, seed=environment.seed, clusters=clusters)
    policies = {key: build(name) for key, name in named.items()}
    averages = environment.average_means()
    order = torch.argsort(environment.arm_ids)
    ids = environment.arm_ids[order]
    lost, best = dict.fromkeys((*policies, "static"), 0.0), 0.0
    for t in range(1, rounds + 1):
        round = environment.round(t)
        ideal = environment.best_expected_reward(round)
        slates = {key: policy.select(round) for key, policy in policies.items()}
        means = averages[order[torch.searchsorted(ids, round.arm_ids)]]
        positions = environment.pays.best(means, environment.labels(round), round.arm_ids)
        slates["static"] = Slate(positions, means[positions], means.new_zeros(len(positions)))
        for key, slate in slates.items():
            lost[key] += ideal - environment.expected_reward(round, slate)
        best += ideal
    return References(oracle=best, **lost)
