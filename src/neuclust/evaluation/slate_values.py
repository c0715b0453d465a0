"""What a slate is worth: the sum of its slots' rewards, any, at least c, a table of counts, or what was logged."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from neuclust.casting import real
from neuclust.errors import ConfigError, DataError
from neuclust.kernels.bernoulli import poisson_binomial

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]
FORMS = "sum, any, threshold:C, table:V0,V1,...,VK or slate"


@dataclass(frozen=True, slots=True)
class SlateValue:
    """R(S) from slot rewards in [low, high].

    - sum: Σ_j r_j, the only additive one;
    - count tables: `table[c]` for c rewarded slots (any: 0, 1, 1, …; threshold:C: 1 from C on), rewards of 0 and 1;
    - slate: the slate's own logged reward, in [low, high].
    """

    name: str
    slate_size: int
    low: float = 0.0  # of a slot's reward; of the slate's for `slate`
    high: float = 1.0
    table: tuple[float, ...] = ()

    @property
    def additive(self) -> bool:
        """Whether the value is the sum of the slots' rewards."""
        return self.name == "sum"

    @property
    def range(self) -> tuple[float, float]:
        """The smallest and largest possible value."""
        if self.table:
            return min(self.table), max(self.table)
        if self.additive:
            return min(0.0, self.slate_size * self.low), max(0.0, self.slate_size * self.high)
        return self.low, self.high

    def of(self, rewards: Floats, slate_rewards: Floats) -> Floats:
        """Values (n,) of slates with slot rewards (n, k), slots beyond a slate's end 0; NaN where unobserved."""
        if self.name == "slate":
            return slate_rewards
        sums: Floats = rewards.sum(1)
        if not self.table:
            return sums
        values = np.full(len(sums), math.nan)
        seen = ~np.isnan(sums)
        values[seen] = np.array(self.table)[np.rint(sums[seen]).astype(np.int64)]
        return values

    def expected(self, means: Floats) -> float:
        """E R(S) for independent slots with mean rewards (k,); the sum of the means where nothing else is known."""
        if not self.table:
            return float(means.sum())
        chances = poisson_binomial(real(np.clip(means, 0.0, 1.0), "means")).numpy()
        return float(chances @ np.array(self.table[: len(chances)]))

    def check(self, rewards: Floats, slate_rewards: Floats) -> None:
        """Refuse rewards outside the declared range, or other than 0 and 1 where they are counted."""
        seen = slate_rewards if self.name == "slate" else rewards
        seen = seen[~np.isnan(seen)]
        if self.table and not np.isin(seen, (0.0, 1.0)).all():
            got = f"got {seen.min():g} to {seen.max():g}; use sum, or slate for the logged reward"
            raise DataError(f"{self.name}: expected rewards of 0 and 1 to count, {got}", field="reward")
        if len(seen) and not (self.low <= seen.min() and seen.max() <= self.high):
            got = f"got {seen.min():g} to {seen.max():g}"
            said = f"expected rewards from {self.low:g} to {self.high:g}, {got}; declare their range, LOW:HIGH"
            raise DataError(said, field="reward_range")


def parse_slate_value(text: str, slate_size: int, low: float = 0.0, high: float = 1.0) -> SlateValue:
    """`sum`, `any`, `threshold:2`, `table:0,0.5,1` or `slate`."""
    name, _, rest = text.strip().partition(":")
    if name in ("sum", "slate") and not rest:
        return SlateValue(name, slate_size, low, high)
    if name == "any" and not rest:
        return SlateValue(text, slate_size, table=(0.0, *[1.0] * slate_size))
    try:
        if name == "threshold" and 1 <= int(rest) <= slate_size:
            return SlateValue(text, slate_size, table=tuple(float(c >= int(rest)) for c in range(slate_size + 1)))
        if name == "table":
            table = tuple(float(part) for part in rest.split(","))
            if len(table) == slate_size + 1 and all(map(math.isfinite, table)):
                return SlateValue(text, slate_size, table=table)
    except ValueError:
        pass
    said = f"expected {FORMS} for slates of {slate_size}, got {text!r:.100}"
    raise ConfigError(said, field="reward")
