"""Conditional contextual bandits of Vowpal Wabbit, as decision service JSON (dsjson), one decision per line.

Read are `c._multi` (actions), what else `c` holds (shared features), `_outcomes` (one per slot: `_a[0]` the action,
`_p[0]` its chance given the slots before it, `_label_cost` = −reward), `EventId`, `Timestamp` and `VWState.m`. Features
of slots are not read. The design is unknown; a slate's reward is the sum of its slots'.
"""

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from neuclust.errors import DataError, brief
from neuclust.logs.events import Event, RunStart, arm_event, start_event
from neuclust.logs.features import Columns, joined, joined_width, named_values
from neuclust.logs.files import Row, line_rows
from neuclust.logs.reader import Log, OnBad, checked_log

RUN = "vw"


def read_vw_ccb(
    path: str | Path,
    *,
    hashed: int | None = None,
    crossed: bool = False,
    skip_bad: int = 0,
    on_bad: OnBad | None = None,
) -> Log:
    """A file of CCB decisions as a log.

    Features are dictionary-encoded, or `hashed` into so many columns of actions and as many of what they share;
    `crossed` adds the products of both. An arm is known by its `_tag` where all actions have whole numbers as tags,
    else by its features.
    """
    path = Path(path)
    source = partial(_events, path, _layout(path, hashed, crossed))
    return checked_log(path, source, "line", skip_bad=skip_bad, on_bad=on_bad)


@dataclass(frozen=True, slots=True)
class _Layout:
    """Columns of actions and of what they share, whether both are multiplied, arms by tags, and the longest slate."""

    actions: Columns
    shared: Columns
    crossed: bool
    tagged: bool
    slate_size: int

    @property
    def start(self) -> RunStart:
        dim = joined_width(self.actions.width, self.shared.width, self.crossed)
        return RunStart(RUN, "", self.slate_size, max(1, dim), learning=True, reward="sum")


def _layout(path: Path, hashed: int | None, crossed: bool) -> _Layout:
    """One pass over the file for names and sizes; lines that cannot be read are left to the next."""
    actions: set[str] = set()
    shared: set[str] = set()
    tagged, longest = True, 1
    for row in line_rows(path):
        try:
            multi, rest, outcomes = _parts(row.event or {})
            longest = max(longest, len(outcomes))
            tagged = tagged and all(_tag(action) is not None for action in multi)
            if hashed is None:
                shared.update(name for name, _ in named_values(rest))
                actions.update(name for action in multi for name, _ in named_values(action))
        except DataError:
            continue
    given = bool(shared) if hashed is None else True
    return _Layout(Columns.of(actions, hashed), Columns.of(shared, hashed if given else None), crossed, tagged, longest)


def _events(path: Path, layout: _Layout) -> Iterator[Row]:
    """The start, then every line as its new arms and its decision."""
    yield Row(1, start_event(layout.start))
    arms: dict[Any, int] = {}
    written: dict[int, list[float]] = {}
    for row in line_rows(path):
        if row.event is None:
            yield row
            continue
        try:
            events = list(_line_events(row, layout, arms, written))
        except DataError as error:
            yield Row(row.number, None, str(error))
            continue
        yield from (Row(row.number, event) for event in events)


def _line_events(row: Row, layout: _Layout, arms: dict[Any, int], written: dict[int, list[float]]) -> Iterator[Event]:
    line = row.event or {}
    multi, rest, outcomes = _parts(line)
    ids = _ids(multi, layout.tagged, arms)
    rows = [layout.actions.row(named_values(action)) for action in multi]
    decision = _decision(row.number, line, ids, outcomes)
    for arm, profile in zip(ids, (each.tolist() for each in rows), strict=True):
        if written.get(arm) != profile:
            written[arm] = profile
            yield arm_event(RUN, arm, profile)
    if layout.shared.width:
        features = joined(np.array(rows), layout.shared.row(named_values(rest)), layout.crossed)
        decision["features"] = features.ravel().tolist()
    yield decision


