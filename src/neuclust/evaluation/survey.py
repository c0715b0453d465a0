"""What a log holds, in one pass: how many decisions, of which designs, and where rewards are missing."""

from __future__ import annotations

import math
from array import array
from collections import Counter
from dataclasses import dataclass, field

import numpy as np

from neuclust.errors import DataError
from neuclust.evaluation.scoring import Log
from neuclust.logs.decisions import LoggedDecision


@dataclass(slots=True)
class Survey:
    """Counts over the decisions of a log; slates are as long as `slate_size`, contexts have `dim` features."""

    decisions: int = 0
    slate_size: int = 0
    dim: int = 0
    designs: Counter[str] = field(default_factory=Counter)
    runs: dict[str, None] = field(default_factory=dict)  # in the order in which they came
    versions: set[str] = field(default_factory=set)
    shortest: int = 0  # slate there is
    longest: int = 0
    binary: bool = True  # all rewards of slots that were observed are 0 or 1
    # places of decisions, from 0: without any reward, without one of some slot, and without one of the slate alone
    unanswered: array[int] = field(default_factory=lambda: array("q"))
    unanswered_times: array[float] = field(default_factory=lambda: array("d"))  # NaN: not known
    partly: array[int] = field(default_factory=lambda: array("q"))
    slateless: array[int] = field(default_factory=lambda: array("q"))
    last_answered: int = -1  # place of the last decision of which anything came back
    last_time: float = -math.inf

    @property
    def known(self) -> bool:
        """Whether every design is known, so that slot marginals can be computed."""
        return "unknown" not in self.designs


MOST_VERSIONS = 2  # more are not counted: two tell that the policy learned


def survey(log: Log) -> Survey:
    """Go through the log once."""
    found = Survey()
    for decision in log.decisions():
        contexts = decision.round.contexts
        if found.decisions and contexts.shape[1] != found.dim:
            got = f"got {contexts.shape[1]} after {found.dim}; evaluate the runs one by one"
            raise DataError(f"decision {decision.id}: expected as many features as before, {got}")
        _count_rewards(found, decision)
        found.decisions += 1
        found.slate_size = max(found.slate_size, len(decision.slate), decision.round.slate_size)
        found.dim = contexts.shape[1]
        found.designs[decision.design.kind] += 1
        found.runs[decision.run] = None
        if decision.version is not None and len(found.versions) < MOST_VERSIONS:
            found.versions.add(decision.version)
    if found.decisions < 2:
        raise DataError(f"log: expected at least 2 decisions to judge policies by, got {found.decisions}")
    return found


def _count_rewards(found: Survey, decision: LoggedDecision) -> None:
    """What the next decision tells of rewards; slots that were not shown count 0."""
    at, k, rewards = found.decisions, len(decision.slate), decision.rewards
    found.shortest, found.longest = min(found.shortest or k, k), max(found.longest, k)
    found.last_time = max(found.last_time, -math.inf if decision.time is None else decision.time)
    unseen = np.isnan(rewards) if decision.shown is None else np.isnan(rewards) & decision.shown
    found.binary = found.binary and bool(((rewards == 0) | (rewards == 1) | np.isnan(rewards)).all())
    slateless = math.isnan(decision.slate_reward)
    if slateless and bool(np.isnan(rewards).all()) and bool(unseen.any()):
        found.unanswered.append(at)
        found.unanswered_times.append(math.nan if decision.time is None else decision.time)
        return
    found.last_answered = at
    if unseen.any():
        found.partly.append(at)
    if slateless:
        found.slateless.append(at)
