"""The contract of an encoder: one column's values as columns of numbers, float64."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from neuclust.errors import DataError, StateError
from neuclust.recommender.tables.columns import Kind, kind_to_json
from neuclust.recommender.tables.values import RowError, Value

Matrix = NDArray[np.float64]
Found = TypeVar("Found")

SHOWN = 40  # characters of a level in a label
LISTED = 4  # levels in a description


class Encoder(Protocol):
    """One column, fitted: n values become (n, width). Values are plain ones (`values.plain`); None is missing.

    A value of another type than the column's raises a `DataError` that names the column.
    """

    @property
    def name(self) -> str: ...

    @property
    def kind(self) -> Kind: ...

    @property
    def width(self) -> int: ...

    @property
    def labels(self) -> tuple[str, ...]:
        """A name for each column made, for people."""
        ...

    @property
    def levels(self) -> tuple[str, ...] | None:
        """The text of the level behind each leading column of a category or of tags; None for other kinds."""
        ...

    @property
    def settled(self) -> bool:
        """Whether `observe` changes nothing any more."""
        ...

    def encode(self, values: Sequence[Value]) -> Matrix:
        """(n, width)."""
        ...

    def write(self, value: Value, out: Matrix, row: int | None = None) -> None:
        """One value into `out` (width,), which holds zeros: the same numbers as `encode`; `row` is for a refusal."""
        ...

    def observe(self, values: Iterable[Value]) -> None:
        """Let a running scale see values; nothing where it is frozen or the kind has none."""
        ...

    def describe(self) -> str:
        """How the column is read, in a few words."""
        ...

    def to_json(self) -> dict[str, Any]:
        """Name, kind and what was learned, for `fitting.encoder_from_json`."""
        ...


class Fixed:
    """What encoders share that learn nothing after the fit."""

    @property
    def settled(self) -> bool:
        return True

    def observe(self, values: Iterable[Value]) -> None:
        """Nothing is learned after the fit."""


def described(encoder: Encoder) -> dict[str, Any]:
    """The part of `to_json` that all encoders share."""
    return {"name": encoder.name, "kind": kind_to_json(encoder.kind)}


def refusal(name: str, expected: str, value: object, row: int | None = None, advice: str = "") -> DataError:
    """The error for a value of another type than its column's."""
    said = f"expected {expected}, got {value!r:.100}{advice and '; ' + advice}"
    return RowError(f"column {name!r:.100}", said, row)


def encode_rows(encoder: Encoder, values: Sequence[Value]) -> Matrix:
    """`write` for each distinct one of n values; where one is refused its first row is named."""
    places: dict[Value, int] = {}
    codes = [places.setdefault(value, len(places)) for value in values]
    first = dict(zip(reversed(codes), range(len(codes) - 1, -1, -1), strict=True))
    distinct = np.zeros((len(places), encoder.width))
    for value, place in places.items():
        encoder.write(value, distinct[place], first[place])
    return distinct[codes] if codes else distinct


def label(name: str, level: str) -> str:
    """`category=shoes`; long levels are cut."""
    return f"{name}={level if len(level) <= SHOWN else level[: SHOWN - 1] + '…'}"


def listed(levels: Sequence[str]) -> str:
    """`red, blue, green, pink and 3 more`."""
    shown = ", ".join(label("", level)[1:] for level in levels[:LISTED])
    return shown + (f" and {len(levels) - LISTED} more" if len(levels) > LISTED else "")


def saved_entry(saved: Any, key: str, kind: type[Found]) -> Found:
    """An entry of saved JSON, of its type; a float may have been written as a whole number."""
    found = saved.get(key) if isinstance(saved, Mapping) else None
    if kind is float and type(found) is int:
        found = float(found)
    if type(found) is not kind or (isinstance(found, float) and not np.isfinite(found)):
        wanted = f"expected a {kind.__name__} for {key!r}"
        raise StateError(f"saved features: {wanted}, got {found!r:.100}; the save is damaged or foreign")
    return found


def saved_texts(saved: Any, key: str) -> tuple[str, ...]:
    """A list of distinct texts in saved JSON."""
    found = saved_entry(saved, key, list)
    if not all(isinstance(text, str) for text in found) or len(set(found)) != len(found):
        raise StateError(
            f"saved features: expected distinct texts for {key!r}, got {found!r:.100}; the save is damaged"
        )
    return tuple(found)
