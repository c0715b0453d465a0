"""Numbers and booleans: a declared range, or a running mean and standard deviation (Welford) that freezes."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from neuclust.errors import StateError
from neuclust.recommender.encoders.encoder import Fixed, Matrix, described, refusal, saved_entry
from neuclust.recommender.tables.columns import Boolean, Number
from neuclust.recommender.tables.texts import advice_for, is_missing, number_in
from neuclust.recommender.tables.values import LARGEST, Value

ENOUGH = 1_000  # values after which a running scale is frozen
CLIP = 1.5  # of standardised numbers: three deviations
NEGLIGIBLE = 1e-12  # a deviation that small beside the mean is rounding


@dataclass(frozen=True)
class RangeScale:
    """(x − low) / (high − low), clipped to [0, 1]; a missing number is 0.5."""

    low: float
    high: float
    missing = 0.5
    frozen = True

    def apply(self, numbers: Matrix) -> Matrix:
        return np.clip((numbers - self.low) / (self.high - self.low), 0.0, 1.0)

    def apply_one(self, number: float) -> float:
        return min(max((number - self.low) / (self.high - self.low), 0.0), 1.0)

    def observe(self, numbers: Iterable[float]) -> None:
        """A declared range stays as it is."""

    def describe(self) -> str:
        return f"{self.low:g} to {self.high:g}"

    def to_json(self) -> dict[str, Any]:
        return {}


@dataclass
class RunningScale:
    """(x − mean) / (2·std), clipped to [−1.5, 1.5], about as large as a 0/1 column; a missing number is 0.

    Welford's update: after the n-th value δ = x − mean, mean += δ/n, m2 += δ·(x − mean); std = √(m2/n).
    """

    count: int = 0
    mean: float = 0.0
    m2: float = 0.0
    missing = 0.0

    @classmethod
    def fit(cls, numbers: Matrix) -> "RunningScale":
        """Over all numbers of a table, however many."""
        if not len(numbers):
            return cls()
        mean = float(numbers.mean())
        return cls(len(numbers), mean, float(np.square(numbers - mean).sum()))

    @property
    def frozen(self) -> bool:
        return self.count >= ENOUGH

    @property
    def std(self) -> float:
        """0 where all values are the same but for rounding."""
        found = math.sqrt(self.m2 / self.count) if self.count else 0.0
        return found if found > NEGLIGIBLE * abs(self.mean) else 0.0

    def apply(self, numbers: Matrix) -> Matrix:
        std = self.std
        return np.clip((numbers - self.mean) / (2 * std), -CLIP, CLIP) if std else np.zeros_like(numbers)

    def apply_one(self, number: float) -> float:
        std = self.std
        return min(max((number - self.mean) / (2 * std), -CLIP), CLIP) if std else 0.0

    def observe(self, numbers: Iterable[float]) -> None:
        """One after another until there were enough."""
        for number in numbers:
            if self.frozen:
                return
            self.count += 1
            delta = number - self.mean
            self.mean += delta / self.count
            self.m2 += delta * (number - self.mean)

    def describe(self) -> str:
        state = "frozen" if self.frozen else f"running, {self.count} value{'' if self.count == 1 else 's'}"
        return f"mean {self.mean:.4g}, deviation {self.std:.4g} ({state})"

    def to_json(self) -> dict[str, Any]:
        return {"count": self.count, "mean": self.mean, "m2": self.m2}

    @classmethod
    def from_json(cls, saved: Any) -> "RunningScale":
        count, mean, m2 = (
            saved_entry(saved, "count", int),
            saved_entry(saved, "mean", float),
            saved_entry(saved, "m2", float),
        )
        if count < 0 or m2 < 0 or abs(mean) > LARGEST:
            raise StateError(f"saved features: expected a count, mean and squares, got {count}, {mean:g} and {m2:g}")
        return cls(count, mean, m2)


def number_of(value: Value, name: str, row: int | None = None) -> float | None:
    """A number or boolean, also one written as text, as a float; None where it is missing."""
    if value is None or value != value:
        return None
    if isinstance(value, int | float) and -LARGEST <= value <= LARGEST:
        return float(value)
    if isinstance(value, str) and is_missing(value):
        return None
    number = number_in(value) if isinstance(value, str) else None
    if number is not None and abs(number) <= LARGEST:
        return number
    raise refusal(name, "a number", value, row, advice_for(value) if isinstance(value, str) else "")


def numbers_of(values: Sequence[Value], name: str) -> Matrix:
    """(n,) with NaN for missing ones."""
    found = [number_of(value, name, row) for row, value in enumerate(values)]
    return np.array([math.nan if number is None else number for number in found], dtype=np.float64)


class NumberEncoder:
    """One column scaled, and one that is 1 where the number is missing, if some were at the fit."""

    def __init__(self, name: str, kind: Number, scale: RangeScale | RunningScale, missing: bool) -> None:
        self.name, self.kind, self.scale, self.missing = name, kind, scale, missing
        self.width = 1 + missing
        self.labels = (name, f"{name} missing")[: self.width]
        self.levels = None

    @classmethod
    def fit(cls, name: str, kind: Number, values: Sequence[Value]) -> "NumberEncoder":
        numbers = numbers_of(values, name)
        unseen = np.isnan(numbers)
        return cls(name, kind, scale_of(kind) or RunningScale.fit(numbers[~unseen]), bool(unseen.any()))

    @property
    def settled(self) -> bool:
        return self.scale.frozen

    def encode(self, values: Sequence[Value]) -> Matrix:
        numbers = numbers_of(values, self.name)
        unseen = np.isnan(numbers)
        out = np.zeros((len(numbers), self.width))
        out[:, 0] = np.where(unseen, self.scale.missing, self.scale.apply(np.where(unseen, 0.0, numbers)))
        if self.missing:
            out[:, 1] = unseen
        return out

    def write(self, value: Value, out: Matrix, row: int | None = None) -> None:
        number = number_of(value, self.name, row)
        if number is not None:
            out[0] = self.scale.apply_one(number)
            return
        out[0] = self.scale.missing
        if self.missing:
            out[1] = 1.0

    def observe(self, values: Iterable[Value]) -> None:
        if not self.scale.frozen:
            numbers = [number_of(value, self.name) for value in values]
            self.scale.observe(number for number in numbers if number is not None)

    def describe(self) -> str:
        return self.scale.describe()

    def to_json(self) -> dict[str, Any]:
        return described(self) | {"scale": self.scale.to_json(), "missing": self.missing}

    @classmethod
    def from_json(cls, name: str, kind: Number, saved: Any) -> "NumberEncoder":
        scale = scale_of(kind) or RunningScale.from_json(saved_entry(saved, "scale", dict))
        return cls(name, kind, scale, saved_entry(saved, "missing", bool))


def scale_of(kind: Number) -> RangeScale | None:
    """The declared range; None where a running scale takes its place."""
    return None if kind.low is None or kind.high is None else RangeScale(float(kind.low), float(kind.high))


class BooleanEncoder(Fixed):
    """1 for true, 0 for false, 0.5 where it is missing."""

    width, levels = 1, None

    def __init__(self, name: str, kind: Boolean) -> None:
        self.name, self.kind, self.labels = name, kind, (name,)

    @classmethod
    def fit(cls, name: str, kind: Boolean, values: Sequence[Value]) -> "BooleanEncoder":
        made = cls(name, kind)
        made.encode(values)  # refuses what is neither
        return made

    def encode(self, values: Sequence[Value]) -> Matrix:
        flags = [self._flag(value, row) for row, value in enumerate(values)]
        return np.array(flags, dtype=np.float64).reshape(-1, 1)

    def write(self, value: Value, out: Matrix, row: int | None = None) -> None:
        out[0] = self._flag(value, row)

    def _flag(self, value: Value, row: int | None) -> float:
        if value is None:
            return 0.5
        if isinstance(value, int | float) and (value == 0 or value == 1):
            return float(value)
        raise refusal(self.name, "true or false (or 1 and 0)", value, row)

    def describe(self) -> str:
        return "1 true, 0 false, 0.5 missing"

    def to_json(self) -> dict[str, Any]:
        return described(self)
