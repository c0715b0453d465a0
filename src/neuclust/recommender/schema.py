"""The schema: how items, users and requests become the features that models read; a draft, then frozen."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import Any

import numpy as np
from numpy.typing import NDArray

from neuclust.errors import ConfigError, close_names
from neuclust.recommender.crossing.design import Design
from neuclust.recommender.encoders.encoder import Encoder
from neuclust.recommender.encoders.feature_table import FeatureTable
from neuclust.recommender.encoders.levels import CategoryEncoder, TagsEncoder
from neuclust.recommender.encoders.side import Side, fit_side, with_past_context
from neuclust.recommender.tables.columns import WHOLE
from neuclust.recommender.tables.features import Features, transformers_of
from neuclust.recommender.tables.tables import Table
from neuclust.recommender.tables.values import Value

Matrix = NDArray[np.float64]
MOST_SAMPLED = 2_000  # rows of a table by which projections are found


@dataclass(frozen=True)
class Schema:
    """Encoders of both sides and how they meet. `version` counts from 1, and rises with every refit."""

    items: Side
    user: Side
    design: Design
    version: int = 1

    @classmethod
    def fit(
        cls, features: Features, items: Table, users: Table, row: Mapping[str, Value], version: int = 1
    ) -> "Schema":
        """The schema of these tables; `row`: user features and context of a request, which join the user's columns."""
        return cls.drafted(features, items, users, {name: [value] for name, value in row.items()}, version)

    @classmethod
    def drafted(
        cls, features: Features, items: Table, users: Table, context: Mapping[str, Sequence[Value]], version: int
    ) -> "Schema":
        """The schema of these tables; `context`: values by column of what requests said, which join the user's."""
        item_side = fit_side(items, features.declared("items", items.columns), "items", features.levels)
        user_side = fit_side(users, features.declared("users", users.columns), "users", features.levels)
        names = [*(features.context or {}), *context]
        user_side = with_past_context(user_side, context, features.declared("context", names), features.levels)
        item_rows, user_rows = item_side.encode(sampled(items)), user_side.encode(sampled(users))
        design = Design.fit(features, item_side, user_side, item_rows, user_rows)
        return cls(item_side, user_side, design, version)

    def without_levels(self, levels: Mapping[str, Iterable[str]]) -> "Schema":
        """The same columns without the texts of some levels of the user, by column; values of them count as others."""
        encoders = tuple(_without(encoder, levels.get(encoder.name, ())) for encoder in self.user.encoders)
        user = replace(self.user, encoders=encoders)
        before, after = self.user.labels, user.labels
        changed = {at: new for at, (old, new) in enumerate(zip(before, after, strict=True)) if old != new}
        return replace(self, user=user, design=self.design.relabelled(changed))

    def table(self, unlearned: Mapping[str, set[str]] | None = None) -> FeatureTable:
        """For people: every column, how it is read and why, and how the two sides meet."""
        notes = [*self.design.describe()]
        for where, names in (unlearned or {}).items():
            if names:
                notes.append(f"not learned, since the schema was frozen before: {where} {', '.join(sorted(names))}")
        return FeatureTable((*self.items.describe(), *self.user.describe()), tuple(notes))

    def to_state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        parts = {"items": self.items.to_json(), "user": self.user.to_json(), "design": self.design.to_json()}
        return {**parts, "version": self.version}, self.design.arrays()

    @classmethod
    def from_state(
        cls, saved: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]], transformers: Mapping[str, Any] | None
    ) -> "Schema":
        items = Side.from_json(saved.get("items"), transformers_of(transformers, "items"))
        user = Side.from_json(saved.get("user"), transformers_of(transformers, "users", "context"))
        return cls(items, user, Design.from_state(saved.get("design"), arrays), int(saved.get("version", 1)))


def _without(encoder: Encoder, levels: Iterable[str]) -> Encoder:
    """An encoder whose levels of these texts have numbers in their place."""
    gone, known = set(levels), encoder.levels or ()
    if gone.isdisjoint(known) or not isinstance(encoder, CategoryEncoder | TagsEncoder):
        return encoder
    free = (f"(erased {number})" for number in count(1) if f"(erased {number})" not in known)
    return encoder.renamed({level: next(free) for level in known if level in gone})


def sampled(table: Table) -> Table:
    """At most `MOST_SAMPLED` rows of a table, evenly spaced."""
    if len(table) <= MOST_SAMPLED:
        return table
    places = (np.arange(MOST_SAMPLED) * len(table) // MOST_SAMPLED).tolist()
    return Table({name: [values[at] for at in places] for name, values in table.columns.items()}, MOST_SAMPLED)


def check_names(features: Features, items: Table, users: Table) -> None:
    """Refuse columns of a table that does not have them, and other names that are close to a column: probably misspelt.

    Further names may be request context, which is known with the first request.
    """
    known = {*items.columns, *users.columns, *(features.context or {})}
    for part, table in (("items", items), ("users", users)):
        for name in getattr(features, part) or {}:
            if name not in table.columns and name != WHOLE:
                raise ConfigError(f"there is no column {name!r:.100}{_meant(name, table.columns)}", field=part)
    for field in ("columns", "cross", "match"):
        given = getattr(features, field) or ()
        for names in ([name] for name in given) if field == "columns" else given:
            for name in names:
                column = name.removeprefix("items.").removeprefix("users.").removeprefix("context.")
                if column not in known and name not in known and _meant(column, known):
                    raise ConfigError(f"no table has {name!r:.100}{_meant(column, known)}", field=field)


def _meant(name: str, known: Any) -> str:
    close = close_names(name[:100], [each[:100] for each in known])
    return f"; did you mean {' or '.join(close)}?" if close else ""
