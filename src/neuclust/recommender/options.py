"""The settings of a recommender, as a user gives them and as they are kept."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, TypedDict

from neuclust.configuration import from_mapping
from neuclust.errors import ConfigError, brief, suggestion
from neuclust.recommender.feedback.decisions import FeedbackConfig
from neuclust.recommender.feedback.rewards import SlateValue, slate_value
from neuclust.recommender.learner import PolicyChoice, settings_of
from neuclust.recommender.names import by_option
from neuclust.recommender.tables.features import Features
from neuclust.slates.propensities import Exploration

MOST_SLOTS = 1_000
MOST_VALUES = 10_000_000  # of items of closed decisions that are remembered unless more is asked for: 170 megabytes


class RecommenderOptions(TypedDict, total=False):
    """What may be said when a recommender is made, beside its tables."""

    policy: str  # "auto", "linucb", "popular", "neuclust:paper", … (`neuclust policies`)
    settings: Mapping[str, Any] | None  # of the policy: {"alpha": 0.5}
    seed: int
    exploration: Exploration | float | None  # around the policy, with exact propensities; a number is its share
    features: Features | None
    cross: Sequence[Sequence[str]] | None  # the same as Features(cross=…)
    match: Sequence[Sequence[str]] | None
    width: int | None
    reward: str | Callable[[list[float]], float]  # what a slate is worth: sum, any, threshold:0.8 or a function
    reward_range: tuple[float, float]  # of one item's value: (0, 1) for clicks, (0, 5) for grades, (0, 200) for money
    window: float  # seconds a decision stays open
    learn_after: float | None  # seconds after which it is learned at the latest; None: the window
    combine: Literal["max", "last", "sum"]  # several values of one item
    unanswered: Literal["zeros", "unseen"]  # what items nobody named count when the window ends
    remember: int  # closed decisions and request ids that are still known
    clock: Callable[[], float]  # seconds
    log: str | Path | None  # a file of JSON lines that keeps everything, for `refit` and for evaluation


@dataclass(frozen=True)
class Settings:
    """The same, checked; all but functions and places are saved."""

    item_id: str
    user_id: str | None
    slate_size: int
    policy: PolicyChoice
    features: Features
    feedback: FeedbackConfig
    reward: SlateValue


def read_settings(item_id: object, user_id: object, slate_size: object, options: Mapping[str, Any]) -> Settings:
    """Settings from the arguments of a recommender, refused where one is wrong."""
    known = RecommenderOptions.__optional_keys__
    for name in options:
        if name not in known:
            raise ConfigError(f"there is no option {brief(name)}; {suggestion(name, sorted(known))}")
    if not isinstance(item_id, str) or not item_id:
        raise ConfigError(f"expected the name of the column with the items' ids, got {brief(item_id)}", field="item_id")
    if user_id is not None and (not isinstance(user_id, str) or not user_id):
        raise ConfigError(f"expected the name of the column with the users' ids, got {brief(user_id)}", field="user_id")
    if isinstance(slate_size, bool) or not isinstance(slate_size, int) or not 1 <= slate_size <= MOST_SLOTS:
        wanted = f"expected a whole number from 1 to {MOST_SLOTS:,}"
        raise ConfigError(f"{wanted}, got {brief(slate_size)}", field="slate_size")
    low, high = _range(options.get("reward_range", (0.0, 1.0)))
    remember = min(FeedbackConfig().remember, MOST_VALUES // slate_size)  # fewer of very long slates
    kept = {"remember": remember} | {name: options[name] for name in _FEEDBACK if name in options}
    return Settings(
        item_id=item_id, user_id=user_id, slate_size=slate_size, policy=_policy(options), features=_features(options),
        feedback=feedback_of({**kept, "low": low, "high": high}), reward=slate_value(options.get("reward", "sum")),
    )  # fmt: skip


def feedback_of(values: Mapping[str, Any]) -> FeedbackConfig:
    """The settings of feedback, refused by the names of the options."""
    with by_option(advice=dict.fromkeys(("window", "learn_after"), "; give seconds, such as 3600")):
        return from_mapping(FeedbackConfig, values)


_FEEDBACK = ("window", "learn_after", "combine", "unanswered", "remember")


def _policy(options: Mapping[str, Any]) -> PolicyChoice:
    seed = options.get("seed", 0)
    if isinstance(seed, bool) or not isinstance(seed, int) or not -(2**63) <= seed < 2**63:
        raise ConfigError(f"expected a whole number below 2**63, got {brief(seed)}", field="seed")
    settings = settings_of(options.get("settings"))
    return PolicyChoice(options.get("policy", "auto"), settings, seed, exploration_of(options.get("exploration")))


def exploration_of(given: Any) -> Exploration | None:
    """Exploration as given, by its share, or none."""
    if given is None or isinstance(given, Exploration):
        return given
    if isinstance(given, int | float) and not isinstance(given, bool):
        return Exploration(share=given)
    wanted = "expected Exploration(share=0.1, pool=20, anywhere=0.2), a share, or None"
    raise ConfigError(f"{wanted}, got {brief(given)}", field="exploration")


def _features(options: Mapping[str, Any]) -> Features:
    given = options.get("features")
    if given is not None and not isinstance(given, Features):
        advice = "write features=Features(items={'price': 'number'})"
        raise ConfigError(f"expected Features, got {brief(given)}; {advice}", field="features")
    own = {name: options[name] for name in ("cross", "match", "width") if options.get(name) is not None}
    return replace(given or Features(), **own)


def _range(given: Any) -> tuple[float, float]:
    try:
        low, high = given
        pair = float(low), float(high)
    except (TypeError, ValueError, OverflowError):
        pair = (1.0, 0.0)
    if not pair[0] < pair[1]:
        wanted = "expected the smallest and the largest value of one item, such as (0, 5)"
        raise ConfigError(f"{wanted}, got {brief(given)}", field="reward_range")
    return pair


def clock_of(options: Mapping[str, Any]) -> Callable[[], float]:
    """The clock that was given, or the system's."""
    given: Callable[[], float] = options.get("clock", time.time)
    if not callable(given):
        raise ConfigError(f"expected a function that gives seconds, got {brief(given)}", field="clock")
    return given
