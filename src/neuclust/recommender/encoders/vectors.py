"""Vectors (embeddings): all entries on one scale."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from neuclust.errors import DataError, StateError
from neuclust.recommender.encoders.encoder import Fixed, Matrix, described, refusal, saved_entry
from neuclust.recommender.tables.columns import MOST_ENTRIES, Vector
from neuclust.recommender.tables.values import LARGEST, RowError, Value

CLIP = 10.0  # of an entry, in root mean squared lengths of the fitted vectors


class VectorEncoder(Fixed):
    """v / √(mean of ‖v‖² over the fitted vectors), entries clipped to [−10, 10]; zeros where it is missing."""

    def __init__(self, name: str, kind: Vector, width: int, length: float) -> None:
        self.name, self.kind, self.width, self.length = name, kind, width, length
        self.labels = tuple(f"{name}[{entry}]" for entry in range(width))
        self.levels = None

    @classmethod
    def fit(cls, name: str, kind: Vector, values: Sequence[Value]) -> "VectorEncoder":
        rows = [row for row, value in enumerate(values) if value is not None]
        width = kind.dim if kind.dim is not None else _first_length(values, rows, name, kind)
        vectors = _matrix(values, rows, width, name, kind)
        length = math.sqrt(float(np.square(vectors).sum(1).mean())) if rows else 0.0
        return cls(name, kind, width, length or 1.0)

    def encode(self, values: Sequence[Value]) -> Matrix:
        rows = [row for row, value in enumerate(values) if value is not None]
        out = np.zeros((len(values), self.width))
        out[rows] = np.clip(_matrix(values, rows, self.width, self.name, self.kind) / self.length, -CLIP, CLIP)
        return out

    def write(self, value: Value, out: Matrix, row: int | None = None) -> None:
        if value is not None:
            _fill(out, value, self.name, self.kind, row)
            out /= self.length
            np.clip(out, -CLIP, CLIP, out=out)

    def describe(self) -> str:
        return f"{self.width} numbers, divided by {self.length:.4g}"

    def to_json(self) -> dict[str, Any]:
        return described(self) | {"width": self.width, "length": self.length}

    @classmethod
    def from_json(cls, name: str, kind: Vector, saved: Any) -> "VectorEncoder":
        width, length = saved_entry(saved, "width", int), saved_entry(saved, "length", float)
        if not (1 <= width <= MOST_ENTRIES and length > 0):
            raise StateError(f"saved features: expected the size of vectors, got {width} entries of length {length:g}")
        return cls(name, kind, width, length)


def _first_length(values: Sequence[Value], rows: Sequence[int], name: str, kind: Vector) -> int:
    """How many entries the first vector has."""
    if not rows:
        wanted = "expected at least one vector to take the length from"
        raise DataError(f"column {name!r:.100}: {wanted}, got none; declare it, as in Vector(dim=8)")
    length = len(_numbers(values[rows[0]], name, kind, rows[0]))
    if not 1 <= length <= MOST_ENTRIES:
        wanted = f"expected a vector of 1 to {MOST_ENTRIES} numbers"
        raise RowError(f"column {name!r:.100}", f"{wanted}, got {length}", rows[0])
    return length


def _numbers(value: Value, name: str, kind: Vector, row: int | None) -> tuple[Any, ...]:
    """The numbers of a list, or of text that has a separator."""
    if isinstance(value, tuple) and not any(isinstance(entry, str) for entry in value[:1]):
        return value
    if not isinstance(value, str) or kind.separator is None:
        advice = "text needs a separator, as in Vector(separator='|')"
        raise refusal(name, "a vector, a list of numbers", value, row, advice)
    try:
        return tuple(float(part) for part in value.strip(" []()").split(kind.separator))
    except ValueError:
        raise refusal(name, f"numbers between {kind.separator!r}", value, row) from None


def _matrix(values: Sequence[Value], rows: Sequence[int], width: int, name: str, kind: Vector) -> Matrix:
    """The vectors in these rows, (len(rows), width)."""
    found = [_numbers(values[row], name, kind, row) for row in rows]
    if all(len(numbers) == width for numbers in found):
        out = np.array(found, dtype=np.float64).reshape(-1, width)
        if bool((np.abs(out) <= LARGEST).all()):
            return out
    for row in rows:
        _fill(np.zeros(width), values[row], name, kind, row)
    raise DataError(f"column {name!r:.100}: expected vectors of {width} finite numbers")


def _fill(out: Matrix, value: Value, name: str, kind: Vector, row: int | None) -> None:
    """The numbers of a vector into `out`, which has the length they must have."""
    numbers = _numbers(value, name, kind, row)
    if len(numbers) != len(out):
        raise RowError(f"column {name!r:.100}", f"expected a vector of {len(out)} numbers, got {len(numbers)}", row)
    out[:] = numbers
    if not bool((np.abs(out) <= LARGEST).all()):
        raise refusal(name, f"a vector of finite numbers of at most {LARGEST:g}", value, row)
