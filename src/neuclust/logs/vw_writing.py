"""Writes a log as conditional contextual bandits of Vowpal Wabbit: dsjson, one decision per line.

An arm is an action with its id as `_tag` and its numbers x0000, x0001, … in the namespace Action; what all arms share
is in the namespace Shared: the query, or the columns of features that are the same for all arms.
"""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from neuclust.errors import writing
from neuclust.files import placed
from neuclust.logs.decisions import LoggedDecision
from neuclust.logs.features import shared_columns
from neuclust.logs.other_formats import chances_of, rewards_of
from neuclust.logs.runs import DecisionLog


def write_vw_ccb(log: DecisionLog, path: str | Path, *, unseen: float | None = None) -> int:
    """Write the decisions of a log as CCB dsjson, whole or not at all; how many there were.

    Decisions without propensities are refused, and so are rewards that were not observed, unless `unseen` is the value
    to write for them. Arms that rules exclude are left out; other rules and the user are not written.
    """
    written, place = 0, Path(path)
    with writing(place), placed(place) as file:
        for decision in log.decisions():
            file.write(json.dumps(_line(decision, unseen), separators=(",", ":")).encode() + b"\n")
            written += 1
    return written


def _line(decision: LoggedDecision, unseen: float | None) -> dict[str, Any]:
    round = decision.round
    chances, rewards = chances_of(decision, "CCB").tolist(), rewards_of(decision, unseen, "CCB").tolist()
    arms, shared = shared_columns(round)
    ids: list[int] = round.arm_ids.tolist()
    excluded = set() if round.rules is None else set(round.rules.excluded.tolist())
    kept = [position for position, arm in enumerate(ids) if arm not in excluded]
    place = {position: row for row, position in enumerate(kept)}
    multi = [{"_tag": str(ids[position]), "Action": _named(arms[position])} for position in kept]
    outcomes = [
        {"_label_cost": 0.0 - reward, "_id": f"{decision.id}-{slot}", "_a": [place[position]], "_p": [chance]}
        for slot, (reward, position, chance) in enumerate(zip(rewards, decision.slate.tolist(), chances, strict=True))
    ]
    content: dict[str, Any] = {} if shared is None else {"Shared": _named(shared)}
    content |= {"_multi": multi, "_slots": [{"_id": each["_id"]} for each in outcomes]}
    line: dict[str, Any] = {
        "Version": "1",
        "EventId": f"{decision.run}/{decision.id}",
        "c": content,
        "_outcomes": outcomes,
    }
    if decision.time is not None:
        line = {"Timestamp": f"{datetime.fromtimestamp(decision.time, UTC):%Y-%m-%dT%H:%M:%S.%fZ}"} | line
    return line if decision.version is None else line | {"VWState": {"m": decision.version}}


def _named(values: NDArray[np.float64]) -> dict[str, float]:
    return {f"x{place:04d}": value for place, value in enumerate(values.tolist())}
