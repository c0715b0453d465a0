"""A recommender that has learned another one's log, with a policy of its own."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from neuclust.errors import ConfigError, DataError
from neuclust.recommender.answers import Answers, DecisionIds
from neuclust.recommender.feedback.decisions import Decisions, count
from neuclust.recommender.log.refit import Refitted
from neuclust.recommender.log.rounds import RecommenderLog, logged_decisions
from neuclust.recommender.log.starts import settings_of_start
from neuclust.recommender.options import Settings
from neuclust.recommender.recommender import Recommender
from neuclust.slates.propensities import Exploration


def recommender_from_log(
    path: str | Path | RecommenderLog,
    policy: str,
    settings: Mapping[str, Any] | None = None,
    seed: int = 0,
    exploration: Exploration | float | None = None,
) -> Recommender:
    """A recommender with the items and users at the end of a log and the options of its last start, whose policy is
    another one and has learned every decision of the log that has a lesson, in the order in which they were learned.

    `path`: the log, or what `logged_decisions` made of it, with its features and bad lines. The result is ready to
    `save` and has no log of its own yet: `Recommender.load(directory, log=…)` continues one. Decisions that were open
    stay with the recommender that made them.
    """
    read = path if isinstance(path, RecommenderLog) else logged_decisions(path)
    chosen = _settings(read, {"policy": policy, "settings": settings, "seed": seed, "exploration": exploration})
    if not len(read.stock.catalogue):
        raise DataError(f"{read.path}: expected items at its end, got none; add items to the shop first")
    shop = Recommender([], chosen.item_id, slate_size=chosen.slate_size, remember=1, policy="uniform")
    shop.settings, shop.stock = chosen, read.stock.copy()
    shop.stock.settings = chosen
    shop.decisions = Decisions(chosen.feedback, chosen.slate_size, chosen.reward)
    shop.answers = Answers(chosen.feedback.remember)
    shop.ids = DecisionIds(max((past.t for past in read.history.decisions.values()), default=0))
    made = Refitted.of(shop, chosen, read.history)
    shop.schema, shop.learner, shop.stock = made.schema, made.learner, made.stock
    count(shop.decisions, learned=len(read.history.learned))
    return shop


def _settings(log: RecommenderLog, policy: Mapping[str, Any]) -> Settings:
    if log.settings.reward.needs_function:
        said = "expected a reward that a log can hold (sum, any, threshold:SHARE), got a function"
        advice = "make the recommender with that function and fit_log, or refit the one that wrote the log"
        raise ConfigError(f"{said}, which is not in it; {advice}", field="reward")
    return settings_of_start(log.start, log.settings.features, **policy)
