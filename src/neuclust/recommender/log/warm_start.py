"""Warm start: what another system showed, and what came back, learned before the first recommendation or later."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np
import torch
from numpy.typing import NDArray

from neuclust.core import Slate
from neuclust.errors import DataError
from neuclust.recommender.choices import Shown
from neuclust.recommender.feedback.decisions import Decision, Lesson, count
from neuclust.recommender.freezing import warn_of_mistakes
from neuclust.recommender.items.stock import Stock
from neuclust.recommender.learner import Learner
from neuclust.recommender.log.logged_slates import NAME, LogColumns, LoggedSlate, read_slates
from neuclust.recommender.log.refit import settling_sample
from neuclust.recommender.options import Settings
from neuclust.recommender.schema import Schema
from neuclust.recommender.tables.tables import Table
from neuclust.recommender.tables.values import Id, Value

if TYPE_CHECKING:
    from neuclust.recommender.recommender import Recommender

Matrix = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class LogFit:
    """What was learned from a table: decisions and rows; and rows that were not, of unknown items or unseen."""

    decisions: int
    rows: int
    dropped: int  # rows of items that are not in the catalogue
    unseen: int  # rows of known items without a reward


def fit_recommender_log(self: "Recommender", table: Any, **columns: Unpack[LogColumns]) -> LogFit:
    """Learn from a long table with one row per decision and item; see `LogColumns` for the names of its columns.

    Rows of unknown items are dropped and counted; what such a slate was worth as a whole is unknown then. Unknown users
    are as good as nobody. A table with anything wrong in it is refused, and nothing has been learned. Before the first
    recommendation it also fixes the schema.
    """
    self.log.ready()
    self.expire(older_than=math.inf)  # what is due comes first
    logged = read_slates(table, columns, self.settings.feedback, self.settings.slate_size)
    kept = [_known(slate, self.stock, self.settings) for slate in logged]
    learned = [part for part in kept if part.teaches]
    if learned:
        _learn(self, learned)
    rows = sum(int((~np.isnan(part.rewards)).sum()) for part in learned)
    known = sum(len(part.items) for part in kept)
    return LogFit(len(learned), rows, sum(len(slate.items) for slate in logged) - known, known - rows)


@dataclass(frozen=True, slots=True)
class _Part:
    """The known items of a slate, with rewards (k,) in [0, 1] and the slate's; NaN: unseen, unknown."""

    logged: LoggedSlate
    items: tuple[Id, ...]
    codes: NDArray[np.int64]
    rewards: Matrix
    slate_reward: float

    @property
    def teaches(self) -> bool:
        return bool(len(self.items)) and not (np.isnan(self.rewards).all() and math.isnan(self.slate_reward))


def _known(slate: LoggedSlate, stock: Stock, settings: Settings) -> _Part:
    """What can be learned of a slate; refused where a function of the user's gives no value for it."""
    codes, unknown = stock.catalogue.codes_of(slate.items)
    items, values = tuple(stock.catalogue.rows.given(codes.tolist())), slate.values
    feedback, worth = settings.feedback, math.nan
    if unknown:
        gone = set(unknown)
        values = values[[at for at, item in enumerate(slate.items) if item not in gone]]
    else:
        try:
            worth = settings.reward.value(values, feedback.low, feedback.high)
        except DataError as error:
            raise DataError(f"{NAME}: decision {slate.id!r:.100}, row {slate.rows[0]}: {error}") from None
    return _Part(slate, items, codes, feedback.scaled(values), worth)


def _learn(shop: "Recommender", parts: Sequence[_Part]) -> None:
    """Learn all parts on a copy of the policy, or on a fresh one, and take it over when that went well."""
    table = _user_table(shop.stock, parts)
    if shop.schema is None or shop.learner is None:
        schema, stock, users, learner = _frozen(shop, parts, table)
    else:
        schema, stock, learner = shop.schema, shop.stock, shop.learner.copy()
        users = schema.user.encode(table)  # refuses
        if not schema.user.settled:
            _observe(schema, table)
            users = schema.user.encode(table)
    lessons = list(_lessons(shop, parts, users, schema, stock))
    for lesson in lessons:
        learner.learn(lesson, schema)
    if shop.schema is None:
        warn_of_mistakes(schema)
    shop.schema, shop.stock, shop.learner = schema, stock, learner
    shop.ids.last += len(parts)
    count(shop.decisions, learned=len(lessons))
    stock.note("context", {name for part in parts for name in part.logged.context} - schema.user.reasons.keys())
    said = (_said(part.logged, stock) for part in parts)
    shop.log.warmed(zip(lessons, said, strict=True))


def _user_table(stock: Stock, parts: Sequence[_Part]) -> Table:
    """What is known of the user of each slate: the table's row, then the context."""
    users = stock.users
    known: dict[Id | None, Mapping[str, Value]] = {None: {}}
    rows = []
    for part in parts:
        user = part.logged.user
        if user not in known:
            known[user] = users.raw(user) or {} if user is not None else {}
        rows.append({**known[user], **part.logged.context})
    names = dict.fromkeys(name for row in rows for name in row)
    return Table({name: [row.get(name) for row in rows] for name in names}, len(rows))


def _frozen(shop: "Recommender", parts: Sequence[_Part], table: Table) -> tuple[Schema, Stock, Matrix, Learner]:
    """Schema, stock, encoded users and a fresh policy, from the tables and the context columns of all slates."""
    settings = shop.settings
    context = {name: [part.logged.context[name] for part in parts] for name in parts[0].logged.context}
    schema = Schema.drafted(settings.features, shop.stock.item_table(), shop.stock.user_table(), context, 1)
    stock = shop.stock.copy()
    stock.encode(schema)
    users = schema.user.encode(table)
    sample = settling_sample(users)
    return schema, stock, users, Learner.fresh(settings.policy, schema, stock.catalogue, settings.slate_size, sample)


def _observe(schema: Schema, table: Table) -> None:
    """Let running scales and free levels see the rows."""
    for at in range(len(table)):
        if schema.user.settled:
            return
        schema.user.observe(table.row(at))


def _lessons(
    shop: "Recommender", parts: Sequence[_Part], users: Matrix, schema: Schema, stock: Stock
) -> Iterator[Lesson]:
    """A lesson for each part, under the numbers that follow the last decision's."""
    now, last = shop.clock(), shop.ids.last
    for at, part in enumerate(parts):
        number, none = last + 1 + at, torch.zeros(len(part.items), dtype=torch.float64)
        slate = Slate(torch.arange(len(part.items)), none, none)
        items = stock.catalogue.profiles(part.codes)
        shown = Shown(part.codes, items, users[at], slate, number, number, schema.version)
        time = now if part.logged.time is None else part.logged.time
        decision = Decision(number, f"{shop.ids.token}-{number}", time, part.items, shown)
        yield Lesson(decision, part.rewards, part.slate_reward)


def _said(logged: LoggedSlate, stock: Stock) -> dict[str, Any]:
    user = None if logged.user is None else stock.users.named(logged.user)
    return {"user": user, "context": logged.context, "source_id": logged.id}
