"""The moment a draft becomes a schema: fixed by the tables and the columns of a first request, with a fresh policy."""

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from neuclust.errors import LearningWarning
from neuclust.recommender.items.stock import Stock
from neuclust.recommender.learner import Learner
from neuclust.recommender.options import Settings
from neuclust.recommender.schema import Matrix, Schema, sampled
from neuclust.recommender.tables.columns import STATE_NUMBER
from neuclust.recommender.tables.tables import Table
from neuclust.recommender.tables.values import Value


@dataclass(frozen=True)
class Frozen:
    """The schema, the stock encoded by it, the request's columns; the policy is built when it is first asked for."""

    settings: Settings
    schema: Schema
    stock: Stock
    row: Mapping[str, Value]

    @cached_property
    def learner(self) -> Learner:
        """A policy that has learned nothing, settled by the items and users of that moment."""
        users = _sampled_users(self.schema, self.stock.user_table(), self.row)
        settings = self.settings
        return Learner.fresh(settings.policy, self.schema, self.stock.catalogue, settings.slate_size, users)


def freeze(settings: Settings, stock: Stock, row: Mapping[str, Value]) -> Frozen:
    """The schema of a stock, of which an encoded copy is made, and of what the first request says, by column."""
    schema = Schema.fit(settings.features, stock.item_table(), stock.user_table(), row)
    encoded = stock.copy()
    encoded.encode(schema)
    return Frozen(settings, schema, encoded, dict(row))


def warn_of_mistakes(schema: Schema) -> None:
    """Tell of columns that are read as text for the sake of a few values, once, when the features are settled."""
    for side in (schema.items, schema.user):
        for column, reason in side.reasons.items():
            if reason.endswith(STATE_NUMBER):
                table = "context" if column in side.context else side.name
                text = f"{table}: column {column!r:.100} is not read as numbers: {reason}"
                warnings.warn(text, LearningWarning, stacklevel=5)


def _sampled_users(schema: Schema, users: Table, row: Mapping[str, Value]) -> Matrix:
    """Encoded users with the context of a request, (m, d_u): what scales are settled by."""
    asked, encoded = schema.user.encode_row(row)[0], schema.user.encode(sampled(users))
    if not len(encoded):
        return asked[None]
    for name in schema.user.context & schema.user.slices.keys():
        encoded[:, schema.user.slices[name]] = asked[schema.user.slices[name]]
    return encoded
