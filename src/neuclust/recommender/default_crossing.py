"""Features where nothing is stated: item and user columns, matches of columns alike, products of other columns."""

from collections.abc import Collection
from dataclasses import dataclass, replace
from itertools import product
from typing import Self

import numpy as np
from numpy.typing import NDArray

from neuclust.errors import DataError
from neuclust.recommender.basis import Columns, Matrix, Projection, principal
from neuclust.recommender.crossing import Function, Stated, Term, matched

ITEM_SHARE, USER_SHARE = 2, 4  # item columns have half of the bound at most, user columns a quarter, or are projected
FACTOR = 0.5  # of products that nobody stated: effects of single columns are mostly larger; benchmarks/crossing.py


@dataclass(frozen=True)
class Directions:
    """Directions of one side's rows: of all columns, and of those that no match has; numbered one after the other."""

    columns: Columns
    every: Projection
    rest: Projection
    free: tuple[int, ...]  # entries of columns without a match
    unseen: tuple[int, ...]  # entries that never varied: nothing is known of their directions

    @classmethod
    def of(cls, columns: Columns, rows: Matrix) -> Self:
        """Of encoded rows (N, d); no column has a match."""
        if rows.ndim != 2 or rows.shape[1] != columns.width:
            raise DataError(f"features: expected encoded rows (n, {columns.width}), got shape {rows.shape}")
        every = principal(rows)
        return cls(columns, every, every, tuple(range(columns.width)), _places((rows == rows[:1]).all(0)))

    def without(self, taken: Collection[str], rows: Matrix) -> Self:
        """Columns of the names `taken` have a match."""
        if not taken:
            return self
        free = np.ones(self.columns.width, dtype=bool)
        for name in taken:
            free[self.columns.slices[name]] = False
        return replace(self, rest=principal(rows * free), free=_places(free))

    @property
    def joined(self) -> Projection:
        """Both, the numbers of `rest` after those of `every`."""
        vectors = np.hstack([self.every.vectors, self.rest.vectors])
        return Projection(self.every.centre, vectors, np.concatenate([self.every.variances, self.rest.variances]))

    def mains(self, most: int) -> list[Function]:
        """All entries where they are at most `most` or have no known directions, else directions and unseen entries."""
        found = len(self.every.variances)
        if self.columns.width <= most or not found:
            return [(at,) for at in range(self.columns.width)]
        return [*range(min(found, max(most - len(self.unseen), 0))), *((at,) for at in self.unseen)]

    def crossed(self) -> tuple[list[Function], Matrix]:
        """Directions of columns without a match and their unseen entries, and the variance of each."""
        unseen = [at for at in self.unseen if at in self.free]
        start = len(self.every.variances)
        parts: list[Function] = [*range(start, start + len(self.rest.variances)), *((at,) for at in unseen)]
        return parts, np.concatenate([self.rest.variances, assumed_variances(self.columns)[unseen]])


@dataclass(frozen=True)
class Sample:
    """Both sides, from encoded rows of the catalogue and of the table of users, and the matches that fit.

    Columns of the request's context are unseen in the table of users.
    """

    items: Directions
    user: Directions
    matches: tuple[Stated, ...] = ()  # of columns alike

    @classmethod
    def of(cls, items: Columns, user: Columns, item_rows: Matrix, user_rows: Matrix) -> Self:
        """Of rows (N, d_i) and (M, d_u), without matches."""
        return cls(Directions.of(items, item_rows), Directions.of(user, user_rows))

    def matching(self, room: int, item_rows: Matrix, user_rows: Matrix) -> Self:
        """With the matches of columns alike, as many as fit into `room`."""
        found: list[Stated] = []
        for pair in product(self.user.columns.names, self.items.columns.names):
            each = matched(self.items.columns, self.user.columns, *pair)
            if each is not None and sum(other.count for other in found) + each.count <= room:
                found.append(each)
        user, items = ({each.members[side].name for each in found} for side in (0, 1))
        return type(self)(self.items.without(items, item_rows), self.user.without(user, user_rows), tuple(found))

    @property
    def free(self) -> int:
        """Products of columns without a match."""
        return len(self.items.free) * len(self.user.free)


def main_terms(sample: Sample, width: int) -> list[Term]:
    """The constant, the item columns and the user columns; columns beyond their share of the width are projected."""
    items = (Term(part, ()) for part in sample.items.mains(width // ITEM_SHARE))
    user = (Term((), part) for part in sample.user.mains(width // USER_SHARE))
    return [Term((), ()), *items, *user]


def outer_terms(sample: Sample) -> list[Term]:
    """Every user column times every item column, without those that have a match."""
    return [Term((i,), (j,), FACTOR) for i in sample.items.free for j in sample.user.free]


def principal_terms(sample: Sample, room: int) -> list[Term]:
    """The `room` products of an item direction and a user direction with the largest product of their variances.

    With independent items and users these are the leading principal components of all products of centred columns.
    """
    items, item_variances = sample.items.crossed()
    user, user_variances = sample.user.crossed()
    sizes = np.outer(item_variances, user_variances)
    chosen = np.sort(np.argsort(-sizes, axis=None, kind="stable")[: max(room, 0)])
    return [Term(items[i], user[j], FACTOR) for i, j in zip(*np.unravel_index(chosen, sizes.shape), strict=True)]


def product_terms(sample: Sample, room: int) -> tuple[list[Term], list[str]]:
    """Matches, and all products of the other columns where they fit into `room`, else principal ones; lines on that."""
    terms = [term for each in sample.matches for term in each.terms()]
    lines = [each.line for each in sample.matches]
    left = room - len(terms)
    if not sample.free:
        return terms, lines
    if sample.free <= left:
        return terms + outer_terms(sample), [*lines, f"every other user column x item column: {sample.free} columns"]
    found = principal_terms(sample, left)
    items, user = len({term.items for term in found}), len({term.user for term in found})
    line = f"{len(found)} products of {items} item and {user} user projections, instead of {sample.free} of columns"
    return terms + found, [*lines, line]


def assumed_variances(columns: Columns) -> Matrix:
    """Variances (d,) of entries that were never seen: 1/4 for a single one, (1 − 1/w)/w for each of w levels."""
    variances = np.full(columns.width, 0.25)
    for place in columns.slices.values():
        levels = place.stop - place.start
        if levels > 1:
            variances[place] = (1 - 1 / levels) / levels
    return variances


def _places(flags: NDArray[np.bool_]) -> tuple[int, ...]:
    return tuple(int(at) for at in np.flatnonzero(flags))
