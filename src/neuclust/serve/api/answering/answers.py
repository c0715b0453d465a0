"""The answer to a recommendation, made from what the log holds of it: the same event gives the same answer."""

import math
from collections.abc import Mapping
from typing import Any

from neuclust.recommender.feedback.rewards import stated
from neuclust.serve.api.bodies import moment

Span = tuple[float, float]


def answer_of(payload: Mapping[str, Any], span: Span) -> dict[str, Any]:
    """The answer of a decision event; `span`: the range of an item's reward, in whose units means and bonuses are."""
    choice = payload["choice"]
    own = payload["own"]  # the caller's own slate: the policy expected nothing of it
    return {
        "decision_id": choice["id"],
        "slate": [_slot(choice, slot, own, span) for slot in range(len(choice["items"]))],
        "short": choice["short"],
        "reason": choice["reason"],
        "policy": choice["policy"],
        "model_version": payload["version"],
        "exploration": payload["exploration"],
        "expires_at": moment(payload["expires_at"]),
        "mode": payload["arm"],
        "stale": payload["stale"],
        "ignored": choice["ignored"],
        "suggested": payload["suggested"],
    }


def _slot(choice: Mapping[str, Any], slot: int, own: bool, span: Span) -> dict[str, Any]:
    propensities, explored = choice["propensities"], choice["explored"]
    low, high = span
    return {
        "item": choice["items"][slot],
        "slot": slot + 1,
        "mean": None if own else _finite(choice["means"][slot], low, high),
        "bonus": None if own else _finite(choice["bonuses"][slot], 0.0, high - low),
        "propensity": None if propensities is None else _finite(propensities[slot]),
        "explored": bool(explored and explored[slot]),
    }


def _finite(value: float | str, low: float = 0.0, high: float = 1.0) -> float | None:
    """A number of a choice's JSON, whose NaN and infinities are texts, on a range in the place of 0 to 1."""
    (number,) = stated([float(value)], low, high)
    return number if math.isfinite(number) else None
