"""The front door: a table of items, a table of users, requests in, slates out, clicks back."""

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Unpack

from neuclust.errors import ConfigError, LearningWarning
from neuclust.recommender.answers import Answers, DecisionIds
from neuclust.recommender.changing import change_settings, forget_decisions, remove_users
from neuclust.recommender.choices import Choice
from neuclust.recommender.chooser import Chooser, Chosen, Offer, Place, nothing_chosen, of_known_user, offer
from neuclust.recommender.encoders.feature_table import FeatureTable
from neuclust.recommender.explaining.explain import explain as explain_choice
from neuclust.recommender.feedback.decisions import Answer, Decision, Decisions, Lesson, count
from neuclust.recommender.feedback.messages import Details, Unanswered
from neuclust.recommender.freezing import freeze, warn_of_mistakes
from neuclust.recommender.items.rows import Changes
from neuclust.recommender.items.stock import Stock
from neuclust.recommender.learner import Learner
from neuclust.recommender.log.events import EventLog
from neuclust.recommender.log.refit import refit_recommender
from neuclust.recommender.log.warm_start import fit_recommender_log
from neuclust.recommender.names import in_one_line
from neuclust.recommender.options import RecommenderOptions, clock_of, read_settings
from neuclust.recommender.reader import accept_choice, make_reader
from neuclust.recommender.requests import Request, RequestDetails, distinct, read_request, read_requests
from neuclust.recommender.saving.loading import load_recommender, recommender_from_bytes
from neuclust.recommender.saving.saving import fitted_transformers, recommender_to_bytes, save_recommender
from neuclust.recommender.schema import Schema, check_names
from neuclust.recommender.tables.values import Id, Value
from neuclust.recommender.warming import warm_up as warm_up_recommender

Made = tuple[str, int, int, Chosen]


