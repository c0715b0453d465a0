"""What may change while learned state stays: who is known, which decisions are open, exploration, waiting times."""

from collections.abc import Iterable
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Literal, TypedDict, Unpack

from neuclust.errors import ConfigError, brief, suggestion
from neuclust.recommender.feedback.changes import forget, reconfigure
from neuclust.recommender.learner import Learner
from neuclust.recommender.options import exploration_of, feedback_of
from neuclust.recommender.tables.values import Id
from neuclust.slates.propensities import Exploration

if TYPE_CHECKING:
    from neuclust.recommender.recommender import Recommender

WAITING = ("window", "learn_after", "unanswered")


class ChangedOptions(TypedDict, total=False):
    """The options of a recommender that may change at any time; what is not given stays."""

    exploration: Exploration | float | None
    window: float
    learn_after: float | None
    unanswered: Literal["zeros", "unseen"]


def change_settings(self: "Recommender", **options: Unpack[ChangedOptions]) -> None:
    """Change exploration or waiting times; what was learned stays, and open decisions wait by the new times."""
    known = ChangedOptions.__optional_keys__
    for name in options:
        if name not in known:
            near = suggestion(name, sorted(known))
            raise ConfigError(f"expected an option that may change, got {brief(name)}; {near}")
    settings = self.settings
    waiting = {name: value for name, value in dict(options).items() if name in WAITING}
    feedback = feedback_of({**asdict(settings.feedback), **waiting})
    exploration = exploration_of(options["exploration"]) if "exploration" in options else settings.policy.exploration
    policy = replace(settings.policy, exploration=exploration)
    self.settings = self.stock.settings = replace(settings, feedback=feedback, policy=policy)
    reconfigure(self.decisions, feedback)
    if self.learner is not None:
        self.learner = Learner(policy, self.learner.policy)


def remove_users(self: "Recommender", ids: Iterable[Id]) -> list[Id]:
    """Take users out of the table with all their values; what was learned stays, and so do open decisions."""
    self.log.ready()
    removed = self.stock.remove_users(ids)
    self.log.removed(removed, "users-removed")
    return removed


def forget_decisions(self: "Recommender", ids: Iterable[str]) -> list[str]:
    """Drop open decisions: nothing is learned of them any more, and feedback for them is refused."""
    self.log.ready()
    forgotten = forget(self.decisions, ids)
    self.log.removed(forgotten, "forgotten")
    return forgotten
