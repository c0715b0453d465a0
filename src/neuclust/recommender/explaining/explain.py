"""Why each item: the policy's expected reward with columns replaced by their average, one or two at a time.

For an item x and a user u, with x̄ and ū the averages and x₋ᵢ the item with column i averaged,

    pair(i, j) = f(x, u) − f(x₋ᵢ, u) − f(x, u₋ⱼ) + f(x₋ᵢ, u₋ⱼ)
    item column i: f(x, u) − f(x₋ᵢ, u) − Σ_j pair(i, j)        user column j: f(x, u) − f(x, u₋ⱼ) − Σ_i pair(i, j)

Where f is linear in features that are products of one item and one user column, these sum to f(x, u) − f(x̄, ū).
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray

from neuclust.errors import DataError
from neuclust.models.mean_rewards import KeyedMeans
from neuclust.policies.reference import Uniform
from neuclust.recommender.choices import Choice, Shown
from neuclust.recommender.encoders.decoding import value_text
from neuclust.recommender.encoders.side import Side
from neuclust.recommender.explaining.explanation import Contribution, Counted, Explanation, Reason
from neuclust.recommender.feedback.decisions import Decisions
from neuclust.recommender.items.stock import Stock
from neuclust.recommender.learner import Learner, shown_round
from neuclust.recommender.schema import Schema, sampled
from neuclust.recommender.tables.values import Value

Matrix = NDArray[np.float64]
MOST_PAIRS = 400  # of columns that are averaged together
NEGLIGIBLE = 1e-9  # of the largest contribution: rounding

Pair = tuple[str, str]
Effects = dict[tuple[str | None, str | None], Matrix]  # amounts (k,) by item column, user column, or both


class Explained(Protocol):
    """What an explanation needs of a recommender or a reader; `decisions` are looked up where there are some."""

    @property
    def schema(self) -> Schema | None: ...

    @property
    def learner(self) -> Learner | None: ...

    @property
    def stock(self) -> Stock: ...


def explain(shop: Explained, choice: Choice | str) -> Explanation:
    """Why each item of a choice, in the columns of the tables: a choice, or the id of one that is still open.

    Item columns are compared with the catalogue's average, columns of the users' table with the users', context with a
    request that does not say it. Nothing is learned or changed by it. The policy is asked as it is now.
    """
    schema, learner = shop.schema, shop.learner
    choice, shown = _found(shop, choice)
    if not choice.items:
        note = f"no items were shown: {choice.reason}" if choice.reason else "no items were shown"
        return Explanation(choice.id, choice.policy, choice.user, (), note)
    if schema is None or learner is None or shown.version != schema.version:
        now = "none yet" if schema is None else f"version {schema.version}"
        got = f"got one of version {shown.version}; explain choices made since"
        raise DataError(f"explain: expected a choice of the schema in force, {now}, {got}")
    _check_rows(shown, schema)
    found = _explanation(Explainer.of(schema, learner, shop.stock, shown), choice)
    return found.stated(*shop.stock.settings.feedback.span)


def _found(shop: Explained, choice: object) -> tuple[Choice, Shown]:
    """The choice and its rows, its own or those of the open decision."""
    id = choice.id if isinstance(choice, Choice) else choice
    if not isinstance(id, str):
        raise DataError(f"explain: expected a choice or its id, got {choice!r:.100}; give what recommend returned")
    if isinstance(choice, Choice) and choice.shown is not None:
        return choice, choice.shown
    decisions: Decisions | None = getattr(shop, "decisions", None)  # a reader keeps none
    open_ones = [] if decisions is None else decisions.open_decisions()
    decision = next((each for each in open_ones if each.id == id), None)
    if decision is None:
        advice = "explain a choice before its feedback, or give the Choice itself instead of its id"
        raise DataError(f"explain: expected a choice with its rows, or one that is open, got {id!r:.100}; {advice}")
    shown: Shown = decision.payload
    if isinstance(choice, Choice):
        return choice, shown
    policy = "" if shop.learner is None else shop.learner.chosen.name
    return _choice_of(decision.id, list(decision.items), shown, policy), shown


def _choice_of(id: str, items: list[Any], shown: Shown, policy: str) -> Choice:
    """As much of a choice as its rows tell."""
    slate = shown.slate
    return Choice(
        id=id, items=items, propensities=None if slate.propensities is None else slate.propensities.tolist(),
        means=slate.means.tolist(), bonuses=slate.bonuses.tolist(), policy=policy,
        explored=[] if slate.explored is None else slate.explored.tolist(), version=shown.version,
    )  # fmt: skip


def _check_rows(shown: Shown, schema: Schema) -> None:
    widths = (shown.items.shape[1], len(shown.user))
    if widths != (schema.items.width, schema.user.width):
        wanted = f"rows of {schema.items.width} item and {schema.user.width} user columns"
        raise DataError(f"explain: expected {wanted}, got {widths[0]} and {widths[1]}; is it a choice of another shop?")


@dataclass(frozen=True)
class Explainer:
    """A slate's rows, the averages its columns are compared with, and the policy that is asked."""

    schema: Schema
    learner: Learner
    stock: Stock
    shown: Shown
    items: Matrix  # (d_i,) the catalogue's average
    user: Matrix  # (d_u,) the users' average

    @classmethod
    def of(cls, schema: Schema, learner: Learner, stock: Stock, shown: Shown) -> "Explainer":
        codes = stock.catalogue.all_codes()
        items = stock.catalogue.profiles(codes).mean(0) if len(codes) else np.zeros(schema.items.width)
        return cls(schema, learner, stock, shown, items, _average_user(schema, stock))

    def expected(self, items: Matrix, user: Matrix) -> Matrix:
        """f, the policy's mean of each item in slot order (k,), as if their rows were these (k, d_i) and (d_u,)."""
        shown = replace(self.shown, items=items, user=user)
        made = replace(shown_round(shown, self.schema), profiles=torch.from_numpy(self.shown.items))
        slate = self.learner.policy.select(made)
        means = np.full(len(items), np.nan)
        means[slate.positions.numpy()] = slate.means.numpy()
        return means

    def without(self, item: str | None = None, user: str | None = None) -> tuple[Matrix, Matrix]:
        """The rows with a column averaged on one side or both."""
        items, users = self.shown.items, self.shown.user
        if item is not None:
            items = items.copy()
            items[:, self.schema.items.slices[item]] = self.items[self.schema.items.slices[item]]
        if user is not None:
            users = users.copy()
            users[self.schema.user.slices[user]] = self.user[self.schema.user.slices[user]]
        return items, users

    def effects(self, now: Matrix) -> Effects:
        """Amounts (k,) by item column, user column, or both."""
        items = {name: now - self.expected(*self.without(item=name)) for name in self.schema.items.names}
        users = {name: now - self.expected(*self.without(user=name)) for name in self.schema.user.names}
        pairs: dict[Pair, Matrix] = {}
        for item, user in self._pairs(items):
            both = self.expected(*self.without(item, user))
            pairs[item, user] = items[item] + users[user] - now + both
        for (item, user), amount in pairs.items():
            items[item], users[user] = items[item] - amount, users[user] - amount
        found: Effects = {(name, None): amount for name, amount in items.items()}
        found.update(((None, name), amount) for name, amount in users.items())
        found.update(pairs.items())
        return found

    def _pairs(self, items: Mapping[str, Matrix]) -> Iterator[Pair]:
        """Pairs that meet in a feature, those of the largest item columns where there are many."""
        design, users = self.schema.design, self.schema.user.names
        order = sorted(items, key=lambda name: -float(np.abs(items[name]).max()))
        whole = design.rows(self.shown.items, self.shown.user)
        found = 0
        for item in order:
            without_item = whole - design.rows(*self.without(item))
            for user in users:
                both = design.rows(*self.without(None, user)) - design.rows(*self.without(item, user))
                if found < MOST_PAIRS and not np.allclose(without_item, both, rtol=0, atol=1e-12):
                    found += 1
                    yield item, user

    def value_of(self, slot: int, side: Side, column: str, raw: Mapping[str, Value]) -> str:
        row = self.shown.user if side is self.schema.user else self.shown.items[slot]
        return value_text(side.encoders[side.names.index(column)], row[side.slices[column]], raw.get(column))


