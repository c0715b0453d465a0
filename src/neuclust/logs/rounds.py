"""Decision events of one run as logged decisions: checked, with rounds made from the catalogue at their line."""

import math
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from neuclust.casting import whole
from neuclust.core import Cap, Round, Rules
from neuclust.errors import DataError, brief
from neuclust.logs import checks
from neuclust.logs.catalogue import ReadArms
from neuclust.logs.decisions import LoggedDecision
from neuclust.logs.events import RunStart
from neuclust.slates.rules import option_counts

Event = dict[str, Any]


class Heard(NamedTuple):
    """One feedback event: values by arm id, of the slate, and slots that were shown; None: nothing is said."""

    values: dict[int, float]
    slate_reward: float | None
    shown: list[bool] | None


def heard(event: Event) -> Heard:
    """The content of a feedback event, checked."""
    arms = checks.ids(event, "arms")
    values = checks.rewards(event, "values", len(arms)) if arms or event.get("values") is not None else []
    shown = None if event.get("shown") is None else checks.flags(event, "shown", len(checks.listed(event, "shown")))
    return Heard(dict(zip(arms, values, strict=True)), checks.number(event, "slate_reward"), shown)


class RunReader:
    """The events of one run, in order: arms change the catalogue, decisions are checked and turned into records."""

    def __init__(self, start: RunStart) -> None:
        self.start, self.arms = start, ReadArms()

    def arm(self, event: Event) -> None:
        """Take in an arm event."""
        arm = checks.whole(event, "arm", -(2**63))
        self.arms.put(arm, checks.numbers(event, "profile"))

    def check(self, event: Event) -> None:
        """Refuse a decision that `decision` could not read, without making its round's tensors."""
        self._parts(event)

    def decision(self, event: Event, later: list[Heard]) -> LoggedDecision:
        """The record of a decision event with all later feedback."""
        ids, rules, drawn, sizes = self._parts(event)
        slate = np.array(drawn.slate, np.int64)
        rewards, worth, shown = _outcome(event, later)
        return LoggedDecision(
            id=event["id"], run=self.start.run, round=self._round(event, ids, rules), slate=slate,
            propensities=None if drawn.propensities is None else np.array(drawn.propensities, np.float64),
            design=drawn.design,
            sizes=sizes, rewards=np.array(rewards, np.float64), slate_reward=worth,
            shown=None if shown is None else np.array(shown, np.bool_),
            time=event.get("time"), user=event.get("user"), version=event.get("version"),
        )  # fmt: skip

    # --- parts ------------------------------------------------------------------------------------------------

    def _parts(self, event: Event) -> tuple[list[int] | None, Rules | None, checks.Drawn, tuple[int, ...]]:
        """Eligible ids (None: the catalogue), rules, slate and design, |A(S)| per slot; all that can be wrong."""
        _check_labels(event)
        ids, places = self._eligible(event)
        rules = _rules(event, len(places))
        drawn = checks.drawn(event, places, rules is not None)
        k = checks.whole(event, "k", 0)
        if k > self.start.slate_size:
            size = self.start.slate_size
            raise DataError(f"expected k of at most {size}, the slate_size of its run, got {k}; correct one of them")
        self._check_features(event, places)
        if event.get("rewards") is not None:
            checks.rewards(event, "rewards", len(drawn.slate))
        checks.number(event, "slate_reward")
        checks.flags(event, "shown", len(drawn.slate))
        return ids, rules, drawn, _sizes(event, list(places), rules, drawn.slate)

    def _eligible(self, event: Event) -> tuple[list[int] | None, dict[int, int]]:
        if event.get("eligible") is None:
            return None, self.arms.rows
        ids = checks.ids(event, "eligible")
        return ids, dict(zip(ids, range(len(ids)), strict=True))

    def _check_features(self, event: Event, places: dict[int, int]) -> None:
        """Feature rows, or profiles of all eligible arms, of the run's dimension."""
        n, dim, query = len(places), self.start.dim, event.get("query")
        known = self.arms.rows
        missing = None if places is known else next((arm for arm in places if arm not in known), None)
        if event.get("features") is not None:
            checks.numbers(event, "features", n * dim)
        elif missing is not None:
            got = f"got none of arm {missing}; write an arm event before the decision, or its features"
            raise DataError(f"expected the profile of every eligible arm, {got}")
        elif n and self.arms.width != dim:
            raise DataError(f"expected profiles of dim = {dim} numbers, got {self.arms.width}; correct the start event")
        if query is not None:
            checks.numbers(event, "query", self.arms.width if n and missing is None else None)

    def _round(self, event: Event, ids: list[int] | None, rules: Rules | None) -> Round:
        n = len(self.arms.rows) if ids is None else len(ids)
        flat = event.get("features")
        features = None if flat is None else torch.tensor(flat, dtype=torch.float64).reshape(n, self.start.dim)
        query = event.get("query")
        profiles = self._profiles(ids, features)
        known = query is not None and profiles.shape[1] == len(query)
        return Round(
            t=event["t"],
            arm_ids=self.arms.ids if ids is None else torch.tensor(ids, dtype=torch.int64),
            profiles=profiles,
            query=torch.tensor(query, dtype=torch.float64) if known else None,
            slate_size=event["k"],
            features=features,
            rules=rules,
        )

    def _profiles(self, ids: list[int] | None, features: Tensor | None) -> Tensor:
        """Of the catalogue; the features themselves where arms have none."""
        if ids is None:
            return self.arms.table
        if features is not None and any(arm not in self.arms.rows for arm in ids):
            return features
        return self.arms.profiles(ids)


