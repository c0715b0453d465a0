"""Events of a log as plain dictionaries, made of rounds, slates and feedback; `schema.json` is their JSON Schema."""

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from importlib import resources
from typing import Any

from torch import Tensor

from neuclust.core import Design, Feedback, Round, Rules, Slate
from neuclust.slates.rules import option_counts

FORMAT = 2  # format 1 is the log of a recommender
EVENTS = ("start", "arm", "decision", "feedback")
KINDS = ("deterministic", "sequential", "one-coin", "uniform", "unknown")
Event = dict[str, Any]


@dataclass(frozen=True, slots=True)
class RunStart:
    """What is known of a run: who chose, slates of up to `slate_size` arms, `dim` features that models read."""

    run: str
    policy: str
    slate_size: int
    dim: int
    learning: bool = True  # the policy learned while it logged, so that rows are not independent
    reward: str | None = None  # the name of the slate reward
    reward_values: tuple[float, ...] | None = None  # (slate_size + 1,) by the number of rewarded arms


def json_schema() -> dict[str, Any]:
    """The JSON Schema of one event, a line of a .jsonl file."""
    text = resources.files("neuclust.logs").joinpath("schema.json").read_text(encoding="utf-8")
    schema: dict[str, Any] = json.loads(text)
    return schema


# --- from rounds to events ------------------------------------------------------------------------------------------


def start_event(start: RunStart) -> Event:
    """The first event of a run."""
    values = None if start.reward_values is None else list(start.reward_values)
    return {"event": "start", "format": FORMAT, **asdict(start), "reward_values": values}


def arm_event(run: str, arm: int, profile: list[float]) -> Event:
    """An arm that is new to the catalogue of its run, or whose profile (d,) changed."""
    return {"event": "arm", "run": run, "arm": arm, "profile": profile}


def choice_entries(round: Round, slate: Slate, every: bool) -> Event:
    """What was offered and chosen; `every`: all arms of the catalogue are eligible, in its order."""
    ids: list[int] = round.arm_ids.tolist()
    rows: list[int] = slate.positions.tolist()
    chances = slate.propensities
    return {
        "t": round.t,
        "query": None if round.query is None else round.query.tolist(),
        "eligible": None if every else ids,
        "features": None if round.features is None else round.features.flatten().tolist(),
        "k": round.slate_size,
        "slate": [ids[row] for row in rows],
        "propensities": None if chances is None else chances.tolist(),
        "design": _design_entries(slate.drawn_by, ids, _sizes(round, rows)),
        **_rule_entries(round.rules),
    }


def feedback_entries(feedback: Feedback | None, shown: Iterable[bool] | None = None) -> Event:
    """Rewards per slot and of the slate, null where unseen; all null where feedback comes later or never."""
    rewards = None if feedback is None else unseen_as_none(feedback.arm_rewards)
    worth = None if feedback is None else _number(float(feedback.slate_reward))
    return {
        "rewards": rewards,
        "slate_reward": worth,
        "shown": None if shown is None else [bool(each) for each in shown],
    }


def feedback_event(run: str, decision: str, values: Mapping[int, float], slate_reward: float | None) -> Event:
    """Feedback for an earlier decision: values by arm id."""
    worth = None if slate_reward is None else _number(float(slate_reward))
    heard = [_number(float(value)) for value in values.values()]
    arms = [int(arm) for arm in values]
    return {"event": "feedback", "run": run, "decision": decision, "arms": arms, "values": heard, "slate_reward": worth}


def flags(shown: Iterable[bool] | None) -> list[bool] | None:
    """Slots that were shown; None: nothing is said."""
    return None if shown is None else [bool(each) for each in shown]


def unseen_as_none(values: Tensor) -> list[float | None]:
    """Numbers, with None for NaN, which JSON does not have."""
    return [_number(value) for value in values.tolist()]


def _number(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _sizes(round: Round, rows: list[int]) -> list[int]:
    if round.rules is None:  # A(S) is every arm but S
        return [len(round.arm_ids) - place for place in range(len(rows))]
    return list(option_counts(round, rows))


def _design_entries(design: Design, ids: list[int], sizes: list[int]) -> Event:
    return {
        "kind": design.kind, "base": [ids[row] for row in design.base], "share": design.share,
        "pool": [ids[row] for row in design.pool], "anywhere": design.anywhere, "sizes": sizes,
    }  # fmt: skip


def _rule_entries(rules: Rules | None) -> Event:
    if rules is None:
        return {"required": None, "excluded": None, "caps": None}
    caps = [{"groups": cap.groups.tolist(), "most": cap.most} for cap in rules.caps]
    return {"required": rules.required.tolist(), "excluded": rules.excluded.tolist(), "caps": caps}
