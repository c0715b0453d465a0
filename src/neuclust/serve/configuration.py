"""The configuration of a recommender of the service: one JSON object, checked, of which every change is an event."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from functools import cached_property
from typing import Any

from neuclust.configuration import from_mapping
from neuclust.errors import ConfigError, NeuclustError, brief, one_of, suggestion
from neuclust.recommender.feedback.rewards import FUNCTION
from neuclust.recommender.options import MOST_VALUES, Settings, read_settings
from neuclust.recommender.tables.columns import kind_from_json
from neuclust.recommender.tables.features import PARTS, Features
from neuclust.slates.propensities import Exploration

ITEM_ID, USER_ID = "item_id", "user_id"  # names of the id columns inside the fold
MODES = ("live", "shadow", "holdout")
BASELINES = ("random", "popular", "caller")
FALLBACKS = ("last", "popular", "random")
WAITING = ("window", "learn_after", "unanswered")
OF_SERVICE = ("mode", "holdout", "fallback", "max_age", "retention_days")
CHANGEABLE = ("exploration", *WAITING, *OF_SERVICE)  # also once the schema is fixed
MOST_SECONDS = 1e10
MOST_DAYS = 100_000


@dataclass(frozen=True, slots=True)
class Holdout:
    """The share of users that keep the baseline, and what that is."""

    share: float = 0.1
    baseline: str = "random"

    def __post_init__(self) -> None:
        if not 0 <= _number(self.share, "holdout", 1.0) <= 1:
            raise ConfigError(f"expected a share from 0 to 1, got {brief(self.share)}", field="holdout")
        _choice(self.baseline, BASELINES, "holdout")


@dataclass(frozen=True)
class Configuration:
    """The options of a recommender (`RecommenderOptions`), and those of the service from `mode` on."""

    slate_size: int
    policy: str = "auto"
    settings: Mapping[str, Any] | None = None
    seed: int = 0
    exploration: float | Mapping[str, Any] | None = None
    features: Mapping[str, Mapping[str, Any]] | None = None
    cross: list[list[str]] | None = None
    match: list[list[str]] | None = None
    width: int | None = None
    reward: str = "sum"
    reward_range: tuple[float, float] | list[float] = (0.0, 1.0)
    window: float = 3600.0
    learn_after: float | None = None
    combine: str = "max"
    unanswered: str = "zeros"
    remember: int = 10_000
    mode: str = "live"
    holdout: Holdout = field(default_factory=Holdout)
    fallback: str = "last"
    max_age: float | None = None  # seconds that a model may lag behind the log before the fallback; None: never
    retention_days: float | None = None  # after which events are deleted; None: never

    def __post_init__(self) -> None:
        _choice(self.mode, MODES, "mode")
        _choice(self.fallback, FALLBACKS, "fallback")
        for name, most in (("max_age", MOST_SECONDS), ("retention_days", MOST_DAYS)):
            if getattr(self, name) is not None and not 0 < _number(getattr(self, name), name, most) <= most:
                raise ConfigError(f"expected a number above 0, got {brief(getattr(self, name))}", field=name)
        for name in ("window", "learn_after"):  # beyond that, no calendar has the end of a window
            if getattr(self, name) is not None:
                _number(getattr(self, name), name, MOST_SECONDS)
        feedback = self.read.feedback  # refuses
        object.__setattr__(self, "reward_range", (feedback.low, feedback.high))

    @classmethod
    def from_json(cls, given: object) -> "Configuration":
        """The configuration of a JSON object; what it does not say has its default."""
        if not isinstance(given, Mapping):
            raise ConfigError(f"expected an object with at least slate_size, got {brief(given)}", field="configuration")
        known = [each.name for each in fields(cls)]
        for name in given:
            if name not in known:
                raise ConfigError(f"there is no such entry; {suggestion(name, known)}", field=str(name)[:100])
        if "slate_size" not in given:
            raise ConfigError("expected the number of slots of a slate, got none", field="slate_size")
        holdout = given.get("holdout")
        return cls(**{**given, "holdout": Holdout() if holdout is None else _holdout(holdout)})

    def to_json(self) -> dict[str, Any]:
        """All entries as JSON values."""
        return {
            **{each.name: getattr(self, each.name) for each in fields(self)},
            "holdout": asdict(self.holdout), "reward_range": list(self.reward_range),
        }  # fmt: skip

    @cached_property
    def read(self) -> Settings:
        """The settings of the recommender, checked."""
        return _settings(self)

    def recommender_options(self) -> dict[str, Any]:
        """The keyword arguments of a `Recommender`, but for tables, ids and the slate size."""
        plain = ("policy", "settings", "seed", "reward", "combine", "unanswered", "remember", "learn_after", "window")
        own = ("cross", "match", "width")
        return {
            **{name: getattr(self, name) for name in plain}, **{name: getattr(self, name) for name in own},
            "exploration": _exploration(self.exploration), "features": _features(self.features),
            "reward_range": self.reward_range,
        }  # fmt: skip

    def changed_entries(self, other: "Configuration") -> list[str]:
        """The names of entries that differ."""
        mine, others = self.to_json(), other.to_json()
        return [name for name in mine if mine[name] != others[name]]


def check_change(before: Configuration, after: Configuration, frozen: bool) -> None:
    """Refuse changes of what learned state was made by, once the schema is fixed."""
    fixed = [name for name in before.changed_entries(after) if name not in CHANGEABLE]
    if frozen and fixed:
        advice = "make a new recommender and give it this one's log"
        raise ConfigError(f"expected no other value once recommendations were made; {advice}", field=fixed[0])


def _settings(configuration: Configuration) -> Settings:
    """The recommender's own check, with the entry's name in every refusal."""
    try:
        if not isinstance(configuration.reward, str) or configuration.reward == FUNCTION:
            got = brief(configuration.reward)
            raise ConfigError(f"expected sum, any or threshold:SHARE, got {got}", field="reward")
        found = read_settings(ITEM_ID, USER_ID, configuration.slate_size, configuration.recommender_options())
    except NeuclustError as error:
        if error.field in {each.name for each in fields(Configuration)}:
            raise
        raise ConfigError(error.message, field=_named(error)) from None
    if found.feedback.remember * found.slate_size > MOST_VALUES:
        wanted = f"expected at most {MOST_VALUES // found.slate_size:,} closed slates of {found.slate_size}"
        raise ConfigError(f"{wanted}, got {found.feedback.remember:,}", field="remember")
    return found


def _named(error: NeuclustError) -> str:
    """The entry of the configuration that a refusal is about; its text begins with it or its record's name."""
    names = [each.name for each in fields(Configuration)]
    start = str(error).partition(":")[0]
    word = start.rpartition(".")[2]
    if word in ("low", "high"):
        return "reward_range"
    if start.startswith("Exploration") or word in ("share", "pool", "anywhere"):
        return "exploration"
    if error.field in PARTS or start.startswith("features"):
        return "features"
    return word if word in names else "settings"


