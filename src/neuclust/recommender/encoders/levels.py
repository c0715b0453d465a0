"""Categories and tags: a column for each of the most frequent levels, and one for all others."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from neuclust.errors import StateError
from neuclust.recommender.encoders.encoder import (
    Fixed,
    Matrix,
    described,
    encode_rows,
    label,
    listed,
    refusal,
    saved_entry,
    saved_texts,
)
from neuclust.recommender.tables.columns import LONGEST_TEXT, Category, Tags
from neuclust.recommender.tables.values import RowError, Value, text_of

FREE = "(free)"  # in the label of a column that waits for a level


def levels_for(kind: Category | Tags, texts: Iterable[str]) -> tuple[str, ...]:
    """The listed levels, else the most frequent texts, the most frequent first, ties by text."""
    if not isinstance(kind.levels, int):
        return tuple(kind.levels)
    ordered = sorted(Counter(texts).items(), key=lambda entry: (-entry[1], entry[0]))
    return tuple(text for text, _ in ordered[: kind.levels])


def most_of(kind: Category | Tags) -> int:
    """How many levels may get a column."""
    return kind.levels if isinstance(kind.levels, int) else len(kind.levels)


def others(name: str, levels: Sequence[str]) -> str:
    """The label of the column for all other levels."""
    return f"{name}=(other)" if "other" in levels else f"{name}=other"


class CategoryEncoder:
    """One-hot of the levels, then `other` for rarer and unseen ones, then `missing` if some were at the fit.

    `slots` beyond the levels are free columns: `observe` gives the next new level the next of them, so that a column of
    request context, of which the first request shows one value, knows its levels without growing.
    """

    def __init__(
        self, name: str, kind: Category, levels: Sequence[str], missing: bool, slots: int | None = None
    ) -> None:
        self.name, self.kind, self.missing = name, kind, missing
        self.slots = len(levels) if slots is None else slots
        self.width = self.slots + 1 + missing
        self._position = {level: position for position, level in enumerate(levels)}

    @classmethod
    def fit(cls, name: str, kind: Category, values: Sequence[Value], reserve: int = 0) -> "CategoryEncoder":
        texts = [_level(value, name, row) for row, value in enumerate(values)]
        present = [text for text in texts if text is not None]
        levels = levels_for(kind, present)
        return cls(name, kind, levels, len(present) < len(texts), min(len(levels) + reserve, most_of(kind)))

    @property
    def levels(self) -> tuple[str, ...]:
        return tuple(self._position)

    @property
    def labels(self) -> tuple[str, ...]:
        named = [label(self.name, level) for level in self._position]
        free = [f"{self.name}={FREE} {place + 1}" for place in range(len(named), self.slots)]
        return (*named, *free, others(self.name, self.levels), *[f"{self.name} missing"] * self.missing)

    def renamed(self, names: Mapping[str, str]) -> "CategoryEncoder":
        """The same columns with other texts for some levels."""
        levels = [names.get(level, level) for level in self._position]
        return CategoryEncoder(self.name, self.kind, levels, self.missing, self.slots)

    def texts(self, value: Value) -> tuple[str, ...]:
        """The levels a value has, also those without a column."""
        text = _level(value, self.name, None)
        return () if text is None else (text,)

    @property
    def settled(self) -> bool:
        return len(self._position) >= self.slots

    def observe(self, values: Iterable[Value]) -> None:
        if self.settled:
            return
        for text in [_level(value, self.name, None) for value in values]:
            if text is not None and text not in self._position and not self.settled:
                self._position[text] = len(self._position)

    def encode(self, values: Sequence[Value]) -> Matrix:
        places = [self._place(value, row) for row, value in enumerate(values)]
        out = np.zeros((len(places), self.width + 1))
        out[np.arange(len(places)), places] = 1.0  # what has no column goes into the last, which is cut off
        return np.ascontiguousarray(out[:, :-1])

    def write(self, value: Value, out: Matrix, row: int | None = None) -> None:
        place = self._place(value, row)
        if place >= 0:
            out[place] = 1.0

    def _place(self, value: Value, row: int | None) -> int:
        """The column that is 1; −1: none."""
        text = _level(value, self.name, row)
        if text is None:
            return self.width - 1 if self.missing else -1
        return self._position.get(text, self.slots)

    def describe(self) -> str:
        free = self.slots - len(self._position)
        return (listed(self.levels) or "no level yet") + (f"; {free} to come" if free else "")

    def to_json(self) -> dict[str, Any]:
        return described(self) | {"levels": list(self.levels), "missing": self.missing, "slots": self.slots}

    @classmethod
    def from_json(cls, name: str, kind: Category, saved: Any) -> "CategoryEncoder":
        levels, slots = saved_texts(saved, "levels"), saved_entry(saved, "slots", int)
        if not len(levels) <= slots <= most_of(kind):
            got = f"got {len(levels)} levels in {slots} columns"
            raise StateError(f"saved features: column {name!r:.100}: expected at most {most_of(kind)} levels, {got}")
        return cls(name, kind, levels, saved_entry(saved, "missing", bool), slots)


def _level(value: Value, name: str, row: int | None) -> str | None:
    if value is None:
        return None
    if isinstance(value, tuple):
        raise refusal(name, "one value", value, row, "declare the column tags or a vector")
    return _short(text_of(value), name, row)


def _short(text: str, name: str, row: int | None) -> str:
    if len(text) > LONGEST_TEXT:
        got = f"got {len(text):,}; shorten it or declare the column ignored"
        raise RowError(f"column {name!r:.100}", f"expected text of at most {LONGEST_TEXT:,} characters, {got}", row)
    return text


class TagsEncoder(Fixed):
    """1/√(number of the row's tags) for each of them, `other` for rarer and unseen ones; zeros where there are none."""

    def __init__(self, name: str, kind: Tags, levels: tuple[str, ...]) -> None:
        self.name, self.kind, self.levels = name, kind, levels
        self.labels = (*(label(name, level) for level in levels), others(name, levels))
        self.width = len(self.labels)
        self._position = {level: position for position, level in enumerate(levels)}

    @classmethod
    def fit(cls, name: str, kind: Tags, values: Sequence[Value]) -> "TagsEncoder":
        rows = [tags_of(value, name, kind, row) for row, value in enumerate(values)]
        return cls(name, kind, levels_for(kind, (tag for tags in rows for tag in tags)))

    def renamed(self, names: Mapping[str, str]) -> "TagsEncoder":
        """The same columns with other texts for some tags."""
        return TagsEncoder(self.name, self.kind, tuple(names.get(level, level) for level in self.levels))

    def texts(self, value: Value) -> tuple[str, ...]:
        """The tags a value has, also those without a column."""
        return tags_of(value, self.name, self.kind)

    def encode(self, values: Sequence[Value]) -> Matrix:
        return encode_rows(self, values)

    def write(self, value: Value, out: Matrix, row: int | None = None) -> None:
        tags = tags_of(value, self.name, self.kind, row)
        size = 1.0 / math.sqrt(len(tags)) if tags else 0.0
        for tag in tags:
            out[self._position.get(tag, self.width - 1)] = size

    def describe(self) -> str:
        return listed(self.levels) or "no tag seen"

    def to_json(self) -> dict[str, Any]:
        return described(self) | {"levels": list(self.levels)}

    @classmethod
    def from_json(cls, name: str, kind: Tags, saved: Any) -> "TagsEncoder":
        levels = saved_texts(saved, "levels")
        if len(levels) > most_of(kind):
            wanted = f"expected at most {most_of(kind)} tags"
            raise StateError(f"saved features: column {name!r:.100}: {wanted}, got {len(levels)}")
        return cls(name, kind, levels)


def tags_of(value: Value, name: str, kind: Tags, row: int | None = None) -> tuple[str, ...]:
    """The distinct tags of a list, or of text that has a separator."""
    if value is None:
        return ()
    if isinstance(value, str) and kind.separator is not None:
        parts = [part.strip() for part in value.split(kind.separator)]
        value = tuple(part for part in parts if part)
    if not isinstance(value, tuple):
        raise refusal(name, "a list of tags", value, row, "text needs a separator, as in Tags(separator='|')")
    return tuple(dict.fromkeys(_short(text_of(tag), name, row) for tag in value))
