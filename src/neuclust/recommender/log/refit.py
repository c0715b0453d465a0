"""A new version of schema and policy from the log: every column ever seen, every lesson."""

import math
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from neuclust.errors import ConfigError, LogWarning, StateError
from neuclust.recommender.choices import Shown
from neuclust.recommender.encoders.feature_table import FeatureTable
from neuclust.recommender.encoders.side import columns_read
from neuclust.recommender.feedback.decisions import Decision, Lesson, reencode
from neuclust.recommender.freezing import warn_of_mistakes
from neuclust.recommender.items.stock import Stock
from neuclust.recommender.learner import Learner
from neuclust.recommender.log.history import History, Past, Row, read_history
from neuclust.recommender.options import Settings
from neuclust.recommender.schema import Schema, check_names
from neuclust.recommender.tables.features import Features
from neuclust.recommender.tables.tables import Table
from neuclust.recommender.tables.values import Id, Value

if TYPE_CHECKING:
    from neuclust.recommender.recommender import Recommender

Matrix = NDArray[np.float64]
MOST_SETTLED = 512  # users by which a fresh policy is settled
MOST_COLUMNS = 1_000  # that only requests have


def refit_recommender(self: "Recommender", features: Features | None = None) -> FeatureTable:
    """Draft the schema anew from all columns ever seen, start the policy afresh, and learn the whole log again.

    `features` replaces what was declared. Decisions are learned in the order in which they were first learned, each
    with its last lesson, values that came after it was closed included, and with the values its items and user had at
    the time; open ones stay open. The version rises by one. Where anything is refused, nothing has changed.
    """
    if features is not None and not isinstance(features, Features):
        advice = "write features=Features(items={'price': 'number'})"
        raise ConfigError(f"expected Features, got {features!r:.100}; {advice}", field="features")
    if self.log.path is None:
        advice = "make or load the recommender with log='shop.jsonl'"
        raise ConfigError(f"refit: expected a log to learn from, got none; {advice}")
    self.expire(older_than=math.inf)  # only what is due: its lessons belong into the log
    history = read_history(self.log.path)
    settings = self.settings if features is None else replace(self.settings, features=features)
    check_names(settings.features, self.stock.item_table(), self.stock.user_table())
    if self.schema is not None or history.learned:
        made = Refitted.of(self, settings, history)
        warn_of_mistakes(made.schema)
        reencode(self.decisions, made.payloads, made.schema.version)
        self.schema, self.learner, self.stock = made.schema, made.learner, made.stock
        self.log.refitted(made.schema.version, settings)
    self.settings = self.stock.settings = settings
    return self.features


@dataclass(frozen=True)
class Refitted:
    """All that a refit replaces."""

    schema: Schema
    learner: Learner
    stock: Stock
    payloads: dict[str, object]  # of open decisions

    @classmethod
    def of(cls, shop: "Recommender", settings: Settings, history: History) -> "Refitted":
        if not len(shop.stock.catalogue):
            raise StateError("refit: expected items to learn about, got none; add_items first")
        opened = _open_decisions(shop.decisions.open_decisions(), history)
        _warn_of_missing(shop.decisions.counts.learned, len(history.learned))
        pasts = [*history.learned, *(past for past in opened if past.rewards is None)]
        stock = _with_codes(shop.stock, settings, pasts)
        version = 1 if shop.schema is None else shop.schema.version + 1
        schema = drafted(settings.features, stock, pasts, version)
        stock.encode(schema)
        rows = _Encoded.of(schema, stock, pasts)
        learner = Learner.fresh(settings.policy, schema, stock.catalogue, settings.slate_size, rows.sample(stock))
        for past in history.learned:
            learner.learn(_lesson(past, rows.shown(past), settings), schema)
        payloads: dict[str, object] = {past.id: rows.shown(past) for past in opened}
        return cls(schema, learner, stock, payloads | _empty(shop.decisions.open_decisions()))


def _open_decisions(opened: Iterable[Decision], history: History) -> list[Past]:
    """Open decisions as the log has them; those of an empty slate have nothing to encode."""
    wanted = [decision.id for decision in opened if decision.items]
    missing = [id for id in wanted if id not in history.decisions]
    if missing:
        got = f"got {len(missing)} that were made before it began, such as {missing[0]!r:.100}"
        raise StateError(f"refit: expected every open decision in the log, {got}; close them by feedback or expire()")
    return [history.decisions[id] for id in wanted]


def _empty(opened: Iterable[Decision]) -> dict[str, object]:
    return {decision.id: decision.payload for decision in opened if not decision.items}


def _warn_of_missing(learned: int, logged: int) -> None:
    if logged < learned:
        text = f"refit: the log has {logged:,} of the {learned:,} decisions that were learned; the others are forgotten"
        warnings.warn(text, LogWarning, stacklevel=4)


def _with_codes(stock: Stock, settings: Settings, pasts: Sequence[Past]) -> Stock:
    """A copy in which every item of the log has a code; those that only an earlier run knew are there no more."""
    new = stock.copy()
    new.settings, new.unlearned = settings, {name: set() for name in new.unlearned}
    code = new.catalogue.rows.code
    unknown = list(dict.fromkeys(item for past in pasts for item in past.items if code(item) is None))
    if unknown:
        new.catalogue.add(unknown, {}, np.zeros((len(unknown), new.catalogue.dim)))
        new.catalogue.remove(unknown)
    return new


