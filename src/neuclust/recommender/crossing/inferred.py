"""Features where nothing is stated: item and user columns, matches of columns alike, products of other columns."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Self

import numpy as np
from numpy.typing import NDArray

from neuclust.errors import DataError
from neuclust.recommender.crossing.basis import Columns, Matrix, Projection, principal
from neuclust.recommender.crossing.stated import Function, Stated, Term, columns_of, matched

ITEM_SHARE, USER_SHARE = 2, 4  # item columns have half of the bound at most, user columns a quarter, or are projected
LEAST_SHARED = 2  # features a match needs
FACTOR = 0.3  # of products that nobody stated: effects of single columns are mostly larger; benchmarks/crossing.py


@dataclass(frozen=True)
class Directions:
    """Directions of one side's rows: of all columns, of those that no match has, and those that both sides share.

    They are numbered one after the other.
    """

    columns: Columns
    every: Projection
    rest: Projection
    shared: Matrix  # (d, s): direction k of the items and direction k of the user are multiplied
    free: tuple[int, ...]  # entries of columns without a match
    unseen: tuple[int, ...]  # entries that never varied: nothing is known of their directions

    @classmethod
    def of(cls, columns: Columns, rows: Matrix) -> Self:
        """Of encoded rows (N, d); no column has a match."""
        if rows.ndim != 2 or rows.shape[1] != columns.width:
            raise DataError(f"features: expected encoded rows (n, {columns.width}), got shape {rows.shape}")
        every = principal(rows)
        unseen = _places((rows == rows[:1]).all(0))
        return cls(columns, every, every, np.zeros((columns.width, 0)), tuple(range(columns.width)), unseen)

    def without(self, taken: Collection[str], rows: Matrix) -> Self:
        """Columns of the names `taken` have a match."""
        if not taken:
            return self
        free = np.ones(self.columns.width, dtype=bool)
        for name in taken:
            free[self.columns.slices[name]] = False
        return replace(self, rest=principal(rows * free), free=_places(free))

    def sharing(self, entries: Sequence[int], vectors: Matrix) -> Self:
        """With directions (e, s) of some entries that the other side has too."""
        placed = np.zeros((self.columns.width, vectors.shape[1]))
        placed[list(entries)] = vectors
        return replace(self, shared=np.hstack([self.shared, placed]))

    @property
    def joined(self) -> Projection:
        """All of them: every, rest, shared."""
        rest = [self.rest.vectors] * (self.rest is not self.every)
        return Projection(self.every.centre, np.hstack([self.every.vectors, *rest, self.shared]))

    @property
    def rest_numbers(self) -> range:
        start = 0 if self.rest is self.every else len(self.every.variances)
        return range(start, start + len(self.rest.variances))

    @property
    def shared_numbers(self) -> range:
        start = self.rest_numbers.stop
        return range(start, start + self.shared.shape[1])

    def mains(self, most: int) -> list[Function]:
        """All entries where they are at most `most` or have no known directions, else directions and unseen entries."""
        found = len(self.every.variances)
        if self.columns.width <= most or not found:
            return [(at,) for at in range(self.columns.width)]
        return [*range(min(found, max(most - len(self.unseen), 0))), *((at,) for at in self.unseen)]

    def crossed(self) -> tuple[list[Function], Matrix]:
        """Directions of columns without a match and their unseen entries, and the variance of each."""
        unseen = [at for at in self.unseen if at in self.free]
        parts: list[Function] = [*self.rest_numbers, *((at,) for at in unseen)]
        return parts, np.concatenate([self.rest.variances, assumed_variances(self.columns)[unseen]])


@dataclass(frozen=True)
class Sample:
    """Both sides, from encoded rows of the catalogue and of the table of users, and the matches that fit.

    Columns of the request's context are unseen in the table of users.
    """

    items: Directions
    user: Directions
    matches: tuple[Stated, ...] = ()  # of columns alike, whole
    lines: tuple[str, ...] = ()  # on all matches, for the table of features

    @classmethod
    def of(cls, items: Columns, user: Columns, item_rows: Matrix, user_rows: Matrix) -> Self:
        """Of rows (N, d_i) and (M, d_u), without matches."""
        return cls(Directions.of(items, item_rows), Directions.of(user, user_rows))

    def matching(self, room: int, item_rows: Matrix, user_rows: Matrix) -> Self:
        """With the matches of columns alike, whole where they fit into `room`, else along common directions."""
        sample, left = self, room
        taken: tuple[set[str], set[str]] = (set(), set())
        for pair in product(self.user.columns.names, self.items.columns.names):
            each = matched(self.items.columns, self.user.columns, *pair)
            if each is not None and left >= LEAST_SHARED:
                sample, used = sample._with(each, left, item_rows)
                left -= used
                for names, name in zip(taken, pair, strict=True):
                    names.update([name] * bool(used))
        user, items = sample.user.without(taken[0], user_rows), sample.items.without(taken[1], item_rows)
        return replace(sample, items=items, user=user)

    def _with(self, match: Stated, left: int, item_rows: Matrix) -> tuple[Self, int]:
        """With one more match, and how many features it takes."""
        if match.count <= left:
            return replace(self, matches=(*self.matches, match), lines=(*self.lines, match.line)), match.count
        positions = match.positions()
        vectors = principal(item_rows[:, positions[1]]).vectors[:, : left - left // 4]
        count = vectors.shape[1]
        line = f"{match.name}: {columns_of(count)}, along the leading directions of the items"
        items, user = self.items.sharing(positions[1], vectors), self.user.sharing(positions[0], vectors)
        return replace(self, items=items, user=user, lines=(*self.lines, line)), count

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
    terms += [Term(i, j) for i, j in zip(sample.items.shared_numbers, sample.user.shared_numbers, strict=True)]
    lines = list(sample.lines)
    left = room - len(terms)
    if not sample.free:
        return terms, lines
    if sample.free <= left:
        return terms + outer_terms(sample), [
            *lines,
            f"every other user column x item column: {columns_of(sample.free)}",
        ]
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