def _exploration(given: Any) -> Exploration | None:
    if given is None:
        return None
    if isinstance(given, Mapping):
        return from_mapping(Exploration, given)
    return Exploration(share=_number(given, "exploration", 1.0))


def _features(given: Any) -> Features | None:
    if given is None:
        return None
    parts = {"levels", *PARTS}
    if not isinstance(given, Mapping) or not all(part in parts for part in given):
        wanted = "expected an object of tables (items, users, context), columns and kinds"
        raise ConfigError(f"{wanted}, got {brief(given)}", field="features")
    made: dict[str, Any] = {part: _kinds(given[part]) for part in PARTS if given.get(part) is not None}
    return Features(**made, **({"levels": given["levels"]} if "levels" in given else {}))


def _kinds(given: Any) -> dict[str, Any]:
    """Kinds by column: words, or objects with a word as their `kind`."""
    if not isinstance(given, Mapping):
        raise ConfigError(f"expected an object of columns and kinds, got {brief(given)}", field="features")
    try:
        return {name: kind_from_json(kind) if isinstance(kind, Mapping) else kind for name, kind in given.items()}
    except NeuclustError as error:
        raise ConfigError(error.message, field="features") from None


def _holdout(given: Any) -> Holdout:
    if not isinstance(given, Mapping) or not set(given) <= {"share", "baseline"}:
        raise ConfigError(f"expected share and baseline, got {brief(given)}", field="holdout")
    return Holdout(**given)


def _number(value: object, name: str, most: float) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= most:
        raise ConfigError(f"expected a number of at most {most:g}, got {brief(value)}", field=name)
    return float(value)


def _choice(value: object, known: tuple[str, ...], name: str) -> None:
    if not isinstance(value, str) or value not in known:
        raise ConfigError(one_of(value, known), field=name)
