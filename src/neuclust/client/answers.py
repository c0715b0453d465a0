"""What the service answers, as frozen records; keys that a later version adds are passed by."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any, Self

from neuclust.client.problems import ServiceError

Json = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Slot:
    """An item of a slate: what the policy expected of it, what it added to find out, and its chance."""

    item: str
    slot: int  # 1, 2, …
    mean: float | None
    bonus: float | None
    propensity: float | None  # None: no closed form
    explored: bool = False


@dataclass(frozen=True, slots=True)
class Recommendation:
    """The answer to a request; `decision_id` goes back with the clicks."""

    decision_id: str
    slate: tuple[Slot, ...]
    short: bool
    reason: str
    policy: str
    model_version: int | None
    exploration: float | None
    expires_at: datetime
    mode: str  # live, shadow, holdout or fallback
    stale: bool
    ignored: tuple[str, ...] = ()
    suggested: tuple[str, ...] | None = None  # shadow: what the policy would have shown
    request_id: str | None = None

    @property
    def items(self) -> list[str]:
        """The ids in display order, slot 1 first."""
        return [each.item for each in self.slate]

    @classmethod
    def from_json(cls, told: Json, request_id: str | None = None) -> Self:
        """The answer as the service writes it."""
        try:
            read = _known(cls, told)
            read["slate"] = tuple(Slot(**_known(Slot, each)) for each in told["slate"])
            read["expires_at"] = datetime.fromisoformat(told["expires_at"])
            read["ignored"] = tuple(told.get("ignored") or ())
            suggested = told.get("suggested")
            read["suggested"] = None if suggested is None else tuple(suggested)
            read["request_id"] = told.get("request_id") or request_id
            return cls(**read)
        except (KeyError, TypeError, ValueError) as error:
            raise ServiceError(f"expected the answer to a recommendation, got {told!r:.200} ({error!s:.100})") from None


@dataclass(frozen=True, slots=True)
class Accepted:
    """Feedback that is durable; `duplicate`: it was before."""

    feedback_id: str
    duplicate: bool = False


@dataclass(frozen=True, slots=True)
class Changes:
    """What became of a table's rows."""

    added: int
    changed: int
    rows: int

    def __add__(self, other: "Changes") -> "Changes":
        return Changes(self.added + other.added, self.changed + other.changed, self.rows + other.rows)


@dataclass(frozen=True, slots=True)
class Version:
    """A published model: the events and lessons it knows; only one whose model is kept can be promoted."""

    version: int
    events: int
    lessons: int
    created: datetime
    available: bool  # whether the model is kept
    served: bool
    state: bool = False

    @classmethod
    def from_json(cls, told: Json) -> Self:
        """A version as the service lists it."""
        try:
            return cls(**{**_known(cls, told), "created": datetime.fromisoformat(told["created"])})
        except (KeyError, TypeError, ValueError) as error:
            raise ServiceError(f"expected a version, got {told!r:.200} ({error!s:.100})") from None


def _known(record: Any, told: Json) -> dict[str, Any]:
    """The entries that are fields of a record."""
    return {each.name: told[each.name] for each in fields(record) if each.name in told}