def _check_labels(event: Event) -> None:
    checks.text(event, "id")
    checks.whole(event, "t")
    checks.number(event, "time")
    user, version = event.get("user"), event.get("version")
    if user is not None and type(user) not in (str, int):
        raise DataError(f"expected a text, a whole number or null as user, got {brief(user)}; correct it")
    if version is not None and not isinstance(version, str):
        raise DataError(f"expected a text or null as version, got {brief(version)}; write it as a text")


def _rules(event: Event, n: int) -> Rules | None:
    required, excluded = checks.ids(event, "required"), checks.ids(event, "excluded")
    given = event.get("caps") or []
    if not (required or excluded or given):
        return None
    if not isinstance(given, list) or not all(isinstance(cap, dict) for cap in given):
        raise DataError(f"expected a list of objects as caps, got {brief(given)}; correct it")
    caps = tuple(Cap(whole(checks.listed(cap, "groups", n), "groups"), checks.whole(cap, "most")) for cap in given)
    return Rules(torch.tensor(required, dtype=torch.int64), torch.tensor(excluded, dtype=torch.int64), caps)


def _sizes(event: Event, ids: list[int], rules: Rules | None, slate: list[int]) -> tuple[int, ...]:
    """|A(S)| before each slot, which the event must not contradict."""
    if rules is None:
        found = tuple(range(len(ids), len(ids) - len(slate), -1))
    else:
        bare = Round(event["t"], torch.tensor(ids), torch.zeros(len(ids), 0), None, event["k"], rules=rules)
        try:
            found = option_counts(bare, slate)
        except DataError as error:
            raise DataError(f"expected a slate that its rules allow, got another ({error}); correct either") from None
    told = (event.get("design") or {}).get("sizes")
    if told and told != list(found):
        wanted = f"expected design.sizes {list(found)} by eligible arms and rules"
        raise DataError(f"{wanted}, got {brief(told)}; correct it")
    return found


def _outcome(event: Event, later: list[Heard]) -> tuple[list[float], float, list[bool] | None]:
    """Rewards per slot, of the slate, and shown slots; later feedback replaces what it names."""
    slate, given = event["slate"], event.get("rewards")
    values = [math.nan] * len(slate) if given is None else [math.nan if one is None else float(one) for one in given]
    worth, shown = event.get("slate_reward"), event.get("shown")
    for part in later:
        values = [part.values.get(arm, value) for arm, value in zip(slate, values, strict=True)]
        worth = worth if part.slate_reward is None else part.slate_reward
        shown = shown if part.shown is None else part.shown
    return values, math.nan if worth is None else float(worth), shown
