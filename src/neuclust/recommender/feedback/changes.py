"""Changes of the books that no message brings: decisions that are dropped, other waiting times."""

from collections.abc import Iterable

from neuclust.errors import DataError, brief
from neuclust.recommender.feedback.decisions import Decisions
from neuclust.recommender.feedback.messages import FeedbackConfig


def forget(decisions: Decisions, ids: Iterable[str]) -> list[str]:
    """Drop open decisions, of which nothing is learned any more; others are refused before anything changes."""
    if isinstance(ids, str) or not isinstance(ids, Iterable):
        raise DataError(f"forget: expected a list of decision ids, got {brief(ids)}; put it into a list")
    wanted = list(dict.fromkeys(ids))
    for id in wanted:
        if not isinstance(id, str) or decisions._open.find(id) is None:
            raise DataError(f"forget: expected ids of open decisions, got {brief(id)}; closed ones are learned already")
    for id in wanted:
        record = decisions._open.find(id)
        if record is not None:
            decisions._open.remove(record)
    return wanted


def reconfigure(decisions: Decisions, config: FeedbackConfig) -> None:
    """Other waiting times from now on, for open decisions too; what was closed stays closed."""
    before, decisions.config = decisions.config, config
    for record in list(decisions._open):
        time = record.decision.time
        looked_at = record.deadline > before.learned_at(time)
        decisions._open.wait(record, config.ends(time) if looked_at else config.learned_at(time))


def next_due(decisions: Decisions) -> float | None:
    """When something is to be learned or closed next, if nothing is said until then."""
    return min((record.deadline for record in decisions._open), default=None)
