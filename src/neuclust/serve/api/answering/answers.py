"""The answer to a recommendation, made from what the log holds of it: the same event gives the same answer."""

import math
from collections.abc import Mapping
from typing import Any

from neuclust.serve.api.bodies import moment


def answer_of(payload: Mapping[str, Any]) -> dict[str, Any]:
    """The answer of a decision event."""
    choice = payload["choice"]
    own = payload["own"]  # the caller's own slate: the policy expected nothing of it
    return {
        "decision_id": choice["id"],
        "slate": [_slot(choice, slot, own) for slot in range(len(choice["items"]))],
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


def _slot(choice: Mapping[str, Any], slot: int, own: bool) -> dict[str, Any]:
    propensities, explored = choice["propensities"], choice["explored"]
    return {
        "item": choice["items"][slot],
        "slot": slot + 1,
        "mean": None if own else _finite(choice["means"][slot]),
        "bonus": None if own else _finite(choice["bonuses"][slot]),
        "propensity": None if propensities is None else _finite(propensities[slot]),
        "explored": bool(explored and explored[slot]),
    }


def _finite(value: float | str) -> float | None:
    """A number of a choice's JSON, whose NaN and infinities are texts."""
    number = float(value)
    return number if math.isfinite(number) else None
