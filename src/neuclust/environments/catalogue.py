"""The problems neuclust ships, by name; none needs a download.

The users and movies of the twins are the same for every run seed, which deals coins, offers and start
ratings. For `clusters`, `bump` and `quadratic` the seed also deals the hidden truth, so that equal
seeds pair policies on one instance and different seeds are different instances.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from functools import lru_cache

from neuclust.data.dataset import ProfileDataset
from neuclust.data.twin import movielens_twin
from neuclust.data.yelp_twin import YELP_ROUNDS, without_plain, yelp_twin
from neuclust.environments import synthetic
from neuclust.environments.profiles import profile_environment
from neuclust.environments.rewards import SlateReward, parse_reward
from neuclust.environments.slates import SlateEnvironment
from neuclust.errors import ConfigError

TWIN_ROUNDS = 6000
OFFERED = 500  # arms a round of the synthetic problems, unless told otherwise
START_RATINGS = 5
VOLATILE_OFFER = 250  # restaurants a round of yelp-volatile, unless told otherwise
REPLAY_ADVICE = (
    "environment: replay plays back real ratings and needs a file of them; `neuclust data prepare replay "
    "--ratings ratings.csv --movies movies.csv --out replay.npz` makes it, `neuclust run --data replay.npz` plays it"
)


@dataclass(frozen=True, slots=True)
class Request:
    """What a run asks of any problem."""

    slate_size: int
    horizon: int
    seed: int
    reward: SlateReward | None
    arms_per_round: int | None
    start_ratings: int | None


@dataclass(frozen=True, slots=True)
class EnvironmentSpec:
    """A problem's name, what it is in a line, and how to build it."""

    name: str
    summary: str
    builder: Callable[[Request], SlateEnvironment]


def build_environment(
    name: str,
    *,
    slate_size: int,
    horizon: int,
    seed: int,
    reward: str | SlateReward | None = None,
    arms_per_round: int | None = None,
    start_ratings: int | None = None,
) -> SlateEnvironment:
    """The named problem; `reward` defaults to the paper's threshold at 80 %."""
    if name == "replay":
        raise ConfigError(REPLAY_ADVICE)
    if name not in ENVIRONMENTS:
        raise ConfigError(f"environment: expected one of {', '.join(_closest_first(name))}, got {name!r}")
    if isinstance(reward, str):
        reward = parse_reward(reward, slate_size)
    request = Request(slate_size, horizon, seed, reward, arms_per_round, start_ratings)
    return ENVIRONMENTS[name].builder(request)


def _closest_first(name: str) -> list[str]:
    return sorted(ENVIRONMENTS, key=lambda known: -SequenceMatcher(None, name.lower(), known).ratio())


@lru_cache(maxsize=2)
def _twin(n_rounds: int) -> ProfileDataset:
    return movielens_twin(n_rounds=n_rounds)


@lru_cache(maxsize=1)
def _yelp(n_rounds: int) -> ProfileDataset:
    return yelp_twin(n_rounds=n_rounds)


def _profiles(dataset: ProfileDataset, request: Request, start_ratings: int | None) -> SlateEnvironment:
    return profile_environment(
        dataset,
        slate_size=request.slate_size,
        horizon=request.horizon,
        seed=request.seed,
        reward=request.reward,
        arms_per_round=request.arms_per_round,
        start_ratings=start_ratings,
    )


def _movielens_twin(request: Request) -> SlateEnvironment:
    return _profiles(_twin(max(TWIN_ROUNDS, request.horizon)), request, request.start_ratings)


def _cold_start(request: Request) -> SlateEnvironment:
    dataset = replace(_twin(max(TWIN_ROUNDS, request.horizon)), name="cold-start")
    return _profiles(dataset, request, START_RATINGS if request.start_ratings is None else request.start_ratings)


def _yelp_twin(request: Request) -> SlateEnvironment:
    _refuse_start_ratings(request)
    return _profiles(_yelp(max(YELP_ROUNDS, request.horizon)), request, None)


def _yelp_volatile(request: Request) -> SlateEnvironment:
    _refuse_start_ratings(request)
    dataset = replace(without_plain(_yelp(max(YELP_ROUNDS, request.horizon))), name="yelp-volatile")
    offered = VOLATILE_OFFER if request.arms_per_round is None else request.arms_per_round
    return _profiles(dataset, replace(request, arms_per_round=offered), None)


def _refuse_start_ratings(request: Request) -> None:
    if request.start_ratings is not None:
        raise ConfigError("start_ratings: expected none, since this problem has no ratings; use cold-start")


def _synthetic(problem: Callable[..., SlateEnvironment]) -> Callable[[Request], SlateEnvironment]:
    def build(request: Request) -> SlateEnvironment:
        _refuse_start_ratings(request)
        return problem(
            slate_size=request.slate_size,
            horizon=request.horizon,
            seed=request.seed,
            reward=request.reward,
            arms_per_round=OFFERED if request.arms_per_round is None else request.arms_per_round,
        )

    return build


ENVIRONMENTS: dict[str, EnvironmentSpec] = {
    spec.name: spec
    for spec in (
        EnvironmentSpec(
            "movielens-twin",
            "the paper's MovieLens problem on synthetic users: 10,168 arms, 20 genres, a movie a round",
            _movielens_twin,
        ),
        EnvironmentSpec(
            "cold-start",
            "the same users known by 5 ratings each, while their true tastes pay: for the online variant",
            _cold_start,
        ),
        EnvironmentSpec(
            "yelp-twin",
            "the paper's Yelp problem on synthetic restaurants: 52,268 arms, 171 terms, a user a round",
            _yelp_twin,
        ),
        EnvironmentSpec(
            "yelp-volatile",
            "250 of them a round, without those that list nothing but Restaurants, which would win every round",
            _yelp_volatile,
        ),
        EnvironmentSpec(
            "clusters",
            "20 true clusters of arms, in each another shape of the reward: 500 of 5,000 arms a round",
            _synthetic(synthetic.clusters),
        ),
        EnvironmentSpec(
            "bump",
            "one hidden spot on the sphere is good, no linear score finds it: 500 of 5,000 arms a round",
            _synthetic(synthetic.bump),
        ),
        EnvironmentSpec(
            "quadratic",
            "both ends of one hidden axis are good: 500 of 5,000 arms a round",
            _synthetic(synthetic.quadratic),
        ),
    )
}
