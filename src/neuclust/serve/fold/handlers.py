"""What each kind of event does to a state. What cannot be right raises before it has changed anything."""

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from neuclust.errors import DataError
from neuclust.recommender.answers import Answers
from neuclust.recommender.feedback.decisions import Decisions
from neuclust.recommender.freezing import freeze
from neuclust.recommender.recommender import Recommender
from neuclust.serve.configuration import ITEM_ID, USER_ID, Configuration
from neuclust.serve.events import DETAILS, choice_of, history_of, row_of, rows_of
from neuclust.serve.fold.blobs import Clock, State
from neuclust.serve.fold.tables import change_stock, configured
from neuclust.serve.store.contract import (
    CONFIG,
    DECISION,
    ERASURE,
    EXPIRY,
    FEEDBACK,
    FREEZE,
    HISTORY,
    ITEMS,
    ITEMS_REMOVED,
    USERS,
    USERS_REMOVED,
    Row,
)

SPARE = 1_000  # owners of closed decisions that are kept before they are cleared away
LEARNED, NOTHING = "learned", "nothing"

Content = Mapping[str, Any]
Handler = Callable[[State, Row, Content], str | None]


def new_shop(configuration: Configuration, clock: Clock) -> Recommender:
    """A recommender without items; declared columns are looked for when the schema is fixed."""
    settings = configuration.read
    shop = Recommender([], ITEM_ID, user_id=USER_ID, slate_size=settings.slate_size, remember=1, clock=clock)
    shop.settings = shop.stock.settings = settings
    shop.decisions = Decisions(settings.feedback, settings.slate_size, settings.reward)
    shop.answers = Answers(settings.feedback.remember)
    return shop


def apply_event(state: State, row: Row, content: Content) -> str | None:
    """Apply an event, after what is due by its time; what became of it, where there is something to say."""
    if row.kind != ERASURE:  # what is erased is not learned, though it may be due
        state.shop.expire(math.inf)
    return _HANDLERS[row.kind](state, row, content)


def _configure(state: State, row: Row, content: Content) -> None:
    if row.seq == 1:
        return
    new, shop = Configuration.from_json(content), state.shop
    stock = configured(shop.stock, state.configuration, new, shop.schema is not None)
    if shop.schema is None:
        state.shop = new_shop(new, state.clock)
        state.shop.stock, state.shop.log = stock, shop.log
    else:
        feedback = new.read.feedback
        shop.change(
            exploration=new.read.policy.exploration, window=feedback.window, learn_after=feedback.learn_after,
            unanswered=feedback.unanswered,
        )  # fmt: skip
    state.configuration = new


def _stock(state: State, row: Row, content: Content) -> None:
    change_stock(state.shop.stock, row.kind, content, state.shop.schema, observe=True)
    if row.kind == USERS:
        for values in rows_of(content, USER_ID):
            state.levels.note(state.shop.schema, values, str(values[USER_ID]))


def _freeze(state: State, row: Row, content: Content) -> None:
    shop = state.shop
    if shop.schema is None:
        found = freeze(shop.settings, shop.stock, row_of(content))
        shop.schema, shop.learner, shop.stock = found.schema, found.learner, found.stock
        for user in shop.stock.users.ids():
            state.levels.note(shop.schema, shop.stock.users.raw(user) or {}, str(user))
        state.levels.note(shop.schema, found.row, row.user)


def _decide(state: State, row: Row, content: Content) -> None:
    choice = choice_of(content)
    if not choice.items or choice.shown is None:
        return
    state.shop.accept(replace(choice, time=row.time))  # the log's clock is the only one
    if choice.request is not None:
        state.levels.note(state.shop.schema, choice.request.row, row.user)
    if row.user is not None:
        state.owners[choice.id] = row.user
        if len(state.owners) > 2 * state.shop.decisions.counts.open + SPARE:
            opened = [each.id for each in state.shop.decisions.open_decisions()]
            state.owners = {id: state.owners[id] for id in opened if id in state.owners}


def _hear(state: State, row: Row, content: Content) -> str:
    details = {name: content[name] for name in DETAILS if name in content}
    return state.shop.feedback(content["decision"], content["items"], feedback_id=row.key, **details).status


def _expire(_: State, __: Row, ___: Content) -> None:
    """What is due was learned before."""


def _learn_history(state: State, row: Row, content: Content) -> str:
    if state.shop.schema is None:
        raise DataError("history: expected a schema that is fixed, got a draft; let a freeze come before")
    rows, columns = history_of(content)
    state.shop.ids.token = f"h{row.seq}"  # in the ids of its decisions: the same in every process
    return LEARNED if state.shop.fit_log(rows, **columns).decisions else NOTHING


def _erase(state: State, _: Row, content: Content) -> None:
    user, shop = content["id"], state.shop
    shop.forget([each.id for each in shop.decisions.open_decisions() if state.owners.get(each.id) == user])
    state.owners = {id: owner for id, owner in state.owners.items() if owner != user}
    change_stock(shop.stock, ERASURE, content, shop.schema, observe=True)
    texts = state.levels.erase(user)
    if texts and shop.schema is not None:
        shop.schema = shop.schema.without_levels(texts)
    shop.expire(math.inf)


_HANDLERS: Mapping[str, Handler] = {
    CONFIG: _configure, ITEMS: _stock, ITEMS_REMOVED: _stock, USERS: _stock, USERS_REMOVED: _stock, FREEZE: _freeze,
    DECISION: _decide, FEEDBACK: _hear, EXPIRY: _expire, HISTORY: _learn_history, ERASURE: _erase,
}  # fmt: skip