def _parts(line: Mapping[str, Any]) -> tuple[list[Any], dict[str, Any], list[Any]]:
    """Actions, shared content and outcomes of a line, refused where they are not those of a CCB decision."""
    content, outcomes = line.get("c"), line.get("_outcomes")
    multi = content.get("_multi") if isinstance(content, dict) else None
    if not isinstance(multi, list) or not multi or not all(isinstance(action, dict) for action in multi):
        raise DataError(f"expected actions as c._multi, got {brief(multi, 60)}; is it a decision of ccb_explore_adf?")
    if not isinstance(outcomes, list) or not outcomes or not all(isinstance(each, dict) for each in outcomes):
        raise DataError(f"expected one outcome per slot as _outcomes, got {brief(outcomes, 60)}; is it CCB?")
    assert isinstance(content, dict)
    slots = content.get("_slots") or []
    if any(isinstance(slot, dict) and slot.get("_inc") for slot in [*slots, *outcomes]):
        raise DataError("expected slots that take any action left, got _inc; such logs cannot be read yet")
    if line.get("pdrop"):
        raise DataError(f"expected a log without dropped lines, got pdrop = {brief(line['pdrop'])}; log all of them")
    return multi, content, outcomes


def _tag(action: Mapping[str, Any]) -> int | None:
    tag = action.get("_tag")
    try:
        return int(tag) if isinstance(tag, str | int) and not isinstance(tag, bool) else None
    except ValueError:
        return None


def _ids(multi: list[Any], tagged: bool, arms: dict[Any, int]) -> list[int]:
    """Tags, or numbers of the actions' contents in order of first sight; equal ones of a line are counted apart."""
    if tagged:
        return [_tag(action) or 0 for action in multi]
    found: list[int] = []
    for action in multi:
        content, copy = json.dumps(action, sort_keys=True), 0
        while arms.setdefault((content, copy), len(arms)) in found:
            copy += 1
        found.append(arms[content, copy])
    return found


def _decision(number: int, line: Mapping[str, Any], ids: list[int], outcomes: list[Any]) -> Event:
    slots = [_chosen(outcome, len(ids)) for outcome in outcomes]
    skipped = bool(line.get("_skipLearn"))  # chosen, but never shown
    rewards = [None if skipped else _reward(outcome) for outcome in outcomes]
    state = line.get("VWState")
    version = state.get("m") if isinstance(state, dict) else None
    return {
        "event": "decision", "run": RUN, "id": str(line.get("EventId") or outcomes[0].get("_id") or number),
        "t": number, "time": _seconds(line.get("Timestamp")), "eligible": ids, "k": len(slots),
        "slate": [ids[action] for action, _ in slots], "propensities": [chance for _, chance in slots],
        "design": {"kind": "unknown"}, "version": None if version is None else str(version), "rewards": rewards,
        "slate_reward": None if None in rewards else math.fsum(one for one in rewards if one is not None),
        "shown": [False] * len(slots) if skipped else None,
    }  # fmt: skip


def _chosen(outcome: Mapping[str, Any], n: int) -> tuple[int, Any]:
    """The action of a slot and its chance; lists hold it first."""
    action, chance = (value[0] if isinstance(value, list) and value else value for value in _pair(outcome))
    if type(action) is not int or not 0 <= action < n:
        raise DataError(f"expected an action from 0 to {n - 1} as _a, got {brief(action)}; drop the line")
    return action, chance


def _pair(outcome: Mapping[str, Any]) -> tuple[Any, Any]:
    return outcome.get("_a"), outcome.get("_p")


def _reward(outcome: Mapping[str, Any]) -> float | None:
    cost = outcome.get("_label_cost")
    if cost is not None and (type(cost) not in (int, float) or not math.isfinite(cost)):
        raise DataError(f"expected a number as _label_cost, got {brief(cost)}; leave it out where it is not known")
    return None if cost is None else 0.0 - cost


def _seconds(stamp: Any) -> float | None:
    """Seconds since 1970 of a time stamp such as 2019-11-12T14:22:37.2290000Z."""
    if stamp is None:
        return None
    try:
        return datetime.fromisoformat(stamp).timestamp()
    except (TypeError, ValueError):
        raise DataError(f"expected a time such as 2019-11-12T14:22:37.229Z as Timestamp, got {brief(stamp)}") from None
