"""What a problem is built from, how a round is scored, and the optional members of an environment.

Each optional member is a protocol, recognised by `isinstance`; its docstring says what happens without it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol, runtime_checkable

from torch import Tensor

from neuclust.core import Environment, Feedback, Round, Slate
from neuclust.data.dataset import ProfileDataset
from neuclust.environments.rewards import SlateReward, parse_reward
from neuclust.errors import ConfigError, suggestion


@dataclass(frozen=True, slots=True)
class ProblemSpec:
    """Sizes and seed of a problem: the same fields for every problem of the catalogue."""

    slate_size: int = 5  # K
    horizon: int = 500  # rounds are counted 1 to horizon
    seed: int = 0
    reward: SlateReward | None = None  # None: the paper's threshold at 80 %
    arms_per_round: int | None = None  # None: all arms; in `build_environment` the problem's own number
    start_ratings: int | None = None  # ratings per arm that known profiles are made of, where a problem has ratings
    dataset: ProfileDataset | None = None  # a prepared file for the problems that take one

    @classmethod
    def of(cls, spec: ProblemSpec | None, fields: Mapping[str, Any], **defaults: Any) -> ProblemSpec:
        """`spec`, or else `defaults`, with `fields` replaced; a reward may be given by its name, a horizon as None."""
        known = cls.__dataclass_fields__
        for name in fields.keys() - known.keys():
            raise ConfigError(f"no such field of a problem; {suggestion(name, known)}", field=name)
        given = {name: value for name, value in fields.items() if name != "horizon" or value is not None}
        made = replace(cls(**defaults) if spec is None else spec, **given)
        named: Any = made.reward
        return replace(made, reward=parse_reward(named, made.slate_size)) if isinstance(named, str) else made


@dataclass(frozen=True, slots=True)
class RoundScore:
    """One round against the truth. R* is the reward of the best slate with independent coins."""

    best_expected: float  # u*
    expected: float  # u(S)
    expected_regret: float  # u* − u(S)
    realised_reward: float  # R
    rival_reward: float  # R*
    clipped_regret: float  # max(0, R* − R): has a noise floor
    expected_clipped_regret: float  # E max(0, R* − R) = u*(1 − u(S)) for 0/1 rewards
    clipped_floor: float  # the same for the best slate itself
    realised_regret: float  # R* − R
    mean_gap: float  # Σ top-K μ − Σ_S μ


# --- optional members -----------------------------------------------------------------------------------------------


@runtime_checkable
class HasScore(Protocol):
    """Exact regrets of a round. Without it `scored` computes them from the two expected rewards."""

    def score(self, round: Round, slate: Slate, feedback: Feedback) -> RoundScore: ...


@runtime_checkable
class HasArrival(Protocol):
    """The round whose end brings the feedback of round t; None: it never comes. Without it feedback comes at once."""

    def arrival(self, t: int) -> int | None: ...


@runtime_checkable
class HasArms(Protocol):
    """All arms with ids (N,) and profiles (N, d). Without them clusters are formed from the first round."""

    @property
    def arm_ids(self) -> Tensor: ...

    @property
    def profiles(self) -> Tensor: ...


@runtime_checkable
class HasCounts(HasArms, Protocol):
    """(N, d) observations behind `profiles`, or None. Without them a profile tracker starts from its pseudo-count."""

    @property
    def counts(self) -> Tensor | None: ...


@runtime_checkable
class HasMeans(Protocol):
    """True mean rewards of the offered arms, (n,). Without them oracles cannot be built."""

    def means(self, round: Round) -> Tensor: ...


@runtime_checkable
class HasAverages(HasArms, Protocol):
    """Mean rewards of all arms averaged over the horizon, (N,). Without them `static` cannot be built."""

    def average_means(self) -> Tensor: ...


def arrival(environment: Environment, t: int) -> int | None:
    """The round whose end brings the feedback of round t."""
    return environment.arrival(t) if isinstance(environment, HasArrival) else t


def scored(environment: Environment, round: Round, slate: Slate, feedback: Feedback) -> RoundScore:
    """The environment's own score, or one from u* and u(S) alone, where u* replaces R*, which is not drawn.

    E max(0, R* − R) becomes max(0, u* − u(S)), its floor 0, and the gap of means K (u* − u(S)), as for the mean.
    """
    if isinstance(environment, HasScore):
        return environment.score(round, slate, feedback)
    best, expected = environment.best_expected_reward(round), environment.expected_reward(round, slate)
    regret, realised = best - expected, float(feedback.slate_reward)
    return RoundScore(
        best_expected=best,
        expected=expected,
        expected_regret=regret,
        realised_reward=realised,
        rival_reward=best,
        clipped_regret=max(0.0, best - realised),
        expected_clipped_regret=max(0.0, regret),
        clipped_floor=0.0,
        realised_regret=best - realised,
        mean_gap=round.slate_size * regret,
    )