def _average_user(schema: Schema, stock: Stock) -> Matrix:
    """The users' average (d_u,); columns of context, and all where no user is known, as in a request without them."""
    average = schema.user.encode_row({})[0]
    if not len(stock.users):
        return average
    known = schema.user.encode(sampled(stock.user_table())).mean(0)
    for column, place in schema.user.slices.items():
        if column not in schema.user.context:
            average[place] = known[place]
    return average


def _explanation(explainer: Explainer, choice: Choice) -> Explanation:
    policy, shown = explainer.learner.policy, explainer.shown
    now = explainer.expected(shown.items, shown.user)
    plain = [_plain_reason(choice, shown, slot, float(now[slot])) for slot in range(len(choice.items))]
    means = getattr(policy, "arms", None)
    if isinstance(policy, Uniform):
        note = "items are drawn evenly from all that are allowed; nothing is learned"
        return Explanation(choice.id, choice.policy, choice.user, tuple(plain), note)
    if isinstance(means, KeyedMeans):
        counts, averages = (each.tolist() for each in means.of(torch.from_numpy(shown.codes)))
        counted = [Counted(round(n), n * mean) for n, mean in zip(counts, averages, strict=True)]
        reasons = [replace(reason, counted=each) for reason, each in zip(plain, counted, strict=True)]
        note = "the policy reads no features: it counts what each item earned"
        return Explanation(choice.id, choice.policy, choice.user, tuple(reasons), note)
    base = explainer.expected(np.tile(explainer.items, (len(plain), 1)), explainer.user)
    effects = explainer.effects(now)
    reasons = [_reason(explainer, each, choice, float(base[each.slot - 1]), effects) for each in plain]
    return Explanation(choice.id, choice.policy, choice.user, tuple(reasons))


