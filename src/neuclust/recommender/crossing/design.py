"""The feature rows that models read: a constant, item and user columns, and how the two meet."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from neuclust.errors import ConfigError, StateError
from neuclust.recommender.crossing.basis import (
    CONSTANT,
    Basis,
    Columns,
    Index,
    Matrix,
    basis_labels,
    make_basis,
    read_texts,
    real_array,
    whole_array,
)
from neuclust.recommender.crossing.frequent import check_stated, entry_sizes, most_frequent
from neuclust.recommender.crossing.inferred import Directions, Sample, main_terms, product_terms
from neuclust.recommender.crossing.stated import Crossing, Function, Stated, Term, stated

MOST = 100_000  # features, whatever is asked for
BLOCK = 512  # rows: what is computed on the way stays in the processor's cache


@dataclass(frozen=True)
class Design:
    """z_c = f_c · a_{i_c}(x) · b_{j_c}(u): a function of the item row x times one of the user row u, times a factor.

    a and b are the functions of the two bases: constant, entries, projections, products of entries.
    """

    items: Basis
    user: Basis
    pairs: Index  # (2, width): i and j
    factors: Matrix  # (width,): f
    labels: tuple[str, ...]  # (width,)
    notes: tuple[str, ...]  # how user and item columns meet, one line each

    @classmethod
    def fit(cls, spec: Crossing, items: Columns, user: Columns, item_rows: Matrix, user_rows: Matrix) -> Self:
        """The design of a specification; item_rows (N, d_i) and user_rows (M, d_u) give the projections, if any."""
        if not 2 <= spec.width <= MOST:
            raise ConfigError(f"expected 2 to {MOST:,} features, got {spec.width}", field="width")
        found = stated(spec, items, user)
        sample = Sample.of(items, user, item_rows, user_rows)
        check_stated(sum(each.count for each in found), _names(found))
        mains = main_terms(sample, spec.width)
        _check_width(sample, mains, spec.width)
        if spec.cross is None and spec.match is None:
            room = spec.width - len(mains)
            sample = sample.matching(room, item_rows, user_rows)
            products, lines = product_terms(sample, room)
        else:
            products, lines = _products(found), [each.line for each in found]
            if len(products) > (room := spec.width - len(mains)):
                sizes = entry_sizes(items, item_rows), entry_sizes(user, user_rows)
                products, line = most_frequent(products, sizes, room, _enough(sample, len(products)))
                lines.append(line)
        return cls.of(sample, mains + products, lines)

    @classmethod
    def of(cls, sample: Sample, terms: Sequence[Term], notes: Sequence[str] = ()) -> Self:
        """The design of these features."""
        items = _Functions.of([term.items for term in terms], sample.items.columns.width)
        user = _Functions.of([term.user for term in terms], sample.user.columns.width)
        item_basis, user_basis = items.basis(sample.items, "items"), user.basis(sample.user, "user")
        pairs = np.array([items.positions, user.positions], dtype=np.int64)
        factors = np.array([term.factor for term in terms])
        return cls(item_basis, user_basis, pairs, factors, _labels(item_basis, user_basis, pairs), tuple(notes))

    @property
    def width(self) -> int:
        return len(self.labels)

    def rows(self, item_rows: Matrix, user_row: Matrix) -> Matrix:
        """Features of items (n, d_i) for one user (d_u,) -> (n, width)."""
        factors = self.user_factors(user_row[None])[0]
        features = np.empty((len(item_rows), self.width))
        for block in _blocks(len(features)):
            found = self.items.read(item_rows[block]).take(self.pairs[0], axis=1)
            np.multiply(found, factors, out=features[block])
        return features

    def rows_many(self, item_rows: Matrix, user_rows: Matrix, owner: Index) -> Matrix:
        """Row k has item_rows[k] of (m, d_i) and user_rows[owner[k]] of (r, d_u); (m, width)."""
        users = self.user_factors(user_rows)
        features = np.empty((len(item_rows), self.width))
        for block in _blocks(len(features)):
            found = self.items.read(item_rows[block]).take(self.pairs[0], axis=1)
            np.multiply(found, users.take(owner[block], axis=0), out=features[block])
        return features

    @cached_property
    def used(self) -> tuple[Index, Index]:
        """Numbers of the item functions that features have, ascending (p,), and for each feature its place (width,)."""
        used, index = np.unique(self.pairs[0], return_inverse=True)
        return used, index.reshape(-1)

    def item_functions(self, item_rows: Matrix) -> Matrix:
        """The functions a of items (n, d_i) that features have -> (n, p)."""
        functions: Matrix = self.items.read(item_rows).take(self.used[0], axis=1)
        return functions

    def reads_alike(self, other: Self) -> bool:
        """Whether items have the same functions by both."""
        if not np.array_equal(self.used[0], other.used[0]):
            return False
        own, others = self.items.arrays(), other.items.arrays()
        return own.keys() == others.keys() and all(np.array_equal(own[name], others[name]) for name in own)

    def user_factors(self, user_rows: Matrix) -> Matrix:
        """f_c · b_{j_c}(u), what each feature has of users (r, d_u) -> (r, width)."""
        factors: Matrix = self.user.read(user_rows).take(self.pairs[1], axis=1)
        factors *= self.factors
        return factors

    def describe(self) -> list[str]:
        """Lines on how user and item columns meet, for the table of features."""
        return [f"{self.width} features: a constant, the columns of items and user, and their products", *self.notes]

    def relabelled(self, user: Mapping[int, str]) -> "Design":
        """The same features with other labels for some columns of the user, and for what is made of them."""
        entries = [user.get(at, label) for at, label in enumerate(self.user.labels[1 : 1 + len(self.user.centre)])]
        directions = self.user.projection.shape[1]
        labels = basis_labels(entries, directions, self.user.products, "user")
        basis = replace(self.user, labels=labels)
        return replace(self, user=basis, labels=_labels(self.items, basis, self.pairs))

    def to_json(self) -> dict[str, Any]:
        """What `from_state` takes beside the arrays."""
        sides = {"items": self.items.to_json(), "user": self.user.to_json()}
        return {**sides, "labels": list(self.labels), "notes": list(self.notes)}

    def arrays(self) -> dict[str, NDArray[Any]]:
        """What `from_state` takes beside the JSON."""
        sides = (("items", self.items), ("user", self.user))
        named = {f"{side}.{name}": array for side, basis in sides for name, array in basis.arrays().items()}
        return {**named, "pairs": self.pairs, "factors": self.factors}

    @classmethod
    def from_state(cls, json: object, arrays: Mapping[str, NDArray[Any]]) -> Self:
        """What `to_json` and `arrays` gave, checked."""
        items, user = (_saved_basis(json, arrays, side) for side in ("items", "user"))
        labels, notes = read_texts(json, "labels"), read_texts(json, "notes")
        pairs, factors = whole_array(arrays, "pairs", 2), real_array(arrays, "factors", 1)
        if pairs.shape != (2, len(labels)) or len(factors) != len(labels) or not labels:
            got = f"{pairs.shape[1]} pairs and {len(factors)} factors"
            raise StateError(f"saved features: expected one for each of {len(labels)} labels, got {got}")
        if (pairs < 0).any() or (pairs >= [[items.size], [user.size]]).any():
            expected = f"pairs of {items.size} item and {user.size} user functions"
            raise StateError(f"saved features: expected {expected}, got others; was it saved so?")
        return cls(items, user, pairs, factors, labels, notes)


@dataclass(frozen=True)
class _Functions:
    """The functions of one side that features use: directions, products of entries, and a position for each feature."""

    directions: tuple[int, ...]
    products: tuple[tuple[int, ...], ...]
    positions: tuple[int, ...]

    @classmethod
    def of(cls, functions: Sequence[Function], dim: int) -> Self:
        """Positions in [1, entries (dim), directions, products]."""
        directions = tuple(sorted({each for each in functions if isinstance(each, int)}))
        products = tuple(dict.fromkeys(each for each in functions if isinstance(each, tuple) and len(each) > 1))
        places: dict[Function, int] = {(): CONSTANT}
        places |= {(at,): 1 + at for at in range(dim)}
        others: tuple[Function, ...] = (*directions, *products)
        places |= {each: 1 + dim + at for at, each in enumerate(others)}
        return cls(directions, products, tuple(places[each] for each in functions))

    def basis(self, found: Directions, side: str) -> Basis:
        return make_basis(found.columns, found.joined.only(self.directions), self.products, side)


def _products(found: Sequence[Stated]) -> list[Term]:
    """The products of all that is stated, each once: a match may be part of a cross."""
    unique: dict[tuple[Function, Function], Term] = {}
    for each in found:
        for term in each.terms():
            unique.setdefault((term.items, term.user), term)
    return list(unique.values())


def _check_width(sample: Sample, mains: Sequence[Term], width: int) -> None:
    """Refuse a bound that does not even hold the main columns."""
    if len(mains) > width:
        enough = f"width={_enough(sample, 0)} would do"
        raise ConfigError(f"expected at most {width} features, got {len(mains)} columns; {enough}", field="width")


def _names(found: Sequence[Stated]) -> str:
    names = ", ".join(each.name for each in found)
    return names if len(names) <= 200 else f"{names[:200]}…"


def _enough(sample: Sample, products: int) -> int:
    """The smallest width that holds the main columns, as many as there are at that width, and so many products."""
    width = products + 1
    while len(main_terms(sample, width)) + products > width:
        width += 1
    return width


def _labels(items: Basis, user: Basis, pairs: Index) -> tuple[str, ...]:
    names = _sided(items.labels, user.labels)
    return tuple(_label(names[0][i], names[1][j], i, j) for i, j in zip(*pairs.tolist(), strict=True))


def _sided(items: Sequence[str], user: Sequence[str]) -> tuple[list[str], list[str]]:
    """Labels of both sides; one that both have says which it is."""
    both = set(items) & set(user)
    return (
        [f"items.{label}" if label in both else label for label in items],
        [f"user.{label}" if label in both else label for label in user],
    )


def _label(item: str, user: str, i: int, j: int) -> str:
    if i == CONSTANT or j == CONSTANT:
        return "constant" if i == j else user if i == CONSTANT else item
    return f"{user} x {item}"


def _saved_basis(json: object, arrays: Mapping[str, NDArray[Any]], side: str) -> Basis:
    found = json.get(side) if isinstance(json, dict) else None
    start = f"{side}."
    return Basis.from_state(
        found, {name[len(start) :]: each for name, each in arrays.items() if name.startswith(start)}
    )


def _blocks(count: int) -> Iterator[slice]:
    """So many rows in parts."""
    return (slice(start, start + BLOCK) for start in range(0, count, BLOCK))
