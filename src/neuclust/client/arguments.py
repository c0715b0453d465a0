"""The optional parts of calls, named as in the front door."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypedDict

Id = str | int
Values = Mapping[str, Any]


class Asked(TypedDict, total=False):
    """The optional parts of a request, as in the front door."""

    request_id: str | None  # the same one gives the same answer; made here where none is given
    user_features: Values | None
    context: Values | None
    eligible: Sequence[Id] | None  # None: every item
    exclude: Sequence[Id] | None
    required: Sequence[Id] | None
    at_most: Mapping[str, int] | None  # items of one value of a column: {"category": 2}
    k: int | None
    slate: Sequence[Id] | None  # shadow: what the caller shows


class Came(TypedDict, total=False):
    """The optional parts of a feedback."""

    feedback_id: str | None  # the same one is taken once; made here where none is given
    slate: float | None  # the slate's own value
    shown: int | Sequence[Id] | None  # leading slots, or items, that were really seen
    partial: bool | None  # more will come


class Told(TypedDict, total=False):
    """The configuration of a recommender; everything but the slate size has a default."""

    slate_size: int
    policy: str
    settings: Values | None
    seed: int
    exploration: float | Values | None
    features: Mapping[str, Values] | None
    cross: Sequence[Sequence[str]] | None
    match: Sequence[Sequence[str]] | None
    width: int | None
    reward: str
    reward_range: Sequence[float]
    window: float
    learn_after: float | None
    combine: Literal["max", "last", "sum"]
    unanswered: Literal["zeros", "unseen"]
    remember: int
    mode: Literal["live", "shadow", "holdout"]
    holdout: Values | None
    fallback: Literal["last", "popular", "random"]
    max_age: float | None
    retention_days: float | None
