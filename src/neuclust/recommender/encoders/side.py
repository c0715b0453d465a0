"""One side of a decision, encoded: the items' columns, or the user's followed by the request's context."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from neuclust.errors import DataError, StateError
from neuclust.recommender.encoders.encoder import Encoder, Matrix, saved_entry
from neuclust.recommender.encoders.feature_table import FeatureRow
from neuclust.recommender.encoders.fitting import RESERVE, encoder_from_json, fit_encoder
from neuclust.recommender.encoders.frames import FrameEncoder
from neuclust.recommender.tables.columns import LEVELS, WHOLE, Ignore, Kind, Transformer, infer, word_of
from neuclust.recommender.tables.tables import Table
from neuclust.recommender.tables.values import NotPlain, RowError, Value, plain

NO_TABLE = Table({}, 0)


@dataclass(frozen=True)
class Side:
    """Encoders of the columns that are learned from, one after another, and why each column is read as it is.

    The structure never changes; running scales and free levels do, by `observe`.
    """

    name: str  # "items" or "users", for sentences and tables
    encoders: tuple[Encoder, ...]
    reasons: Mapping[str, str]  # of every column, in order; those without an encoder are ignored
    context: frozenset[str] = frozenset()  # columns that come with requests

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The columns that are learned from."""
        return tuple(encoder.name for encoder in self.encoders)

    @cached_property
    def slices(self) -> dict[str, slice]:
        """Where the columns made of each column are."""
        ends = np.cumsum([0, *(encoder.width for encoder in self.encoders)]).tolist()
        return {name: slice(*pair) for name, pair in zip(self.names, pairwise(ends), strict=True)}

    @cached_property
    def width(self) -> int:
        return sum(encoder.width for encoder in self.encoders)

    @property
    def labels(self) -> tuple[str, ...]:
        """(width,) names for people; those of free levels change when a level takes one."""
        return tuple(label for encoder in self.encoders for label in encoder.labels)

    @property
    def ignored(self) -> dict[str, str]:
        """Columns that are not learned from, and why."""
        used = {*self.slices, *columns_read(self)}
        return {column: why for column, why in self.reasons.items() if column not in used}

    @property
    def settled(self) -> bool:
        """Whether the same row is encoded the same for ever: no scale runs and no level is free."""
        return all(encoder.settled for encoder in self.encoders)

    def levels(self, name: str) -> tuple[str, ...] | None:
        """The level behind each leading column of a category or of tags; None for other kinds."""
        return self._by_name[name].levels

    @cached_property
    def _by_name(self) -> dict[str, Encoder]:
        return dict(zip(self.names, self.encoders, strict=True))

    def encode(self, table: Table) -> Matrix:
        """All rows of a table, (n, width); columns it does not have are missing, others are not read."""
        blocks = [np.zeros((len(table), 0))]
        for encoder in self.encoders:
            with _Of(self.name, table):
                blocks.append(encoder.encode(_values(encoder, table)))
        return np.concatenate(blocks, axis=1)

    def encode_row(self, row: Mapping[str, Any]) -> tuple[Matrix, frozenset[str]]:
        """One row, (width,), and the names in it that are no columns here; columns it does not have are missing."""
        out = np.zeros(self.width)
        with _Of(self.name):
            for name, place in self.slices.items():
                self._by_name[name].write(_value(self._by_name[name], row), out[place])
        return out, frozenset(row.keys() - self.reasons.keys())

    def observe(self, row: Mapping[str, Any]) -> None:
        """Let running scales and free levels see one row; a row with a value of a wrong type is refused unseen."""
        waiting = [encoder for encoder in self.encoders if not encoder.settled]
        if not waiting:
            return
        with _Of(self.name):
            for name in self.slices.keys() & row.keys():  # what the row does not say is not looked at
                self._by_name[name].write(_plain(row[name], name), np.zeros(self._by_name[name].width))
        for encoder in waiting:
            encoder.observe([_plain(row.get(encoder.name), encoder.name)])

    def extended(self, name: str, encoder: Encoder | None, reason: str) -> "Side":
        """With one more column of request context; without an encoder it is ignored."""
        if name in self.reasons:
            raise DataError(f"{self.name}: expected a new column, got {name!r:.100}, which is there")
        encoders = self.encoders if encoder is None else (*self.encoders, encoder)
        reasons = {**self.reasons, name: reason}
        return replace(self, encoders=encoders, reasons=reasons, context=self.context | {name})

    def describe(self) -> list[FeatureRow]:
        """A row for each column, for the printed table."""
        rows = []
        for column, reason in self.reasons.items():
            table = "context" if column in self.context else self.name
            encoder = self._by_name.get(column)
            if encoder is None and column in columns_read(self):
                rows.append(FeatureRow(table, column, "transformer", 0, "", reason))
            elif encoder is None:
                rows.append(FeatureRow(table, column, "ignored", 0, "", reason))
            else:
                rows.append(FeatureRow(table, column, word_of(encoder.kind), encoder.width, encoder.describe(), reason))
        return rows

    def to_json(self) -> dict[str, Any]:
        encoders = [encoder.to_json() for encoder in self.encoders]
        return {
            "name": self.name, "encoders": encoders, "reasons": [list(entry) for entry in self.reasons.items()],
            "context": sorted(self.context),
        }  # fmt: skip

    @classmethod
    def from_json(cls, saved: Any, transformers: Mapping[str, Any] | None = None) -> "Side":
        """What `to_json` wrote; `transformers` are those of columns that had one, fitted, by column."""
        given = transformers or {}
        name = saved_entry(saved, "name", str)
        parts = saved_entry(saved, "encoders", list)
        encoders = tuple(encoder_from_json(each, given.get(saved_entry(each, "name", str))) for each in parts)
        pairs, context = saved_entry(saved, "reasons", list), saved_entry(saved, "context", list)
        if not all(isinstance(pair, list) and [type(part) for part in pair] == [str, str] for pair in pairs):
            raise StateError(f"saved features: expected a reason for each column, got {pairs!r:.100}")
        made = cls(name, encoders, dict(pairs), frozenset(map(str, context)))
        named = {*made.names, *columns_read(made), *made.context}
        if not named <= made.reasons.keys() or len(made.slices) != len(encoders) or len(made.reasons) != len(pairs):
            raise StateError(f"saved features: expected every column once, got {sorted(named)!r:.100}")
        return made


