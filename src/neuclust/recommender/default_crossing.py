"""Features where nothing is stated: item and user columns, and the products of the two that fit into the bound."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from neuclust.errors import DataError
from neuclust.recommender.basis import Columns, Matrix, Projection, principal
from neuclust.recommender.crossing import Function, Term

ITEM_SHARE, USER_SHARE = 2, 4  # item columns have half of the bound at most, user columns a quarter, or are projected


@dataclass(frozen=True)
class Sample:
    """The encoded columns of both sides, and the directions of their rows; `unseen` user entries never varied there.

    Columns of the request's context are unseen in the table of users: nothing is known of their directions.
    """

    items: Columns
    user: Columns
    item_directions: Projection
    user_directions: Projection
    unseen: tuple[int, ...]

    @classmethod
    def of(cls, items: Columns, user: Columns, item_rows: Matrix, user_rows: Matrix) -> Self:
        """Directions of encoded rows (N, d_i) and (M, d_u)."""
        for rows, columns, side in ((item_rows, items, "items"), (user_rows, user, "user")):
            if rows.ndim != 2 or rows.shape[1] != columns.width:
                raise DataError(f"{side}: expected encoded rows (n, {columns.width}), got shape {rows.shape}")
        same = (user_rows == user_rows[:1]).all(0)
        unseen = tuple(int(at) for at in np.flatnonzero(same))
        return cls(items, user, principal(item_rows), principal(user_rows), unseen)


def main_terms(sample: Sample, width: int) -> list[Term]:
    """The constant, the item columns and the user columns; columns beyond their share of the width are projected."""
    items = _functions(sample.items.width, sample.item_directions, (), width // ITEM_SHARE)
    user = _functions(sample.user.width, sample.user_directions, sample.unseen, width // USER_SHARE)
    return [Term((), ()), *(Term(part, ()) for part in items), *(Term((), part) for part in user)]


def outer_terms(sample: Sample) -> list[Term]:
    """Every user column times every item column."""
    return [Term((i,), (j,)) for i in range(sample.items.width) for j in range(sample.user.width)]


def principal_terms(sample: Sample, room: int) -> list[Term]:
    """The `room` products of an item direction and a user direction with the largest product of their variances.

    With independent items and users these are the leading principal components of all products of centred columns.
    """
    parts: list[Function] = [*range(len(sample.user_directions.variances)), *((at,) for at in sample.unseen)]
    user = np.concatenate([sample.user_directions.variances, assumed_variances(sample.user)[list(sample.unseen)]])
    sizes = np.outer(sample.item_directions.variances, user)
    chosen = np.argsort(-sizes, axis=None, kind="stable")[: max(room, 0)]
    rows, columns = np.unravel_index(np.sort(chosen), sizes.shape)
    return [Term(int(i), parts[j]) for i, j in zip(rows, columns, strict=True)]


def default_terms(sample: Sample, width: int) -> tuple[list[Term], list[str]]:
    """Main columns, then all products where they fit into the width, else the principal ones; and a line on that."""
    terms = main_terms(sample, width)
    room = width - len(terms)
    every = sample.items.width * sample.user.width
    if not every:
        return terms, []
    if every <= room:
        return terms + outer_terms(sample), [f"every user column x every item column: {every} columns"]
    found = principal_terms(sample, room)
    items, user = len({term.items for term in found}), len({term.user for term in found})
    line = f"{len(found)} products of {items} item and {user} user projections, of {every} products of columns"
    return terms + found, [line]


def assumed_variances(columns: Columns) -> Matrix:
    """Variances (d,) of entries that were never seen: 1/4 for a single one, (1 − 1/w)/w for each of w levels."""
    variances = np.full(columns.width, 0.25)
    for place in columns.slices.values():
        levels = place.stop - place.start
        if levels > 1:
            variances[place] = (1 - 1 / levels) / levels
    return variances


def _functions(dim: int, directions: Projection, unseen: Sequence[int], most: int) -> list[Function]:
    """All entries where they are at most `most` or have no known directions, else directions and unseen entries."""
    found = len(directions.variances)
    if dim <= most or not found:
        return [(at,) for at in range(dim)]
    return [*range(min(found, max(most - len(unseen), 0))), *((at,) for at in unseen)]
