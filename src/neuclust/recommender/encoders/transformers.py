"""scikit-learn transformers in the place of a column's encoder."""

import copy
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from neuclust.errors import DataError, NeuclustError, StateError
from neuclust.recommender.encoders.encoder import SHOWN, Fixed, Matrix, described, saved_entry
from neuclust.recommender.tables.columns import Transformer, is_transformer
from neuclust.recommender.tables.values import LARGEST, RowError, Value, text_of, value_from_json, value_to_json

MOST_WIDE = 512  # columns one transformer may make
PROBES = 5  # values whose outputs are saved, to know a transformer again
TOLERANCE = 1e-6
FORMS = ("texts", "vectors", "matrix", "list")


class TransformerEncoder(Fixed):
    """The columns a transformer makes of one column, dense.

    The transformer is copied and fitted at `fit`; `transformer` is the fitted copy. It is not saved with the schema:
    its class, its width and what it makes of a few values are, and the same fitted transformer is given again.
    """

    def __init__(self, name: str, kind: Transformer, form: str, probes: Sequence[Value]) -> None:
        self.name, self.kind, self.form = name, kind, form
        self.transformer = kind.transformer
        self.probes = tuple(probes)
        self.outputs = self._transformed(self.probes, None)
        self.width, self.levels = self.outputs.shape[1], None
        self.labels = labels_of(self.transformer, name, self.width)

    @classmethod
    def fit(cls, name: str, kind: Transformer, values: Sequence[Value]) -> "TransformerEncoder":
        if not values:
            raise DataError(
                f"column {name!r:.100}: expected values to fit {class_of(kind)} on, got none; give some rows"
            )
        probes = list(dict.fromkeys(value for value in values if value is not None))[:PROBES]
        if not probes:
            got = "got missing ones alone; leave the column out"
            raise DataError(f"column {name!r:.100}: expected values to fit {class_of(kind)} on, {got}")
        problems = []
        for form in _forms(kind.transformer, values):
            try:
                if kind.fitted:
                    return cls(name, kind, form, probes)
                fresh = copied(kind.transformer)
                fresh.fit(_formed(values, form))
                return cls(name, Transformer(fresh), form, probes)
            except NeuclustError as error:
                if not kind.fitted:
                    raise
                problems.append(one_line(error))
            except Exception as error:  # whatever the transformer of a user raises
                problems.append(one_line(error))
        raise DataError(f"column {name!r:.100}: {class_of(kind)} cannot be fitted on it: {problems[0]}")

    def encode(self, values: Sequence[Value]) -> Matrix:
        return self._with_missing(values)

    def write(self, value: Value, out: Matrix, row: int | None = None) -> None:
        out[:] = self._with_missing([value], row)[0]

    def _with_missing(self, values: Sequence[Value], row: int | None = None) -> Matrix:
        """(n, width); a missing value is what the transformer makes of it, zeros where it makes nothing of it."""
        there = [place for place, value in enumerate(values) if value is not None]
        if len(there) < len(values):
            try:
                return self._transformed(values, self.width, row)
            except DataError:  # as of somebody never seen before, of whom nothing is known
                pass
        out = np.zeros((len(values), self.width))
        if there:
            out[there] = self._transformed([values[place] for place in there], self.width, row)
        return out

    def _transformed(self, values: Sequence[Value], width: int | None, row: int | None = None) -> Matrix:
        """(n, width), checked; `width` is None before it is known."""
        head, who = f"column {self.name!r:.100}", class_of(self.kind)
        try:
            found = self.transformer.transform(_formed(values, self.form))
        except Exception as error:  # whatever the transformer of a user raises
            raise RowError(head, f"{who} refuses {list(values)!r:.100}: {one_line(error)}", row) from None
        try:
            return numbers_of(found, len(values), width, who)
        except DataError as error:
            raise RowError(head, str(error), row) from None

    def describe(self) -> str:
        return " ".join(f"{self.transformer!r:.100}".split())

    def to_json(self) -> dict[str, Any]:
        probes = [value_to_json(value) for value in self.probes]
        return described(self) | {
            "form": self.form,
            "width": self.width,
            "probes": probes,
            "outputs": self.outputs.tolist(),
        }

    @classmethod
    def from_json(cls, name: str, class_name: str, saved: Any, transformer: Any) -> "TransformerEncoder":
        """With the fitted transformer, which must make of the probes what it made before."""
        where = f"column {name!r:.100}"
        if transformer is None or not is_transformer(transformer) or type(transformer).__name__ != class_name:
            got = "none" if transformer is None else f"a {type(transformer).__name__:.100}"
            raise StateError(
                f"{where}: expected the fitted {class_name:.100} it was saved with, got {got}; give it again"
            )
        form, width = saved_entry(saved, "form", str), saved_entry(saved, "width", int)
        probes = [value_from_json(value) for value in saved_entry(saved, "probes", list)]
        if form not in FORMS or not probes:
            raise StateError(f"saved features: {where}: expected a form of {FORMS} and probes, got {form!r:.100}")
        try:
            fitted = saved_entry(saved, "kind", dict).get("fitted") is True
            made = cls(name, Transformer(transformer, fitted), form, probes)
            same = made.width == width and same_outputs(made.outputs, saved)
        except DataError as error:
            raise StateError(
                f"{where}: expected the fitted {class_name:.100} it was saved with; {error!s:.300}"
            ) from None
        if not same:
            wanted = f"expected the fitted {class_name:.100} it was saved with"
            raise StateError(
                f"{where}: {wanted}, got one with other outputs on the same values; give the same one again"
            )
        return made


