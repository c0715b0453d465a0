"""The bodies of requests and answers, as the OpenAPI document shows them."""

from datetime import UTC, datetime
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

Text = Annotated[str, Field(max_length=1_000)]


def _as_text(value: Any) -> Any:
    """Ids are texts; whole numbers are read as their decimal text."""
    return str(value) if type(value) is int and abs(value) < 10**1000 else value


Id = Annotated[Text, BeforeValidator(_as_text, json_schema_input_type=str | int)]
NAME = r"^[a-z0-9][a-z0-9_-]{0,62}$"  # of a recommender


def _as_texts(values: Any) -> Any:
    if not isinstance(values, list) or all(type(value) is str for value in values):  # as nearly always
        return values
    return [_as_text(value) for value in values]


Ids = Annotated[
    list[Text], Field(max_length=1_000_000), BeforeValidator(_as_texts, json_schema_input_type=list[str | int])
]
Features = dict[str, Any]


class Body(BaseModel):
    """What is sent: entries that are not known are refused, and nothing is converted silently."""

    model_config = ConfigDict(extra="forbid", strict=True)


class Exploring(Body):
    """Exploration around the policy with exact propensities."""

    share: float = Field(ge=0, le=1)
    pool: int | None = Field(None, ge=1)
    anywhere: float | None = Field(None, ge=0, le=1)


class Holdout(Body):
    """Users that keep the baseline, by a hash of their id."""

    share: float = Field(default=0.1, ge=0, le=1)
    baseline: Literal["random", "popular", "caller"] = "random"


class Changes(Body):
    """What may change while a recommender runs; after the first slate only these."""

    exploration: float | Exploring | None = Field(None, description="share of slots that explore, or its parts")
    window: float = Field(3600.0, gt=0, le=1e10, description="seconds a decision waits for feedback")
    learn_after: float | None = Field(None, ge=0, le=1e10, description="seconds after which it is learned, open or not")
    unanswered: Literal["zeros", "unseen"] = "zeros"
    mode: Literal["live", "shadow", "holdout"] = "live"
    holdout: Holdout = Holdout()
    fallback: Literal["last", "popular", "random"] = Field("last", description="what serves where the model is too old")
    max_age: float | None = Field(None, gt=0, description="seconds the model may lag behind the log; null: any")
    retention_days: float | None = Field(None, gt=0, description="days the log is kept; null: for ever")


class Configuration(Changes):
    """A recommender."""

    slate_size: int = Field(ge=1, le=1_000, examples=[3])
    policy: str = Field("auto", max_length=200)
    settings: dict[str, Any] | None = None
    seed: int = Field(0, ge=-(2**63), lt=2**63)
    features: dict[str, Any] | None = Field(None, description="kinds of columns: {'items': {'price': 'number'}}")
    cross: list[list[str]] | None = None
    match: list[list[str]] | None = None
    width: int | None = Field(None, ge=1)
    reward: str = Field("sum", max_length=100, description="what a slate is worth: sum, any or threshold:SHARE")
    reward_range: Annotated[list[float], Field(min_length=2, max_length=2)] = [0.0, 1.0]
    combine: Literal["max", "last", "sum"] = "max"
    remember: int = Field(10_000, ge=1, le=10_000_000, description="closed decisions that are still known")


class Recommend(Body):
    """Who asks, and for what."""

    request_id: Id | None = Field(None, description="the same one gives the same answer")
    user: Id | None = None
    user_features: Features | None = None
    context: Features | None = None
    eligible: Ids | None = Field(None, description="null: every item")
    exclude: Ids = []
    required: Ids = []
    at_most: dict[str, int] | None = Field(None, examples=[{"category": 2}])
    k: int | None = Field(None, ge=1, le=1_000)
    slate: Ids | None = Field(None, description="your own slate, in shadow mode or for a holdout of callers")


class Recommendations(Body):
    requests: Annotated[list[Recommend], Field(min_length=1, max_length=1_000)]