def _plain_reason(choice: Choice, shown: Shown, slot: int, now: float) -> Reason:
    return Reason(
        choice.items[slot], slot + 1, float(shown.slate.means[slot]), float(shown.slate.bonuses[slot]), now,
        propensity=None if choice.propensities is None else choice.propensities[slot],
        explored=bool(choice.explored and choice.explored[slot]),
        required=bool(choice.required and choice.required[slot]),
    )  # fmt: skip


def _reason(explainer: Explainer, reason: Reason, choice: Choice, base: float, effects: Effects) -> Reason:
    slot, schema, stock = reason.slot - 1, explainer.schema, explainer.stock
    item = stock.catalogue.raw(int(explainer.shown.codes[slot]))
    user = (None if choice.user is None else stock.users.raw(choice.user)) or {}
    both = set(schema.items.names) & set(schema.user.names)
    found = []
    for (item_column, user_column), amounts in effects.items():
        named = [(schema.user, user_column, user)] if user_column is not None else []
        named += [(schema.items, item_column, item)] if item_column is not None else []
        columns = tuple(_name(side, column, both) for side, column, _ in named)
        values = tuple(explainer.value_of(slot, side, column, raw) for side, column, raw in named)
        found.append(Contribution(columns, values, float(amounts[slot])))
    largest = max((abs(each.amount) for each in found), default=0.0)
    kept = [each for each in found if abs(each.amount) > NEGLIGIBLE * largest]
    kept.sort(key=lambda each: -abs(each.amount))
    rest = reason.now - base - sum(each.amount for each in found)
    return replace(reason, base=base, contributions=tuple(kept), rest=rest)


def _name(side: Side, column: str, both: set[str]) -> str:
    """A column's name, with its table where both sides have it."""
    if column not in both:
        return column
    return f"{'context' if column in side.context else side.name}.{column}"
