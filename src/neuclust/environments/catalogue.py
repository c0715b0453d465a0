"""The problems by name: those neuclust ships, none of which needs a download, and those registered from outside.

Users and movies of the twins are the same for every seed, which deals coins, offers and start ratings.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from neuclust.core import Environment
from neuclust.data.dataset import ProfileDataset
from neuclust.data.twin import movielens_twin
from neuclust.data.yelp_twin import YELP_ROUNDS, without_plain, yelp_twin
from neuclust.environments import beyond, movielens, shops, synthetic
from neuclust.environments.problem import ProblemSpec
from neuclust.environments.profiles import profile_environment
from neuclust.environments.slates import SlateEnvironment
from neuclust.errors import ConfigError, suggestion
from neuclust.extensions import Registry, first_sentence

TWIN_ROUNDS = 6000
START_RATINGS = 5
VOLATILE_OFFER = 250  # restaurants per round of yelp-volatile by default
REPLAY_ADVICE = "replay plays back real ratings and needs a prepared file of them"

Builder = Callable[[ProblemSpec], Environment]


@dataclass(frozen=True, slots=True)
class EnvironmentSpec:
    """A problem's name, what it is in a line, and how it is built from sizes and a seed."""

    name: str
    builder: Builder
    summary: str
    takes_data: bool = False  # played on a prepared MovieLens file where one is given, on the twin elsewhere

    @property
    def source(self) -> Builder:
        return self.builder

    @property
    def options(self) -> dict[str, Any]:
        return {"summary": self.summary, "takes_data": self.takes_data}


def build_environment(name: str, spec: ProblemSpec | None = None, /, **fields: Any) -> Environment:
    """The named problem with the fields of a `ProblemSpec`; `reward` may be a name such as `threshold:0.6`.

    `arms_per_round` defaults to the problem's own number, `dataset` of `ml-*` to the twin. Every problem neuclust
    ships is a `SlateEnvironment`; one from outside, registered or `package.module:factory`, any `Environment`.
    """
    found = environment_spec(name)
    spec = ProblemSpec.of(spec, fields)
    if spec.dataset is not None and not found.takes_data:
        raise ConfigError(f"{name}: expected no dataset, since this problem makes its own arms; drop it")
    return found.builder(spec)


def environment_spec(name: str) -> EnvironmentSpec:
    """The problem of this name, or an error with the closest ones."""
    if name == "replay":
        raise ConfigError(REPLAY_ADVICE, field="environment")
    found = REGISTRY.find(name)
    if found is None:
        raise ConfigError(f"no built-in problem {name!r}; {suggestion(name, environments())}", field="environment")
    return found


def environments() -> dict[str, EnvironmentSpec]:
    """All problems by name: built in, registered, and those of installed packages."""
    return REGISTRY.everything()


def takes_data(name: str) -> bool:
    """Whether the named problem is made of a prepared MovieLens file where one is given."""
    spec = ENVIRONMENTS.get(name) or REGISTRY.registered.get(name)
    return spec is not None and spec.takes_data


def register_environment(
    name: str, builder: Builder | None = None, *, summary: str = "", takes_data: bool = False
) -> Any:
    """Make `builder(spec: ProblemSpec) -> Environment` available by name; without a builder, a decorator for one.

    `summary` defaults to the first line of the builder's docstring. Returns the builder.
    """
    if builder is None:
        return lambda found: register_environment(name, found, summary=summary, takes_data=takes_data)
    spec = _spec_of(name, builder)
    REGISTRY.register(replace(spec, summary=summary or spec.summary, takes_data=takes_data))
    return builder


def _spec_of(name: str, builder: Any) -> EnvironmentSpec:
    if not callable(builder) or not hasattr(builder, "__qualname__"):
        raise ConfigError(f"{name}: expected what builds an environment of a ProblemSpec, got {builder!r:.100}")
    return EnvironmentSpec(name, builder, first_sentence(builder))


# --- the problems neuclust ships ------------------------------------------------------------------------------


_twin = lru_cache(maxsize=2)(movielens_twin)
_yelp = lru_cache(maxsize=1)(yelp_twin)


def _movielens(spec: ProblemSpec) -> ProfileDataset:
    return _twin(n_rounds=max(TWIN_ROUNDS, spec.horizon)) if spec.dataset is None else spec.dataset


def _ml_paper(spec: ProblemSpec) -> SlateEnvironment:
    return profile_environment(replace(_movielens(spec), name="ml-paper"), spec)


def _cold_start(spec: ProblemSpec) -> SlateEnvironment:
    start = START_RATINGS if spec.start_ratings is None else spec.start_ratings
    return profile_environment(replace(_movielens(spec), name="cold-start"), spec, start_ratings=start)


def _yelp_twin(spec: ProblemSpec) -> SlateEnvironment:
    return profile_environment(_yelp(n_rounds=max(YELP_ROUNDS, spec.horizon)), _offering(spec, None))


def _yelp_volatile(spec: ProblemSpec) -> SlateEnvironment:
    dataset = replace(without_plain(_yelp(n_rounds=max(YELP_ROUNDS, spec.horizon))), name="yelp-volatile")
    return profile_environment(dataset, _offering(spec, VOLATILE_OFFER))


def _on_movielens(problem: Callable[[ProfileDataset, ProblemSpec], SlateEnvironment]) -> Builder:
    return lambda spec: problem(_movielens(spec), _offering(spec, synthetic.OFFERED))


def _synthetic(problem: Callable[[ProblemSpec], SlateEnvironment], offered: int | None = synthetic.OFFERED) -> Builder:
    return lambda spec: problem(_offering(spec, offered))