class Feedback(Body):
    """What came back for a decision."""

    decision_id: Annotated[str, Field(min_length=1, max_length=200)]
    items: dict[Text, float] = Field(examples=[{"a": 1.0}], description="values by item; others of the slate count 0")
    feedback_id: Id | None = Field(None, description="the same one is taken once; default: a hash of the message")
    slate: float | None = None
    shown: int | Ids | None = Field(None, description="leading slots, or items, that were really seen")
    partial: bool = Field(False, description="more will come: the decision stays open until its window ends")


class Feedbacks(Body):
    feedback: Annotated[list[Feedback], Field(min_length=1, max_length=10_000)]


# --- answers --------------------------------------------------------------------------------------------------


class Slot(BaseModel):
    item: str
    slot: int
    mean: float | None
    bonus: float | None
    propensity: float | None
    explored: bool


class Recommendation(BaseModel):
    """A slate, and the id to hand back with the clicks."""

    decision_id: str
    slate: list[Slot]
    short: bool
    reason: str
    policy: str
    model_version: int
    exploration: float | None
    expires_at: datetime
    mode: Literal["live", "shadow", "holdout", "fallback"]
    stale: bool
    ignored: list[str]
    suggested: list[str] | None = None


class Taken(BaseModel):
    """Feedback that is durable."""

    feedback_id: str
    decision_id: str
    duplicate: bool


class Many(BaseModel):
    """One answer for each part of a batch, in its order: the answer itself, or `status` and `problem`."""

    results: list[dict[str, Any]]


class Described(BaseModel):
    """A recommender as it is now."""

    name: str
    created: datetime
    configuration: dict[str, Any]
    items: int
    users: int
    events: int
    learned_events: int
    lessons: int
    model_version: int
    promoted: int | None
    frozen: bool
    problem: str = Field("", description="why it cannot be served or kept up to date; empty: it can")


class Column(BaseModel):
    """How a column is read: its kind, how many numbers it becomes and which, and why."""

    table: str = Field(examples=["items"], description="items, users or context")
    column: str
    kind: str
    width: int
    how: str
    why: str
    settled: bool = Field(description="false: its scale still moves, or the first request may change all of it")


class Columns(BaseModel):
    """How all columns are read; a draft until the first request has fixed it (`frozen`)."""

    frozen: bool
    settled: bool
    columns: list[Column]
    crossed: list[str] = Field(description="how users and items meet, in words")


class Listed(BaseModel):
    recommenders: list[Described]


class Put(BaseModel):
    id: str
    created: bool


class Batch(BaseModel):
    added: int
    changed: int
    rows: int


class Entity(BaseModel):
    id: str
    values: dict[str, Any]


class Items(BaseModel):
    items: list[Entity]
    next: str | None
    total: int


class Users(BaseModel):
    users: list[Entity]
    next: str | None
    total: int


class VersionEntry(BaseModel):
    version: int
    events: int
    lessons: int
    created: datetime
    available: bool
    state: bool
    served: bool


class Versions(BaseModel):
    versions: list[VersionEntry]
    promoted: int | None


class Erasure(BaseModel):
    """An erasure that is logged; `done` once the learner has deleted the user's payloads."""

    erasure_id: str
    done: bool


class Health(BaseModel):
    status: str
    detail: str = ""
    recommenders: dict[str, Any] = {}


class Found(BaseModel):
    """A decision: what was answered, why each item, and the feedback that came, oldest first.

    A message has a `status`, what learning made of it: learned, waiting, late (after the end of its window), refused,
    duplicate, or unknown where that is no longer kept. `reason` says why it does not count, or not yet.
    """

    model_config = ConfigDict(extra="allow")

    decision_id: str
    feedback: list[dict[str, Any]]


class Decisions(BaseModel):
    decisions: list[dict[str, Any]]
    next: str | None


def moment(seconds: float) -> str:
    """A time as ISO 8601 in UTC."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
