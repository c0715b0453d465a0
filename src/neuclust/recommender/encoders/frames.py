"""A scikit-learn transformer in the place of the encoders of a whole table: it reads several columns at once."""

from collections.abc import Mapping, Sequence
from datetime import date, datetime
from typing import Any

import numpy as np

from neuclust.errors import ConfigError, DataError, NeuclustError, StateError
from neuclust.recommender.encoders.encoder import Fixed, Matrix, described, saved_entry, saved_texts
from neuclust.recommender.encoders.transformers import (
    PROBES,
    class_of,
    copied,
    labels_of,
    numbers_of,
    one_line,
    same_outputs,
)
from neuclust.recommender.tables.columns import WHOLE, Transformer, is_transformer
from neuclust.recommender.tables.values import Value, value_from_json, value_to_json

FRAME = "frame"
MOST_WIDE = 4_096  # columns the transformer of a table may make
TYPES = ("number", "date", "object")  # of columns: float64, datetime64, and objects with NaN for missing ones


class FrameEncoder(Fixed):
    """The columns a transformer makes of `columns` of a table, dense; it reads a pandas frame of them.

    Values are rows, one entry per column. Types of columns are those of the fit, so that one row is read as many are. A
    row of which nothing is known is zeros where the transformer makes nothing of it.
    """

    name = WHOLE

    def __init__(
        self, kind: Transformer, columns: Sequence[str], types: Sequence[str], probes: Sequence[Sequence[Value]]
    ) -> None:
        self.kind, self.columns, self.types = kind, tuple(columns), tuple(types)
        self.transformer, self.probes = kind.transformer, [tuple(row) for row in probes]
        self.outputs = self._transformed(self.probes, None)
        self.width, self.levels = self.outputs.shape[1], None
        self.labels = labels_of(self.transformer, "", self.width)

    @classmethod
    def fit(cls, kind: Transformer, columns: Mapping[str, Sequence[Value]]) -> "FrameEncoder":
        """Fitted on these columns of a table, or used as it is where it was fitted before."""
        rows: list[tuple[Value, ...]] = list(zip(*columns.values(), strict=True))
        if not rows:
            raise DataError(f"{class_of(kind)}: expected rows to fit it on, got none; give some")
        names = list(columns)
        types = [_type_of(values) for values in columns.values()]
        probes = list(dict.fromkeys(rows))[:PROBES]
        try:
            if kind.fitted:
                return cls(kind, names, types, probes)
            fresh = copied(kind.transformer)
            fresh.fit(_frame(rows, names, types))
            return cls(Transformer(fresh), names, types, probes)
        except NeuclustError:
            raise
        except Exception as error:  # whatever the transformer of a user raises
            listed = ", ".join(names)
            raise DataError(f"{class_of(kind)} cannot be fitted on {listed:.200}: {one_line(error)}") from None

    def encode(self, values: Sequence[Any]) -> Matrix:
        return self._with_missing(values)

    def write(self, value: Any, out: Matrix, row: int | None = None) -> None:
        out[:] = self._with_missing([value], row)[0]

    def _with_missing(self, rows: Sequence[Any], row: int | None = None) -> Matrix:
        """(n, width); rows that say nothing are what the transformer makes of them, or zeros."""
        nothing = (None,) * len(self.columns)
        given = [nothing if each is None else each for each in rows]
        known = [place for place, each in enumerate(given) if each != nothing]
        if len(known) < len(given):
            try:
                return self._transformed(given, self.width, row)
            except DataError:
                pass
        out = np.zeros((len(given), self.width))
        if known:
            out[known] = self._transformed([given[place] for place in known], self.width, row)
        return out

    def _transformed(self, rows: Sequence[Sequence[Value]], width: int | None, row: int | None = None) -> Matrix:
        where = f"{class_of(self.kind)}{'' if row is None else f', row {row}'}"
        try:
            found = self.transformer.transform(_frame(rows, self.columns, self.types))
        except NeuclustError:
            raise
        except Exception as error:  # whatever the transformer of a user raises
            raise DataError(f"{where} refuses {list(rows)!r:.100}: {one_line(error)}") from None
        return numbers_of(found, len(rows), width, where, MOST_WIDE)

    def describe(self) -> str:
        return " ".join(f"{self.transformer!r:.100}".split())

    def to_json(self) -> dict[str, Any]:
        return described(self) | {
            "form": FRAME, "columns": list(self.columns), "types": list(self.types), "width": self.width,
            "probes": [[value_to_json(value) for value in row] for row in self.probes],
            "outputs": self.outputs.tolist(),
        }  # fmt: skip

    @classmethod
    def from_json(cls, class_name: str, saved: Any, transformer: Any) -> "FrameEncoder":
        """With the fitted transformer, which must make of the probes what it made before."""
        wanted = f"expected the fitted {class_name:.100} it was saved with"
        if transformer is None or not is_transformer(transformer) or type(transformer).__name__ != class_name:
            got = "none" if transformer is None else f"a {type(transformer).__name__:.100}"
            raise StateError(f"{wanted}, got {got}; give it again, transformers={{'TABLE.{WHOLE}': …}}")
        columns, types = saved_texts(saved, "columns"), saved_entry(saved, "types", list)
        probes = [[value_from_json(value) for value in row] for row in saved_entry(saved, "probes", list)]
        if not probes or any(len(row) != len(columns) for row in [types, *probes]) or not set(types) <= set(TYPES):
            raise StateError(f"saved features: expected {len(columns)} types and values in every probe, got others")
        fitted = saved_entry(saved, "kind", dict).get("fitted") is True
        try:
            made = cls(Transformer(transformer, fitted), columns, types, probes)
        except DataError as error:
            raise StateError(f"{wanted}; {error!s:.300}") from None
        if not same_outputs(made.outputs, saved):
            raise StateError(f"{wanted}, got one with other outputs on the same rows; give the same one again")
        return made


def _type_of(values: Sequence[Value]) -> str:
    kinds = {type(value) for value in values if value is not None}
    if kinds and kinds <= {int, float}:
        return "number"
    return "date" if kinds and kinds <= {date, datetime} else "object"


def _frame(rows: Sequence[Sequence[Value]], columns: Sequence[str], types: Sequence[str]) -> Any:
    """Rows as a pandas frame, whatever the values of these rows are."""
    try:
        import pandas as pd
    except ImportError:
        said = "a transformer of a whole table reads a pandas frame, and pandas is not installed"
        raise ConfigError(f"{said}; pip install pandas", field="features") from None
    found: dict[str, Any] = {}
    for place, (name, kind) in enumerate(zip(columns, types, strict=True)):
        values = [np.nan if row[place] is None else row[place] for row in rows]
        if kind == "number":
            found[name] = pd.Series(values, dtype=np.float64)
        elif kind == "date":
            found[name] = pd.to_datetime(pd.Series(values, dtype=object), utc=True)
        else:
            found[name] = pd.Series(values, dtype=object)
    return pd.DataFrame(found, columns=list(columns))
