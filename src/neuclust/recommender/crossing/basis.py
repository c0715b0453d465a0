"""Functions of one side's encoded row: the constant, the entries, their projections and products of entries."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from neuclust.errors import DataError, StateError

Matrix = NDArray[np.float64]
Index = NDArray[np.int64]

NEGLIGIBLE = 1e-10  # share of the total variance below which a direction counts as absent
FEWEST_ROWS, MOST_WORK = 2_000, 2 * 10**9  # rows that directions are found from, and multiplications for that
CONSTANT = 0  # position of the constant 1 in every basis


class Columns(Protocol):
    """The encoded columns of one table: `slices[name]` are the columns made of the table's column `name`.

    `levels(name)` has the text of the level of each leading column of a category or of tags, None for other kinds.
    """

    @property
    def names(self) -> tuple[str, ...]: ...

    @property
    def slices(self) -> Mapping[str, slice]: ...

    @property
    def labels(self) -> tuple[str, ...]: ...

    @property
    def width(self) -> int: ...

    def levels(self, name: str) -> tuple[str, ...] | None: ...


@dataclass(frozen=True)
class Basis:
    """b(r) = [1, r, (r − centre) P, Π_q r̃[products[:, q]]] for rows r (n, d), where r̃ = [1, r]; (n, size)."""

    labels: tuple[str, ...]  # (size,)
    centre: Matrix  # (d,)
    projection: Matrix  # P (d, p), orthonormal columns
    products: Index  # (m, q) positions in r̃; a product of fewer than q entries is filled up with the constant

    @property
    def dim(self) -> int:
        """d, entries of a row."""
        return len(self.centre)

    @property
    def size(self) -> int:
        return len(self.labels)

    def read(self, rows: Matrix) -> Matrix:
        """b(r) of rows (n, d) -> (n, size)."""
        if rows.ndim != 2 or rows.shape[1] != self.dim:
            raise DataError(f"feature rows: expected shape (n, {self.dim}), got {rows.shape}; encode them anew")
        d, p = self.projection.shape
        out = np.empty((len(rows), self.size))
        out[:, CONSTANT] = 1.0
        out[:, 1 : 1 + d] = rows
        if p:
            out[:, 1 + d : 1 + d + p] = (rows - self.centre) @ self.projection
        if len(self.products):
            first, *others = self.products.T
            product = out.take(first, axis=1)
            for factor in others:
                product *= out.take(factor, axis=1)
            out[:, 1 + d + p :] = product
        return out

    def to_json(self) -> dict[str, Any]:
        return {"labels": list(self.labels)}

    def arrays(self) -> dict[str, NDArray[Any]]:
        return {"centre": self.centre, "projection": self.projection, "products": self.products}

    @classmethod
    def from_state(cls, json: object, arrays: Mapping[str, NDArray[Any]]) -> Self:
        """What `to_json` and `arrays` gave, checked."""
        labels = read_texts(json, "labels")
        centre, projection = (real_array(arrays, name, ndim) for name, ndim in (("centre", 1), ("projection", 2)))
        products = whole_array(arrays, "products", 2)
        d, p = projection.shape
        if len(centre) != d or len(labels) != 1 + d + p + len(products):
            got = f"{len(centre)} centres, a projection {projection.shape} and {len(labels)} labels"
            raise StateError(f"saved features: expected a label for each of the basis functions, got {got}")
        if products.size and not (products.min() >= 0 and products.max() <= d):
            raise StateError(f"saved features: expected products of columns 0 to {d}, got {products.max()}")
        return cls(labels, centre, projection, products)


@dataclass(frozen=True)
class Projection:
    """Directions of encoded rows around their mean; those of one sample with the largest variance first."""

    centre: Matrix  # (d,)
    vectors: Matrix  # (d, p)
    variances: Matrix = field(default_factory=lambda: np.zeros(0))  # (p,) descending, where they matter

    def only(self, numbers: Sequence[int]) -> "Projection":
        """Some of the directions, without their variances."""
        return Projection(self.centre, self.vectors[:, list(numbers)])


def make_basis(columns: Columns, projection: Projection, products: Sequence[Sequence[int]], side: str) -> Basis:
    """The basis of one side; `products` are tuples of two or more positions in the encoded row (0 to d − 1)."""
    order = max((len(product) for product in products), default=0)
    filled = [[at + 1 for at in product] + [CONSTANT] * (order - len(product)) for product in products]
    index = np.array(filled, dtype=np.int64).reshape(len(filled), order)
    count = projection.vectors.shape[1]
    vectors = np.ascontiguousarray(projection.vectors)  # as a save holds it: another layout rounds otherwise
    return Basis(basis_labels(columns.labels, count, index, side), projection.centre, vectors, index)


def basis_labels(labels: Sequence[str], directions: int, products: Index, side: str) -> tuple[str, ...]:
    """Labels of the constant, of the entries, of so many directions and of products of entries."""
    entries = ["constant", *labels]
    projected = [f"{side} {at + 1} of {directions} (projection)" for at in range(directions)]
    multiplied = [" x ".join(entries[at] for at in row if at != CONSTANT) for row in products.tolist()]
    return (*entries, *projected, *multiplied)


def no_projection(dim: int) -> Projection:
    return Projection(np.zeros(dim), np.zeros((dim, 0)))


def principal(rows: Matrix) -> Projection:
    """Right singular vectors of rows (N, d) less their mean, without those of no variance; signs by largest entry.

    Where N d² is large, evenly spaced rows stand for all of them.
    """
    count, d = rows.shape
    if count < 2 or not d:
        return no_projection(d)
    centre = rows.mean(0)
    spread = rows[spaced(count, max(FEWEST_ROWS, MOST_WORK // d**2))] - centre
    if d <= len(spread):
        variances, vectors = np.linalg.eigh(spread.T @ spread / len(spread))
    else:  # the smaller of the two matrices with the same positive eigenvalues
        variances, left = np.linalg.eigh(spread @ spread.T / len(spread))
        vectors = spread.T @ left / np.sqrt(np.maximum(variances, np.finfo(float).tiny) * len(spread))
    order = np.argsort(-variances, kind="stable")
    kept = order[variances[order] > NEGLIGIBLE * max(float(variances.sum()), NEGLIGIBLE)]
    vectors = vectors[:, kept]
    largest = vectors[np.abs(vectors).argmax(0), np.arange(len(kept))]
    return Projection(centre, vectors * np.sign(largest), variances[kept])


def spaced(count: int, most: int) -> Index:
    """At most so many of the numbers 0 to count − 1, evenly spaced."""
    size = min(count, most)
    return np.arange(size) * count // max(size, 1)


def read_texts(json: object, name: str) -> tuple[str, ...]:
    """A list of texts of a saved state."""
    found = json.get(name) if isinstance(json, dict) else None
    if not isinstance(found, list) or not all(isinstance(text, str) for text in found):
        raise StateError(f"saved features: expected {name} as a list of texts, got {found!r:.100}; was it saved so?")
    return tuple(found)


def whole_array(arrays: Mapping[str, NDArray[Any]], name: str, ndim: int) -> Index:
    return _array(arrays, name, ndim, np.dtype(np.int64))


def real_array(arrays: Mapping[str, NDArray[Any]], name: str, ndim: int) -> Matrix:
    found: Matrix = _array(arrays, name, ndim, np.dtype(np.float64))
    if not np.isfinite(found).all():
        raise StateError(f"saved features: expected finite numbers in {name}, got others; was it saved so?")
    return found


def _array(arrays: Mapping[str, NDArray[Any]], name: str, ndim: int, dtype: np.dtype[Any]) -> NDArray[Any]:
    if name not in arrays:
        raise StateError(f"saved features: expected an array {name}, got {', '.join(sorted(arrays)) or 'none':.100}")
    found = np.asarray(arrays[name])
    if found.ndim != ndim or found.dtype != dtype:
        got = f"{found.dtype} of shape {found.shape}"
        raise StateError(f"saved features: expected {name} as {dtype} of {ndim} dimensions, got {got}")
    return found