def _offering(spec: ProblemSpec, offered: int | None) -> ProblemSpec:
    """The spec of a problem without ratings, with `offered` arms per round by default."""
    if spec.start_ratings is not None:
        raise ConfigError("expected none, since this problem has no ratings; use cold-start", field="start_ratings")
    return replace(spec, arms_per_round=offered) if spec.arms_per_round is None else spec


# fmt: off
_SHIPPED: tuple[EnvironmentSpec, ...] = (
    EnvironmentSpec("movielens-twin", lambda spec: profile_environment(_movielens(spec), spec),
        "the paper's MovieLens problem on synthetic users: 10,168 arms, 20 genres, one movie per round"),
    EnvironmentSpec("cold-start", _cold_start,
        "the same users known by 5 ratings each, while their true tastes pay: for the online variant"),
    EnvironmentSpec("yelp-twin", _yelp_twin,
        "the paper's Yelp problem on synthetic restaurants: 52,268 arms, 171 terms, one user per round"),
    EnvironmentSpec("yelp-volatile", _yelp_volatile,
        "250 of them per round, without those that list nothing but Restaurants, which would win every round"),
    EnvironmentSpec("clusters", _synthetic(synthetic.clusters),
        "20 true clusters of arms, in each another shape of the reward: 500 of 5,000 arms per round"),
    EnvironmentSpec("bump", _synthetic(synthetic.bump),
        "one hidden spot on the sphere is good, no linear score finds it: 500 of 5,000 arms per round"),
    EnvironmentSpec("quadratic", _synthetic(synthetic.quadratic),
        "both ends of one hidden axis are good: 500 of 5,000 arms per round"),
    EnvironmentSpec("ml-paper", _ml_paper,
        "the paper's MovieLens problem, on a prepared file or the twin", takes_data=True),
    EnvironmentSpec("ml-volatile", _on_movielens(movielens.ml_volatile),
        "MovieLens without users who like everything: centred profiles, 500 users per round", takes_data=True),
    EnvironmentSpec("ml-ideal", _on_movielens(movielens.ml_ideal),
        "MovieLens users near a hidden ideal point are good, no linear score finds it: 500 per round", takes_data=True),
    EnvironmentSpec("ml-quadratic", _on_movielens(movielens.ml_quadratic),
        "MovieLens users at both ends of a hidden axis of tastes are good: 500 per round", takes_data=True),
    EnvironmentSpec("coverage", _synthetic(beyond.coverage),
        "the slate pays for the number of true clusters it hits: the best slate is in many"),
    EnvironmentSpec("redundancy", _synthetic(beyond.redundancy),
        "every further success of a true cluster is worth half of the one before"),
    EnvironmentSpec("cascade", _synthetic(beyond.cascade),
        "a reader leaves with the first arm that pays: order matters, later arms are not seen"),
    EnvironmentSpec("drift-none", _synthetic(beyond.drift_none),
        "one hidden taste that stays: what the drifting problems are compared with"),
    EnvironmentSpec("drift-abrupt", _synthetic(beyond.drift_abrupt),
        "the hidden taste becomes another one, at right angles, in the middle of the run"),
    EnvironmentSpec("drift-slow", _synthetic(beyond.drift_slow),
        "the hidden taste turns by a right angle over the run"),
    EnvironmentSpec("delayed", _synthetic(beyond.delayed), "clusters, where half of the feedback comes 50 rounds late"),
    EnvironmentSpec("missing", _synthetic(beyond.missing),
        "clusters, where 20 % of the rounds' feedback never comes and 30 % of the other arms' rewards are unseen"),
    EnvironmentSpec("turnover", _synthetic(beyond.turnover),
        "clusters, where arms appear and leave for good: about 1,000 of 5,000 are there at a time"),
    EnvironmentSpec("many-arms", _synthetic(beyond.many_arms, offered=None),
        "100,000 arms in 20 true clusters, all offered in every round"),
    EnvironmentSpec("long-slate", _synthetic(beyond.long_slate),
        "clusters for slates of 20 (slate size 20): no cluster offers that many good arms"),
    EnvironmentSpec("shop-rare", _synthetic(shops.shop_rare, offered=None),
        "a shop where random slates are clicked in 0.7 % of their slots: 300 of 3,000 items per request, 30 features"),
    EnvironmentSpec("shop-late", _synthetic(shops.shop_late, offered=None),
        "the same shop at 2 %, where clicks come 5 to 60 requests late and 10 % of the feedback is lost"),
    EnvironmentSpec("shop-tastes", _synthetic(shops.shop_tastes, offered=None),
        "a shop at 5 % with a best price for every segment and category, which no linear score finds"),
    EnvironmentSpec("shop-items", _synthetic(shops.shop_items, offered=None),
        "a shop at 5 % whose items have effects of their own that no feature explains; old items are replaced"),
    EnvironmentSpec("shop-slots", _synthetic(shops.shop_slots, offered=None),
        "a shop at 5 % where slot j is looked at with chance 0.7^(j - 1): order matters, unseen looks like disliked"),
    EnvironmentSpec("money", _synthetic(shops.money, offered=None),
        "a shop whose rewards are amounts: mostly 0, sometimes about the price, below 0 where an item is returned"),
    EnvironmentSpec("long-life", _synthetic(shops.long_life, offered=None),
        "a shop for 20,000 requests: coefficients turn by a right angle, 100 new items come per 1,000 requests"),
)
# fmt: on

ENVIRONMENTS = {spec.name: spec for spec in _SHIPPED}
REGISTRY = Registry("environment", "neuclust.environments", ENVIRONMENTS, _spec_of)