def columns_read(side: Side) -> tuple[str, ...]:
    """The columns of a table that encoders read: their own, and those a transformer of the whole table reads."""
    return tuple(name for encoder in side.encoders for name in _reads(encoder))


def fit_side(
    table: Table, declared: Mapping[str, Kind], name: str = "items", levels: int = LEVELS, ids: Iterable[str] = ()
) -> Side:
    """The side of a table: declared kinds where there are some, inferred ones elsewhere; `ids` name the rows."""
    encoders: list[Encoder] = []
    reasons: dict[str, str] = {}
    named, whole = set(ids), declared.get(WHOLE)
    if isinstance(whole, Transformer):
        encoders.append(_whole(name, whole, table, {*named, *declared}))
        reasons = {WHOLE: "declared"} | dict.fromkeys(_reads(encoders[0]), f"read by {WHOLE}")
    for column, values in table.columns.items():
        if column in reasons:
            continue
        kind, reason = _kind(values, declared.get(column), column in named, levels)
        encoder = _fitted(name, column, kind, table)
        if encoder is not None:
            encoders.append(encoder)
        reasons[column] = reason
    return Side(name, tuple(encoders), reasons)


def with_context(side: Side, row: Mapping[str, Value], declared: Mapping[str, Kind], levels: int = LEVELS) -> Side:
    """The side with all columns of declared context, and those of a request that are new, inferred from its values.

    A new column whose value is missing is left for a later request to tell what it is.
    """
    return with_past_context(side, {column: [value] for column, value in row.items()}, declared, levels)


def with_past_context(
    side: Side, columns: Mapping[str, Sequence[Value]], declared: Mapping[str, Kind], levels: int = LEVELS
) -> Side:
    """The same from the values of many requests; a column that never varied is inferred from its one value."""
    for column in dict.fromkeys([*declared, *columns]):
        values = columns.get(column, ())
        distinct = {value for value in values if value is not None}
        if column in side.reasons or not (distinct or column in declared):
            continue
        seen: list[Value] = list(values) if len(distinct) > 1 else list(distinct)
        kind, reason = _kind(seen, declared.get(column), False, levels)
        side = side.extended(
            column, _fitted("context", column, kind, Table({column: seen}, len(seen)), RESERVE), reason
        )
    return side


def _kind(values: Sequence[Value], declared: Kind | None, ids: bool, levels: int) -> tuple[Kind, str]:
    if declared is not None:
        return declared, "declared"
    return infer(values, ids, levels)


def _whole(side: str, kind: Transformer, table: Table, named: set[str]) -> FrameEncoder:
    """The encoder of all columns that are not named, or of those a fitted transformer was fitted on."""
    if WHOLE in table.columns:
        raise DataError(
            f"{side}: expected no column named {WHOLE!r} beside a transformer of the whole table; rename it"
        )
    seen = [str(name) for name in getattr(kind.transformer, "feature_names_in_", ())] if kind.fitted else []
    missing = [name for name in seen if name not in table.columns]
    if missing:
        raise DataError(
            f"{side}: expected the column {missing[0]!r:.100}, which the transformer was fitted on, got none"
        )
    read = seen or [column for column in table.columns if column not in named]
    with _Of(side):
        return FrameEncoder.fit(kind, {column: table.columns[column] for column in read})


def _reads(encoder: Encoder) -> tuple[str, ...]:
    return encoder.columns if isinstance(encoder, FrameEncoder) else (encoder.name,)


def _values(encoder: Encoder, table: Table) -> Sequence[Any]:
    """What an encoder reads of a table, one entry per row; a column that the table does not have is missing."""
    nothing: list[Value] = [None] * len(table)
    if isinstance(encoder, FrameEncoder):
        return list(zip(*(table.columns.get(name, nothing) for name in encoder.columns), strict=True))
    return table.columns.get(encoder.name, nothing)


def _value(encoder: Encoder, row: Mapping[str, Any]) -> Any:
    """The same of one row."""
    if isinstance(encoder, FrameEncoder):
        return tuple(_plain(row.get(name), name) for name in encoder.columns)
    return _plain(row.get(encoder.name), encoder.name)


def _fitted(side: str, column: str, kind: Kind, table: Table, reserve: int = 0) -> Encoder | None:
    if isinstance(kind, Ignore):
        return None
    with _Of(side, table):
        return fit_encoder(column, kind, table.columns[column], reserve)


def _plain(value: Any, name: str) -> Value:
    try:
        return plain(value)
    except NotPlain as error:
        raise DataError(f"column {name!r:.100}: {error}") from None


class _Of:
    """Begins the sentence of a `DataError` raised inside with the table's name, and names the place of a row."""

    def __init__(self, name: str, table: Table = NO_TABLE) -> None:
        self.name, self.table = name, table

    def __enter__(self) -> None: ...

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        if isinstance(error, DataError):
            said = error.told(self.table.place) if isinstance(error, RowError) else str(error)
            raise DataError(f"{self.name}: {said}") from None
