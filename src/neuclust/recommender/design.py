"""The feature rows that models read: a constant, item and user columns, and how the two meet."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from neuclust.errors import ConfigError, StateError
from neuclust.recommender.basis import (
    CONSTANT,
    Basis,
    Columns,
    Index,
    Matrix,
    Projection,
    make_basis,
    read_texts,
    whole_array,
)
from neuclust.recommender.crossing import Crossing, Function, Stated, Term, stated
from neuclust.recommender.default_crossing import Sample, default_terms, main_terms

MOST = 100_000  # features, whatever is asked for


@dataclass(frozen=True)
class Design:
    """z_c = a_{i_c}(x) · b_{j_c}(u): each feature is a function of the item row x times one of the user row u.

    a and b are the functions of the two bases: constant, entries, projections, products of entries.
    """

    items: Basis
    user: Basis
    pairs: Index  # (2, width): i and j
    labels: tuple[str, ...]  # (width,)
    notes: tuple[str, ...]  # how user and item columns meet, one line each

    @classmethod
    def fit(cls, spec: Crossing, items: Columns, user: Columns, item_rows: Matrix, user_rows: Matrix) -> Self:
        """The design of a specification; item_rows (N, d_i) and user_rows (M, d_u) give the projections, if any."""
        if not 2 <= spec.width <= MOST:
            raise ConfigError(f"expected 2 to {MOST:,} features, got {spec.width}", field="width")
        found = stated(spec, items, user)
        sample = Sample.of(items, user, item_rows, user_rows)
        _check_width(sample, found, spec.width)
        if spec.cross is None and spec.match is None:
            return cls.of(sample, *default_terms(sample, spec.width))
        return cls.of(sample, main_terms(sample, spec.width) + _products(found), [_line(each) for each in found])

    @classmethod
    def of(cls, sample: Sample, terms: Sequence[Term], notes: Sequence[str] = ()) -> Self:
        """The design of these features."""
        items = _Functions.of([term.items for term in terms], sample.items.width)
        user = _Functions.of([term.user for term in terms], sample.user.width)
        item_basis = items.basis(sample.items, sample.item_directions, "items")
        user_basis = user.basis(sample.user, sample.user_directions, "user")
        pairs = np.array([items.positions, user.positions], dtype=np.int64)
        return cls(item_basis, user_basis, pairs, _labels(terms, item_basis, user_basis, pairs), tuple(notes))

    @property
    def width(self) -> int:
        return len(self.labels)

    def rows(self, item_rows: Matrix, user_row: Matrix) -> Matrix:
        """Features of items (n, d_i) for one user (d_u,) -> (n, width)."""
        features: Matrix = self.items.read(item_rows).take(self.pairs[0], axis=1)
        features *= self.user.read(user_row[None])[0].take(self.pairs[1])
        return features

    def rows_many(self, item_rows: Matrix, user_rows: Matrix, owner: Index) -> Matrix:
        """Row k has item_rows[k] of (m, d_i) and user_rows[owner[k]] of (r, d_u); (m, width)."""
        features: Matrix = self.items.read(item_rows).take(self.pairs[0], axis=1)
        features *= self.user_factors(user_rows).take(owner, axis=0)
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

    def user_factors(self, user_rows: Matrix) -> Matrix:
        """b_{j_c}(u), the factor of each feature, for users (r, d_u) -> (r, width)."""
        factors: Matrix = self.user.read(user_rows).take(self.pairs[1], axis=1)
        return factors

    def describe(self) -> list[str]:
        """Lines on how user and item columns meet, for the table of features."""
        return [f"{self.width} features: a constant, the columns of items and user, and their products", *self.notes]

    def to_json(self) -> dict[str, Any]:
        """What `from_state` takes beside the arrays."""
        sides = {"items": self.items.to_json(), "user": self.user.to_json()}
        return {**sides, "labels": list(self.labels), "notes": list(self.notes)}

    def arrays(self) -> dict[str, NDArray[Any]]:
        """What `from_state` takes beside the JSON."""
        sides = (("items", self.items), ("user", self.user))
        named = {f"{side}.{name}": array for side, basis in sides for name, array in basis.arrays().items()}
        return {**named, "pairs": self.pairs}

    @classmethod
    def from_state(cls, json: object, arrays: Mapping[str, NDArray[Any]]) -> Self:
        """What `to_json` and `arrays` gave, checked."""
        items, user = (_saved_basis(json, arrays, side) for side in ("items", "user"))
        labels, notes = read_texts(json, "labels"), read_texts(json, "notes")
        pairs = whole_array(arrays, "pairs", 2)
        if pairs.shape != (2, len(labels)) or not labels:
            raise StateError(f"saved features: expected a pair for each of {len(labels)} labels, got {pairs.shape}")
        if (pairs < 0).any() or (pairs >= [[items.size], [user.size]]).any():
            expected = f"pairs of {items.size} item and {user.size} user functions"
            raise StateError(f"saved features: expected {expected}, got others; was it saved so?")
        return cls(items, user, pairs, labels, notes)


@dataclass(frozen=True)
class _Functions:
    """The functions of one side that features use: directions, products of entries, and a position for each feature."""

    directions: int
    products: tuple[tuple[int, ...], ...]
    positions: tuple[int, ...]

    @classmethod
    def of(cls, functions: Sequence[Function], dim: int) -> Self:
        """Positions in [1, entries (dim), directions, products]."""
        directions = max((each + 1 for each in functions if isinstance(each, int)), default=0)
        products = tuple(dict.fromkeys(each for each in functions if isinstance(each, tuple) and len(each) > 1))
        places: dict[Function, int] = {(): CONSTANT}
        places |= {(at,): 1 + at for at in range(dim)}
        places |= {at: 1 + dim + at for at in range(directions)}
        places |= {each: 1 + dim + directions + at for at, each in enumerate(products)}
        return cls(directions, products, tuple(places[each] for each in functions))

    def basis(self, columns: Columns, directions: Projection, side: str) -> Basis:
        return make_basis(columns, directions.leading(self.directions), self.products, side)


def _products(found: Sequence[Stated]) -> list[Term]:
    """The products of all that is stated, each once: a match may be part of a cross."""
    unique: dict[tuple[Function, Function], Term] = {}
    for each in found:
        for term in each.terms():
            unique.setdefault((term.items, term.user), term)
    return list(unique.values())


def _line(each: Stated) -> str:
    return f"{each.name}: {each.count} {'column' if each.count == 1 else 'columns'}"


def _check_width(sample: Sample, found: Sequence[Stated], width: int) -> None:
    """Refuse a bound that does not hold the main columns and what is stated."""
    columns, products = len(main_terms(sample, width)), sum(each.count for each in found)
    if columns + products > width:
        got = f"{columns} columns" + (f" and {products} products ({_names(found)})" if found else "")
        enough = f"width={_enough(sample, products)} would do"
        raise ConfigError(f"expected at most {width} features, got {got}; {enough}", field="width")


def _names(found: Sequence[Stated]) -> str:
    names = ", ".join(each.name for each in found)
    return names if len(names) <= 200 else f"{names[:200]}…"


def _enough(sample: Sample, products: int) -> int:
    """The smallest width that holds the main columns, as many as there are at that width, and so many products."""
    width = products + 1
    while len(main_terms(sample, width)) + products > width:
        width += 1
    return width


def _labels(terms: Sequence[Term], items: Basis, user: Basis, pairs: Index) -> tuple[str, ...]:
    """Labels of people's columns; one that both sides have says which it is."""
    both = set(items.labels) & set(user.labels)
    sides = [
        [f"{side}.{label}" if label in both else label for label in basis.labels]
        for side, basis in (("items", items), ("user", user))
    ]
    return tuple(term.label or _label(sides[0][i], sides[1][j], i, j) for term, i, j in zip(terms, *pairs, strict=True))


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
