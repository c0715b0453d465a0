"""Imports and compilation ahead of the first request, on a copy that is thrown away."""

import copy
import time
import warnings
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from neuclust.errors import ConfigError, LearningWarning
from neuclust.recommender.answers import Answers, DecisionIds
from neuclust.recommender.feedback.decisions import Decisions
from neuclust.recommender.log.events import EventLog
from neuclust.recommender.tables.values import Id

if TYPE_CHECKING:
    from neuclust.recommender.recommender import Recommender

LEAST_ROUNDS, MOST_ROUNDS = 8, 64  # requests with feedback: some loops are first needed when all clusters were played
SECONDS = 3.0  # after which no more than the least are played
ELIGIBLE = 300  # items of a request


def warm_up(shop: "Recommender") -> None:
    """Do imports and compilation now, so that the first request and its feedback take no longer than later ones.

    Requests are played on a copy that is thrown away: nothing is learned, logged or counted here, and a schema that is
    a draft stays one; the first recommendation then still fixes the schema, in a pass over the tables.
    """
    if not len(shop.stock.catalogue):
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LearningWarning)  # the first request tells of its columns itself
        try:
            _play(_copy(shop))
        except ConfigError:  # crosses of request context, which comes with the first request
            _play(_copy(shop, crosses=False))


def _copy(shop: "Recommender", crosses: bool = True) -> "Recommender":
    """The same items, users and learned state, with books of its own and without a log."""
    made = copy.copy(shop)
    settings = shop.settings
    if not crosses:
        settings = replace(settings, features=replace(settings.features, cross=None, match=None))
    made.settings, made.stock = settings, shop.stock.copy()
    made.clock = lambda: 0.0
    made.schema = None if shop.schema is None else replace(shop.schema, user=copy.deepcopy(shop.schema.user))
    made.learner = None if shop.learner is None else shop.learner.copy()
    made.decisions = Decisions(settings.feedback, settings.slate_size, settings.reward)
    made.answers, made.ids, made.log = Answers(1), DecisionIds(), EventLog()
    return made


def _play(shop: "Recommender") -> None:
    """Requests of all kinds, with feedback: single ones, several in one pass, with rules, and values that come late."""
    eligible = shop.stock.catalogue.ids()[:ELIGIBLE]
    users: list[Id | None] = [*shop.stock.users.ids()[:LEAST_ROUNDS]] or [None]
    high, low = shop.settings.feedback.high, shop.settings.feedback.nothing
    end = time.monotonic() + SECONDS
    for at in range(MOST_ROUNDS):
        if at >= LEAST_ROUNDS and time.monotonic() > end:
            break
        choice = shop.recommend(users[at % len(users)], eligible=eligible)
        values: dict[Id, float] = {item: high if slot % 2 else low for slot, item in enumerate(choice.items)}
        if at % 2:
            shop.feedback(choice.id, {choice.items[0]: high}, partial=True)
        shop.feedback(choice.id, {**values, choice.items[0]: high})
    request: Mapping[str, Any] = {"user": users[0], "eligible": eligible}
    shop.recommend_many([request, request, {**request, "required": eligible[:1]}])
