"""Writes any log in our own format: one file of another system's decisions, or of a recommender's."""

from dataclasses import replace
from itertools import groupby
from pathlib import Path

import torch

from neuclust.core import Feedback, Slate
from neuclust.logs.decisions import LoggedDecision
from neuclust.logs.runs import DecisionLog
from neuclust.logs.writer import Details, LogWriter


def copy_log(log: DecisionLog, path: str | Path) -> int:
    """Write the decisions of a log as .jsonl or .parquet, with all that came back for them; how many there were.

    Decisions of several runs that stand between each other become runs of their own: NAME, NAME-2, …
    """
    written, times = 0, dict.fromkeys(log.runs, 0)
    with LogWriter(path) as out:
        for run, decisions in groupby(log.decisions(), key=lambda each: each.run):
            times[run] += 1
            out.start(replace(log.runs[run], run=run if times[run] == 1 else f"{run}-{times[run]}"))
            for decision in decisions:
                out.decided(decision.round, _slate(decision), _feedback(decision), **_details(decision))
                written += 1
    return written


def _slate(decision: LoggedDecision) -> Slate:
    """The slate as it was drawn; what the policy believed of its arms is not in a log."""
    nothing = torch.zeros(len(decision.slate), dtype=torch.float64)
    chances = None if decision.propensities is None else torch.from_numpy(decision.propensities)
    return Slate(torch.from_numpy(decision.slate), nothing, nothing, chances, design=decision.design)


def _feedback(decision: LoggedDecision) -> Feedback:
    return Feedback(torch.from_numpy(decision.rewards), torch.tensor(decision.slate_reward, dtype=torch.float64))


def _details(decision: LoggedDecision) -> Details:
    found: Details = {"id": decision.id}
    if decision.time is not None:
        found["time"] = decision.time
    if decision.user is not None:
        found["user"] = decision.user
    if decision.version is not None:
        found["version"] = decision.version
    if decision.shown is not None:
        found["shown"] = decision.shown.tolist()
    return found