class Recommender:
    """Learns which items to show whom, K at a time, from what came back.

    `items` and `users` are pandas, Polars or Arrow tables, lists of dictionaries, or paths to CSV, JSON lines or
    Parquet files; `item_id` and `user_id` name the columns with their ids. Further options: `RecommenderOptions`. One
    thread or process writes; `reader()` gives an immutable copy to serve from many.
    """

    def __init__(
        self, items: Any, item_id: str, *, users: Any = None, user_id: str | None = None, slate_size: int = 5,
        **options: Unpack[RecommenderOptions],
    ) -> None:  # fmt: skip
        self.settings = read_settings(item_id, user_id, slate_size, options)
        self.clock = clock_of(options)
        self.stock = Stock.of(self.settings, items, users)
        check_names(self.settings.features, self.stock.item_table(), self.stock.user_table())
        self.schema: Schema | None = None  # a draft until the first recommendation
        self.learner: Learner | None = None
        self.decisions = Decisions(self.settings.feedback, slate_size, self.settings.reward)
        self.answers, self.ids = Answers(self.settings.feedback.remember), DecisionIds()
        self.log = EventLog.opened(options.get("log"))
        self.log.started(self)

    save = save_recommender
    load = classmethod(load_recommender)
    to_bytes = recommender_to_bytes
    from_bytes = classmethod(recommender_from_bytes)
    reader = make_reader
    accept = accept_choice
    transformers = property(fitted_transformers)
    refit = refit_recommender
    __repr__ = in_one_line
    fit_log = fit_recommender_log

    # --- requests -------------------------------------------------------------------------------------------------

    def recommend(self, user: Id | Mapping[str, Any] | None = None, **details: Unpack[RequestDetails]) -> Choice:
        """A slate for a user: an id of the table, a dictionary of features, or None for somebody unknown.

        See `RequestDetails` for `eligible`, `exclude`, `required`, `at_most`, `k`, `context` and `request_id`.
        """
        return self._answered([read_request(user, details, self.settings.slate_size)])[0]

    def recommend_many(self, requests: Iterable[Mapping[str, Any]]) -> list[Choice]:
        """Slates for many requests in one pass, each a dictionary of the arguments of `recommend`.

        Where one is refused, none is answered. All are answered by what was learned before the call.
        """
        return self._answered(read_requests(requests, self.settings.slate_size))

    def _answered(self, requests: Sequence[Request]) -> list[Choice]:
        self.log.ready()
        now = self.clock()
        self._learn(self.decisions.due(now))
        requests = [of_known_user(request, self.stock.users) for request in requests]
        known = [self.answers.find(request) for request in requests]
        new, again = distinct(requests, known)
        offers = [offer(request, self.stock.catalogue) for request in new]  # refuses before anything changes
        chosen = self._chosen(new, offers)
        choices = [self._entered(request, each, now) for request, each in zip(new, chosen, strict=True)]
        return [each if each is not None else choices[at] for each, at in zip(known, again, strict=True)]

    def _chosen(self, requests: Sequence[Request], offers: Sequence[Offer]) -> list[Made]:
        """Id, number, key of randomness and slate of the decision for each request."""
        if not requests:
            return []
        schema, learner, stock = self.schema, self.learner, self.stock
        if schema is None and len(stock.catalogue):
            schema, learner, stock = self._frozen(_first_values(requests))
        if schema is None or learner is None:  # no items yet: nothing to learn the schema from
            return [
                (*self.ids.next(request), nothing_chosen(found))
                for request, found in zip(requests, offers, strict=True)
            ]
        span, side = self.settings.feedback.span, schema.user
        chooser = Chooser(schema, stock.catalogue, stock.users, learner, span)
        users = [chooser.user_row(request) for request in requests]  # refuses values of a wrong type
        if self.schema is None:
            warn_of_mistakes(schema)
        self.schema, self.learner, self.stock = schema, learner, stock  # nothing is refused from here on
        if not side.settled:
            for request in requests:
                side.observe(request.row)
            users = [chooser.user_row(request) for request in requests]
        for request in requests:
            self.stock.note("context", request.row.keys() - side.reasons.keys())
        named = [self.ids.next(request) for request in requests]
        chosen = chooser.choose(requests, offers, users, [Place(number, draw) for _, number, draw in named])
        return [(id, number, draw, each) for (id, number, draw), each in zip(named, chosen, strict=True)]

    def _entered(self, request: Request, made: Made, now: float) -> Choice:
        """The choice of a slate, entered as an open decision."""
        id, number, _, chosen = made
        choice = chosen.choice(id, request, now, self.settings.policy.name, self.decisions.counts.lessons)
        self.decisions.open(Decision(number, id, now, tuple(chosen.ids), chosen.shown, chosen.shown.version))
        self.answers.note(request, choice)
        self.log.decided(choice, request)
        return choice

    # --- what came back -------------------------------------------------------------------------------------------

    def feedback(self, id: str | Choice, items: Mapping[Id, float], **details: Unpack[Details]) -> Answer:
        """What came back for a choice, or its id: values by item; items not named count 0, and the decision is closed.

        `partial=True` leaves it open until the window ends. `shown`: leading slots or items that were really seen.
        `slate`: the slate's own value. `feedback_id`: the same one is taken once. The answer's `status` is learned,
        open, duplicate or late.
        """
        self.log.ready()
        now = self.clock()
        self._learn(self.decisions.due(now))
        id = id.id if isinstance(id, Choice) else id
        answer = self.decisions.feedback(id, items, now=now, **details)
        self.log.heard(id, items, details, answer.status, now)
        self._learn(answer.lessons)
        return replace(answer, lessons=())

    def expire(self, older_than: float = 0.0, unanswered: Unanswered | None = None) -> int:
        """Close the decisions that are at least so many seconds old; how many there were.

        What was said of them stands, other items count as `unanswered` says: zeros, or unseen.
        """
        self.log.ready()
        before = self.decisions.counts.closed
        self._learn(self.decisions.expire(older_than, self.clock(), unanswered))
        return self.decisions.counts.closed - before

    def _learn(self, lessons: Iterable[Lesson]) -> None:
        for lesson in lessons:
            if not len(lesson.decision.items) or self.learner is None or self.schema is None:
                continue
            if lesson.problem:  # found out when the window ended: there is no call to refuse
                warnings.warn(f"decision {lesson.decision.id}: {lesson.problem}", LearningWarning, stacklevel=4)
            if not self.learner.learn(lesson, self.schema):
                count(self.decisions, late=1)
            self.log.learned(lesson)

    explain, warm_up = explain_choice, warm_up_recommender
    forget, remove_users, change = forget_decisions, remove_users, change_settings

    # --- items, users, schema -------------------------------------------------------------------------------------

    def add_items(self, items: Any) -> Changes:
        """Add items, or replace those that are known, from any table; they can be recommended at once."""
        self.log.ready()
        changes = self.stock.add_items(items, self.schema)
        self.log.stocked("items", [*changes.added, *changes.changed], self.stock.catalogue.rows)
        return changes

    def remove_items(self, ids: Iterable[Id]) -> list[Id]:
        """Take items out; what was learned of them stays, and so do open decisions."""
        self.log.ready()
        removed = self.stock.remove_items(ids)
        self.log.removed(removed)
        return removed

    def add_users(self, users: Any) -> Changes:
        """Add users, or replace those that are known, from any table."""
        self.log.ready()
        changes = self.stock.add_users(users, self.schema)
        self.log.stocked("users", [*changes.added, *changes.changed], self.stock.users.rows)
        return changes

    @property
    def features(self) -> FeatureTable:
        """How every column is read and why, and how users and items meet; a draft before the first recommendation."""
        if self.schema is not None:
            return self.schema.table(self.stock.unlearned)
        try:
            return self._fitted({}).table()
        except ConfigError:  # crosses of request context, which comes with the first request
            return self._fitted({}, crosses=False).table()

    def _fitted(self, row: Mapping[str, Value], crosses: bool = True) -> Schema:
        features = self.settings.features
        features = features if crosses else replace(features, cross=None, match=None)
        return Schema.fit(features, self.stock.item_table(), self.stock.user_table(), row)

    def _frozen(self, row: Mapping[str, Value]) -> tuple[Schema, Learner, Stock]:
        """The schema fixed by the tables and the columns of the first request, the policy for it, the stock encoded."""
        found = freeze(self.settings, self.stock, row)
        return found.schema, found.learner, found.stock


def _first_values(requests: Sequence[Request]) -> dict[str, Value]:
    """The first value of each column that requests bring."""
    found: dict[str, Value] = {}
    for request in requests:
        found |= {name: value for name, value in request.row.items() if found.get(name) is None}
    return found
