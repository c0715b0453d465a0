"""The problems neuclust ships, by name; none needs a download.

The users and movies of the twins are the same for every run seed, which deals coins, offers and start
ratings. For `clusters`, `bump` and `quadratic` the seed also deals the hidden truth, so that equal
seeds pair policies on one instance and different seeds are different instances.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache

from neuclust.data.dataset import ProfileDataset
from neuclust.data.twin import movielens_twin
from neuclust.data.yelp_twin import YELP_ROUNDS, without_plain, yelp_twin
from neuclust.environments import beyond, movielens, synthetic
from neuclust.environments.profiles import profile_environment
from neuclust.environments.rewards import SlateReward, parse_reward
from neuclust.environments.slates import SlateEnvironment
from neuclust.errors import ConfigError, suggestion

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
    dataset: ProfileDataset | None = None


@dataclass(frozen=True, slots=True)
class EnvironmentSpec:
    """A problem's name, what it is in a line, and how to build it."""

    name: str
    summary: str
    builder: Callable[[Request], SlateEnvironment]
    takes_data: bool = False  # played on a prepared MovieLens file where one is given, on the twin elsewhere


def build_environment(
    name: str,
    *,
    slate_size: int,
    horizon: int,
    seed: int,
    reward: str | SlateReward | None = None,
    arms_per_round: int | None = None,
    start_ratings: int | None = None,
    dataset: ProfileDataset | None = None,
) -> SlateEnvironment:
    """The named problem; `reward` defaults to the paper's threshold at 80 %, `dataset` of `ml-*` to the twin."""
    if name == "replay":
        raise ConfigError(REPLAY_ADVICE)
    if name not in ENVIRONMENTS:
        raise ConfigError(f"environment: no built-in problem {name!r}; {suggestion(name, ENVIRONMENTS)}")
    if isinstance(reward, str):
        reward = parse_reward(reward, slate_size)
    if dataset is not None and not ENVIRONMENTS[name].takes_data:
        raise ConfigError(f"{name}: expected no dataset, since this problem makes its own arms; drop it")
    request = Request(slate_size, horizon, seed, reward, arms_per_round, start_ratings, dataset)
    return ENVIRONMENTS[name].builder(request)


def takes_data(name: str) -> bool:
    """Whether the named problem is made of a prepared MovieLens file where one is given."""
    return name in ENVIRONMENTS and ENVIRONMENTS[name].takes_data


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


def _movielens(request: Request) -> ProfileDataset:
    return _twin(max(TWIN_ROUNDS, request.horizon)) if request.dataset is None else request.dataset


def _ml_paper(request: Request) -> SlateEnvironment:
    return _profiles(replace(_movielens(request), name="ml-paper"), request, request.start_ratings)


def _on_movielens(problem: Callable[..., SlateEnvironment]) -> Callable[[Request], SlateEnvironment]:
    def build(request: Request) -> SlateEnvironment:
        _refuse_start_ratings(request)
        return problem(
            _movielens(request),
            slate_size=request.slate_size,
            horizon=request.horizon,
            seed=request.seed,
            reward=request.reward,
            arms_per_round=OFFERED if request.arms_per_round is None else request.arms_per_round,
        )

    return build


def _refuse_start_ratings(request: Request) -> None:
    if request.start_ratings is not None:
        raise ConfigError("start_ratings: expected none, since this problem has no ratings; use cold-start")


def _synthetic(
    problem: Callable[..., SlateEnvironment], offered: int | None = OFFERED
) -> Callable[[Request], SlateEnvironment]:
    def build(request: Request) -> SlateEnvironment:
        _refuse_start_ratings(request)
        return problem(
            slate_size=request.slate_size,
            horizon=request.horizon,
            seed=request.seed,
            reward=request.reward,
            arms_per_round=offered if request.arms_per_round is None else request.arms_per_round,
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
        EnvironmentSpec(
            "ml-paper",
            "the paper's MovieLens problem, on a prepared file or the twin",
            _ml_paper,
            takes_data=True,
        ),
        EnvironmentSpec(
            "ml-volatile",
            "MovieLens without users who like everything: centred profiles, 500 users a round",
            _on_movielens(movielens.ml_volatile),
            takes_data=True,
        ),
        EnvironmentSpec(
            "ml-ideal",
            "MovieLens users near a hidden ideal point are good, which no linear score can rank: 500 a round",
            _on_movielens(movielens.ml_ideal),
            takes_data=True,
        ),
        EnvironmentSpec(
            "ml-quadratic",
            "MovieLens users at both ends of a hidden axis of tastes are good: 500 a round",
            _on_movielens(movielens.ml_quadratic),
            takes_data=True,
        ),
        EnvironmentSpec(
            "coverage",
            "the slate pays for the number of true clusters it hits: the best slate is in many",
            _synthetic(beyond.coverage),
        ),
        EnvironmentSpec(
            "redundancy",
            "every further success of a true cluster is worth half of the one before",
            _synthetic(beyond.redundancy),
        ),
        EnvironmentSpec(
            "cascade",
            "a reader leaves with the first arm that pays: order matters, later arms are not seen",
            _synthetic(beyond.cascade),
        ),
        EnvironmentSpec(
            "drift-none",
            "one hidden taste that stays: what the drifting problems are held against",
            _synthetic(beyond.drift_none),
        ),
        EnvironmentSpec(
            "drift-abrupt",
            "the hidden taste becomes another one, at right angles, in the middle of the run",
            _synthetic(beyond.drift_abrupt),
        ),
        EnvironmentSpec(
            "drift-slow", "the hidden taste turns by a right angle over the run", _synthetic(beyond.drift_slow)
        ),
        EnvironmentSpec(
            "delayed", "clusters, where half of the feedback comes 50 rounds late", _synthetic(beyond.delayed)
        ),
        EnvironmentSpec(
            "missing",
            "clusters, where 20 % of the rounds' feedback never comes and 30 % of the other arms' rewards are unseen",
            _synthetic(beyond.missing),
        ),
        EnvironmentSpec(
            "turnover",
            "clusters, where arms appear and leave for good: about 1,000 of 5,000 are there at a time",
            _synthetic(beyond.turnover),
        ),
        EnvironmentSpec(
            "many-arms",
            "100,000 arms in 20 true clusters, all offered in every round",
            _synthetic(beyond.many_arms, offered=None),
        ),
        EnvironmentSpec(
            "long-slate",
            "clusters for slates of 20 (--slate-size 20): no cluster offers that many good arms",
            _synthetic(beyond.long_slate),
        ),
    )
}
