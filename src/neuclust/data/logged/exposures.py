"""Logged exposures of single arms: who was shown what, with which probability, and what came back."""

from dataclasses import dataclass

import numpy as np

from neuclust.data.options import Codes, Floats, refuse_where
from neuclust.errors import DataError


@dataclass(frozen=True, slots=True)
class Exposures:
    """n slates of one arm each, drawn from a pool of eligible arms; contexts are `profiles[arm] * queries[query]`."""

    name: str
    logger: str  # the policy that chose
    features: tuple[str, ...]  # (d,)
    arm_ids: Codes  # (N,)
    profiles: Floats  # (N, d)
    queries: Floats  # (Q, d) distinct requests
    pools: tuple[Codes, ...]  # rows of `profiles`, ascending
    pool_names: tuple[str, ...]
    pool: Codes  # (n,) index of `pools`
    query: Codes  # (n,) row of `queries`
    arm: Codes  # (n,) row of `profiles`
    propensity: Floats  # (n,) of the arm shown
    reward: Floats  # (n,)
    time: Floats  # (n,) seconds since 1970
    line: Codes  # (n,) of the raw file
    uniform: bool  # every arm of a pool was equally likely
    user: Codes | None = None  # (n,) ids

    def __post_init__(self) -> None:
        n, d = len(self.arm), len(self.features)
        if self.profiles.shape != (len(self.arm_ids), d) or self.queries.shape[1:] != (d,):
            got = f"{self.profiles.shape} and {self.queries.shape}"
            raise DataError(f"exposures: expected profiles and queries of {d} features, got shapes {got}")
        for name in ("pool", "query", "propensity", "reward", "time", "line"):
            if getattr(self, name).shape != (n,):
                raise DataError(f"exposures: expected {n} entries of {name}, got {getattr(self, name).shape}")
        inside = (self.propensity > 0) & (self.propensity <= 1)
        refuse_where(~inside, "propensity", self.propensity, "a number above 0 and up to 1")

    def run(self, pool: int) -> str:
        """The run that the exposures of a pool belong to: a log keeps one catalogue for each."""
        name = f"{self.name}/{self.logger}"
        return name if len(self.pools) == 1 else f"{name}/{self.pool_names[pool]}"

    def __len__(self) -> int:
        return len(self.arm)

    @property
    def positions(self) -> Codes:
        """Where each arm stands in its pool, (n,)."""
        found = np.empty(len(self), np.int64)
        for index, pool in enumerate(self.pools):
            rows = np.flatnonzero(self.pool == index)
            found[rows] = np.searchsorted(pool, self.arm[rows])
        return found


@dataclass(frozen=True, slots=True)
class Pools:
    """Arms seen in each part of a log, taken for all that could have been drawn there."""

    names: tuple[str, ...]
    arms: tuple[Codes, ...]  # rows of arms, ascending
    of: Codes  # (n,) index of the pool of each row
    shown_per_arm: float  # exposures per arm of the smallest such ratio; few of them miss arms of the true pool
    dispersion: float  # of the numbers of exposures, 1 for uniform draws; NaN where every pool has one arm
    dispersion_sd: float  # of the dispersion of uniform draws, √(2/degrees of freedom)


def seen_pools(part: Codes, arm: Codes) -> Pools:
    """The pool of every distinct `part` (n,): the arms (n,) seen in it.

    dispersion = Σ_pools Σ_a (c_a − m)²/m / Σ_pools (|pool| − 1) with counts c_a and their mean m of the pool.
    """
    names, of = np.unique(part, return_inverse=True)
    arms, ratios, spread, degrees = [], [], 0.0, 0
    for index in range(int(of.max(initial=-1)) + 1):
        pool, counts = np.unique(arm[of == index], return_counts=True)
        mean = counts.mean()
        spread += float(((counts - mean) ** 2).sum() / mean)
        degrees += len(pool) - 1
        arms.append(pool.astype(np.int64))
        ratios.append(float(mean))
    dispersion = (spread / degrees, (2 / degrees) ** 0.5) if degrees else (float("nan"), float("nan"))
    return Pools(tuple(map(str, names.tolist())), tuple(arms), of.astype(np.int64), min(ratios), *dispersion)
