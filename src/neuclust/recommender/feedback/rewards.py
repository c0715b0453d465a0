"""What a slate is worth, from the values of its items: their sum, whether enough were rewarded, or a function.

Values (k,) are in the user's units, within a declared range [low, high]; NaN is an item nobody saw. An item nobody
named counts 0, or the end of the range next to 0. What a policy learns lies in [0, 1], and is NaN where it is unknown.
"""

import math
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from numbers import Real
from typing import Any, ClassVar, Protocol

import numpy as np
import numpy.typing as npt

from neuclust.core import LARGEST
from neuclust.errors import ConfigError, DataError, StateError, brief

Values = npt.NDArray[np.float64]
SlateFunction = Callable[[list[float]], float]

ROUNDING = 1e-9  # of the range, by which a sum may leave it
FUNCTION = "function"  # the name under which any function is saved
_THRESHOLD = re.compile(r"threshold:([01]?\.?[0-9]{1,12})")


def scaled(values: Values, low: float, high: float) -> Values:
    """(values − low) / (high − low), within [0, 1]; NaN stays."""
    share: Values = (values - low) / (high - low)
    return np.minimum(np.maximum(share, 0.0), 1.0)


def stated(values: Iterable[float], low: float, high: float) -> list[float]:
    """Values on [0, 1] in the units in which they came, the way back from `scaled`; differences with `low` 0."""
    return [low + (high - low) * value for value in values]


def nothing(low: float, high: float) -> float:
    """What an item counts that nobody named: 0, or the end of the range next to it."""
    return min(max(0.0, low), high)


class SlateValue(Protocol):
    """What a slate is worth to a policy.

    `needs_function`: the value is a function of the user's, which no save can hold and a load has to be given again.
    """

    @property
    def name(self) -> str: ...

    @property
    def needs_function(self) -> bool: ...

    def value(self, values: Values, low: float = 0.0, high: float = 1.0) -> float:
        """The slate's value on the scale of the policy, from items' values (k,); NaN where it is unknown."""

    def bounds(self, size: int, low: float, high: float) -> tuple[float, float]:
        """The range of the value of a slate of `size` items as a user states it."""

    def normalised(self, stated: float, size: int, low: float, high: float) -> float:
        """A value as a user states it on the scale of the policy."""

    def restated(self, value: float, size: int, low: float, high: float) -> float:
        """A value on the scale of the policy as a user states it: the way back from `normalised`."""


@dataclass(frozen=True, slots=True)
class Total:
    """The sum of the items' values; a policy learns the mean of the scaled values, which is the sum per slot."""

    name: ClassVar[str] = "sum"
    needs_function: ClassVar[bool] = False

    def value(self, values: Values, low: float = 0.0, high: float = 1.0) -> float:
        return float(scaled(values, low, high).sum()) / len(values) if len(values) else math.nan

    def bounds(self, size: int, low: float, high: float) -> tuple[float, float]:
        return size * low, size * high

    def normalised(self, stated: float, size: int, low: float, high: float) -> float:
        return min(max((stated / size - low) / (high - low), 0.0), 1.0) if size else math.nan

    def restated(self, value: float, size: int, low: float, high: float) -> float:
        return size * (low + (high - low) * value)


@dataclass(frozen=True, slots=True)
class Threshold:
    """1 where at least max(1, ⌈share · k⌉) of the k items are worth more than an item nobody named, else 0.

    It is unknown only where the items nobody saw could decide it.
    """

    name: str
    share: Fraction  # exact, so that ⌈0.1 · 30⌉ is 3
    needs_function: ClassVar[bool] = False

    def value(self, values: Values, low: float = 0.0, high: float = 1.0) -> float:
        if not len(values):
            return math.nan
        needed = max(1, math.ceil(self.share * len(values)))
        rewarded, unseen = int((values > nothing(low, high)).sum()), int(np.isnan(values).sum())
        if rewarded >= needed:
            return 1.0
        return 0.0 if rewarded + unseen < needed else math.nan

    def bounds(self, size: int, low: float, high: float) -> tuple[float, float]:  # noqa: ARG002
        return 0.0, 1.0

    def normalised(self, stated: float, size: int, low: float, high: float) -> float:  # noqa: ARG002
        return stated if size else math.nan

    def restated(self, value: float, size: int, low: float, high: float) -> float:  # noqa: ARG002
        return value


@dataclass(frozen=True, slots=True)
class OwnValue:
    """A function of the list of the items' values in the user's units; its result is what a policy learns.

    It is called where every item was seen; the other slate values lie in [0, 1], which is what policies expect.
    """

    function: SlateFunction
    name: ClassVar[str] = FUNCTION
    needs_function: ClassVar[bool] = True

    def value(self, values: Values, low: float = 0.0, high: float = 1.0) -> float:  # noqa: ARG002
        if not len(values) or np.isnan(values).any():
            return math.nan
        asked = f"reward: expected the function to give one number for {_few(values)}"
        try:
            result: Any = self.function(values.tolist())
            number = float(result) if isinstance(result, Real | np.bool_) else math.nan
        except Exception as error:
            raise DataError(f"{asked}, got {brief(error)}; mend the function") from error
        if not abs(number) <= LARGEST:
            got = number if isinstance(result, Real) else f"a {type(result).__name__}"
            raise DataError(f"{asked}, finite and at most {LARGEST:g}, got {got}; mend the function")
        return number

    def bounds(self, size: int, low: float, high: float) -> tuple[float, float]:  # noqa: ARG002
        return -LARGEST, LARGEST

    def normalised(self, stated: float, size: int, low: float, high: float) -> float:  # noqa: ARG002
        return stated if size else math.nan

    def restated(self, value: float, size: int, low: float, high: float) -> float:  # noqa: ARG002
        return value


def _few(values: Values, most: int = 10) -> str:
    return str(values[:most].tolist()) + (f" and {len(values) - most} more" if len(values) > most else "")


def slate_value(spec: object) -> SlateValue:
    """`sum`, `any`, `threshold:0.8` (a share above 0, at most 1) or a function of the list of an item's values."""
    if isinstance(spec, Total | Threshold | OwnValue):
        return spec
    if callable(spec):
        return OwnValue(spec)
    if isinstance(spec, str) and spec == "sum":
        return Total()
    if isinstance(spec, str) and spec == "any":
        return Threshold("any", Fraction(0))
    if isinstance(spec, str) and spec == FUNCTION:
        raise StateError("reward: expected the function that was used before the save, got none; give it again")
    found = _THRESHOLD.fullmatch(spec) if isinstance(spec, str) else None
    share = Fraction(found[1]) if found else Fraction(0)
    if found and 0 < share <= 1:
        return Threshold(str(spec), share)
    expected = "expected sum, any, threshold:SHARE with a share above 0 and at most 1, or a function of the values"
    raise ConfigError(f"{expected}, got {brief(spec)}; threshold:0.8 asks for four of five items", field="reward")