# --- the schema -----------------------------------------------------------------------------------------------


def drafted(features: Features, stock: Stock, pasts: Sequence[Past], version: int) -> Schema:
    """The schema of all items and users as they are, and as they were in past decisions, and of all that was asked."""
    items = _with_rows(stock.item_table(), _other_items(stock, pasts))
    users, known = stock.user_table(), {name for past in pasts for name in past.user}
    columns = {*users.columns, *known}
    users = _with_rows(users, _other_users(stock, pasts, columns))
    context = {name: [past.asked.get(name) for past in pasts] for name in _names(pasts, columns)}
    return Schema.drafted(features, items, users, context, version)


def _other_items(stock: Stock, pasts: Sequence[Past]) -> list[Row]:
    """Rows of items, each once, that are other than now."""
    versions = {id(row): (item, row) for past in pasts for item, row in zip(past.items, past.rows, strict=True)}
    rows, there = stock.catalogue.rows, set(stock.catalogue.all_codes().tolist())
    coded = ((rows.code(item), row) for item, row in versions.values())
    return [row for code, row in coded if code is None or code not in there or row != _present(rows.raw(code))]


def _other_users(stock: Stock, pasts: Sequence[Past], columns: set[str]) -> list[Row]:
    """Rows of the user's columns that are other than the user's now, or that the request itself said."""
    others: list[Row] = []
    seen: set[int] = set()
    for past in pasts:
        if columns.isdisjoint(past.asked):
            if id(past.user) in seen or past.who is None:
                continue
            seen.add(id(past.user))
            if past.user == _present(stock.users.raw(past.who) or {}):
                continue
        others.append({name: value for name, value in past.row.items() if name in columns})
    return others


def _names(pasts: Sequence[Past], known: set[str]) -> list[str]:
    """Columns that only requests have, in the order in which they came; beyond a bound the most frequent ones."""
    times = Counter(name for past in pasts for name in past.asked if name not in known)
    if len(times) > MOST_COLUMNS:
        text = f"refit: the {MOST_COLUMNS:,} most frequent of {len(times):,} columns of requests are learned"
        warnings.warn(text, LogWarning, stacklevel=6)
    kept = {name for name, _ in times.most_common(MOST_COLUMNS)}
    return [name for name in times if name in kept]


def _present(row: Mapping[str, Value]) -> Row:
    return {name: value for name, value in row.items() if value is not None}


def _with_rows(table: Table, rows: Sequence[Row]) -> Table:
    """The table with more rows, and with their columns."""
    names = dict.fromkeys([*table.columns, *(name for row in rows for name in row)])
    old: dict[str, list[Value]] = {name: table.columns.get(name) or [None] * len(table) for name in names}
    return Table({name: [*old[name], *(row.get(name) for row in rows)] for name in names}, len(table) + len(rows))


# --- the lessons ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Encoded:
    """Past decisions under a schema: item rows by version (V, d_i), user rows by decision (n, d_u)."""

    items: Matrix
    users: Matrix
    versions: dict[int, int]  # place by the identity of the raw row
    places: dict[str, int]  # by decision id
    codes_of: Callable[[Sequence[Id]], list[int]]
    schema: Schema

    @classmethod
    def of(cls, schema: Schema, stock: Stock, pasts: Sequence[Past]) -> "_Encoded":
        versions = {id(row): row for past in pasts for row in past.rows}
        items = schema.items.encode(_table(list(versions.values()), columns_read(schema.items)))
        users = schema.user.encode(_table([past.row for past in pasts], columns_read(schema.user)))
        places = {past.id: at for at, past in enumerate(pasts)}
        numbered = {key: at for at, key in enumerate(versions)}
        return cls(items, users, numbered, places, stock.catalogue.rows.codes_of, schema)

    def shown(self, past: Past) -> Shown:
        """What learning needs of a decision, encoded anew."""
        codes = np.array(self.codes_of(past.items), dtype=np.int64)
        items, version = self.items[[self.versions[id(row)] for row in past.rows]], self.schema.version
        return Shown(codes, items, self.users[self.places[past.id]], past.beliefs.slate(), past.t, past.draw, version)

    def sample(self, stock: Stock) -> Matrix:
        """Users such as requests bring, at least one: (M, d_u)."""
        users = self.users if len(self.users) else self.schema.user.encode(stock.user_table())
        return settling_sample(users if len(users) else self.schema.user.encode_row({})[0][None])


def settling_sample(users: Matrix) -> Matrix:
    """Some of many encoded users, evenly spaced, by which a fresh policy settles its scales."""
    return users[np.linspace(0, len(users) - 1, min(len(users), MOST_SETTLED)).astype(np.int64)]


def _table(rows: Sequence[Row], names: Iterable[str]) -> Table:
    return Table({name: [row.get(name) for row in rows] for name in names}, len(rows))


def _lesson(past: Past, shown: Shown, settings: Settings) -> Lesson:
    rewards, slate = past.lesson(settings.feedback, settings.reward)
    return Lesson(Decision(past.t, past.id, past.time, past.items, shown), rewards, slate)