def numbers_of(found: Any, rows: int, width: int | None, where: str, most: int = MOST_WIDE) -> Matrix:
    """What a transformer gave, as (rows, width), checked; `width` is None before it is known."""
    try:
        out = np.asarray(found.toarray() if hasattr(found, "toarray") else found, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(f"{where} refuses to give numbers: {one_line(error)}") from None
    out = out.reshape(-1, 1) if out.ndim == 1 else out
    wide = out.shape[-1]
    if out.shape != (rows, wide) or not (1 <= wide <= most if width is None else wide == width):
        wanted = f"1 to {most}" if width is None else str(width)
        raise DataError(f"{where}: expected {rows} rows of {wanted} columns, got an output of {out.shape}")
    if not bool((np.abs(out) <= LARGEST).all()):
        raise DataError(f"{where} makes NaN, infinity or more than {LARGEST:g} of what it is given")
    return out


def same_outputs(outputs: Matrix, saved: Any) -> bool:
    """Whether a transformer makes of the probes what it made when it was saved."""
    try:
        before = np.array(saved_entry(saved, "outputs", list), dtype=np.float64)
    except (TypeError, ValueError):
        return False
    return before.shape == outputs.shape and np.allclose(before, outputs, rtol=TOLERANCE, atol=TOLERANCE)


def class_of(kind: Transformer) -> str:
    """The name of its class."""
    return f"{type(kind.transformer).__name__:.100}"


def one_line(error: Exception) -> str:
    """The error of a transformer on one line."""
    return " ".join(str(error).split())[:200] or type(error).__name__


def copied(transformer: Any) -> Any:
    """A fresh one with the same settings: the user's own stays as it is."""
    from sklearn.base import clone

    return clone(transformer) if hasattr(transformer, "get_params") else copy.deepcopy(transformer)


def _forms(transformer: Any, values: Sequence[Value]) -> tuple[str, ...]:
    """What to try: vectorisers of text read a list of texts, others a matrix, a few a plain list of values."""
    steps = getattr(transformer, "steps", None)
    first = steps[0][1] if isinstance(steps, list) and steps else transformer  # of a pipeline
    if hasattr(first, "build_analyzer"):
        return ("texts",)
    lengths = {len(value) if isinstance(value, tuple) else None for value in values}
    numeric = all(isinstance(value, tuple) and not any(isinstance(entry, str) for entry in value) for value in values)
    if numeric and len(lengths) == 1 and lengths != {0}:
        return ("vectors",)
    return ("matrix", "list")


def _formed(values: Sequence[Value], form: str) -> Any:
    """Values as the transformer reads them: missing ones are "" in texts, NaN among numbers, None elsewhere."""
    if form == "texts":
        return ["" if value is None else " ".join(value_texts(value)) for value in values]
    if form == "vectors":
        return np.array(values, dtype=np.float64)
    if form == "list":
        return list(values)
    if any(value is not None for value in values) and all(isinstance(value, int | float | None) for value in values):
        return np.array([[math.nan if value is None else value] for value in values], dtype=np.float64)
    out = np.empty((len(values), 1), dtype=object)
    for row, value in enumerate(values):
        out[row, 0] = value
    return out


def value_texts(value: Value) -> list[str]:
    """The words of a value for a vectoriser of text: tags one after another."""
    return [text_of(entry) for entry in value] if isinstance(value, tuple) else [text_of(value)]


def labels_of(transformer: Any, name: str, width: int) -> tuple[str, ...]:
    """Names for people, the transformer's own where it has some."""
    try:
        names = [str(each) for each in transformer.get_feature_names_out()]
    except Exception:  # not every transformer has names
        names = []
    if len(names) != width or len(set(names)) != width:
        return tuple(f"{name}[{column}]" for column in range(width))
    if not name:  # of a whole table: the names tell the columns themselves
        return tuple(each[:SHOWN] for each in names)
    return tuple(f"{name}: {each.removeprefix('x0_')[:SHOWN]}" for each in names)
