"""Problems beyond the paper's assumptions: structured slates, drift, late feedback, turnover, many arms, long slates.

All but the drifting ones have the arms and mean rewards of `clusters`: regrets of one seed can be compared with it.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from neuclust.environments.dealing import Arms, Delivery, Recorded
from neuclust.environments.problem import ProblemSpec
from neuclust.environments.slates import SlateEnvironment
from neuclust.environments.structured import Cascade, DiminishingReturns, RewardOf
from neuclust.environments.synthetic import FLOOR, OFFERED, SPAN, clustered, some_offered, true_clusters, unit_vectors
from neuclust.errors import ConfigError
from neuclust.randomness import stream

DIM, CLUSTERS, ARMS, MANY_ARMS = 20, 20, 5000, 100_000
STEEPNESS, LEVEL = 10.0, 3.0  # μ rises from 0.09 at x·θ = 0 to 0.9 at about 0.58, the best of 500 arms
Tastes = Callable[[int], Tensor]  # θ of round t, (d,), of length 1
TastesOf = Callable[[Tensor, Tensor, int], Tastes]  # of two orthogonal unit vectors and the horizon
ALIVE = 1000  # arms that can be offered at a time where they come and go
LATE, DELAY = 0.5, 50
LOST, UNSEEN = 0.2, 0.3
LONG_SLATE = 20


def structured_slates(
    reward_of: RewardOf, name: str, spec: ProblemSpec | None = None, **fields: Any
) -> SlateEnvironment:
    """The arms of `clusters` under a slate reward that is not a count of rewarded arms."""
    spec = some_offered(spec, fields)
    if spec.reward is not None:
        raise ConfigError(f"{name}: expected no slate reward but its own, got {spec.reward.name}")
    return clustered(name, spec, pays=reward_of(spec.slate_size))


coverage = partial(structured_slates, partial(DiminishingReturns, discount=0.0), "coverage")
redundancy = partial(structured_slates, partial(DiminishingReturns, discount=0.5), "redundancy")
cascade = partial(structured_slates, partial(Cascade, patience=0.7), "cascade")


def delivered(
    name: str, delivery_of: Callable[[int], Delivery], spec: ProblemSpec | None = None, **fields: Any
) -> SlateEnvironment:
    """`clusters` with feedback that comes late, never or in part."""
    spec = some_offered(spec, fields)
    return clustered(name, spec, delivery=delivery_of(spec.seed))


delayed = partial(delivered, "delayed", partial(Delivery, late=LATE, delay=DELAY))
missing = partial(delivered, "missing", partial(Delivery, lost=LOST, unseen=UNSEEN))


@dataclass(frozen=True, slots=True)
class Switch:
    """θ = `first` up to round `last`, `then` afterwards."""

    first: Tensor
    then: Tensor
    last: int

    def __call__(self, t: int) -> Tensor:
        return self.first if t <= self.last else self.then


@dataclass(frozen=True, slots=True)
class Turn:
    """θ turns from `first` to `then` ⊥ `first`, by a right angle, over `horizon` rounds."""

    first: Tensor
    then: Tensor
    horizon: int

    def __call__(self, t: int) -> Tensor:
        turned = torch.tensor(math.pi / 2 * (t - 1) / max(1, self.horizon - 1), dtype=torch.float64)
        return torch.cos(turned) * self.first + torch.sin(turned) * self.then


@dataclass(frozen=True, slots=True)
class DriftingRounds:
    """Round t offers `offered` of N arms at random; μ = 0.05 + 0.9 / (1 + exp(3 − 10 x·θ_t))."""

    profiles: Tensor  # (N, d)
    tastes: Tastes
    offered: int
    seed: int

    def __call__(self, t: int) -> tuple[Tensor, Tensor]:
        rows = random_rows(np.arange(len(self.profiles)), self.offered, self.seed, t)
        liking = self.profiles[rows] @ self.tastes(t)
        return rows, FLOOR + SPAN * torch.sigmoid(STEEPNESS * liking - LEVEL)


@dataclass(frozen=True, slots=True)
class Lifetimes:
    """Arm i can be offered in rounds born[i] ≤ t < gone[i]; round t offers `offered` of these, at most all."""

    means: Tensor  # (N,)
    born: NDArray[np.int64]
    gone: NDArray[np.int64]
    offered: int
    seed: int

    def __call__(self, t: int) -> tuple[Tensor, Tensor]:
        alive = np.flatnonzero((self.born <= t) & (t < self.gone))
        rows = random_rows(alive, self.offered, self.seed, t)
        return rows, self.means[rows]


def random_rows(pool: NDArray[np.int64], size: int, seed: int, t: int) -> Tensor:
    """At most `size` of the pool, ascending."""
    if size >= len(pool):
        return torch.from_numpy(pool)
    drawn = stream(seed, "offer", t).choice(pool, size, replace=False, shuffle=False)
    return torch.from_numpy(np.sort(drawn))


def lifetimes(n: int, alive: int, horizon: int, seed: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Births and ends of n arms, about `alive` per round: births evenly from a lifetime before round 1 to the last."""
    life = max(1, round(alive * horizon / max(1, n - alive)))
    starts = np.linspace(1 - life, horizon, n)
    born = stream(seed, "lifetimes").permutation(np.ceil(starts).astype(np.int64))
    return born, born + life


def drifting(name: str, tastes_of: TastesOf, spec: ProblemSpec | None = None, **fields: Any) -> SlateEnvironment:
    """Unit vectors liked by μ = 0.05 + 0.9 / (1 + exp(3 − 10 x·θ_t)), θ_t hidden and moving."""
    spec = some_offered(spec, fields)
    arms = Arms.numbered(unit_vectors(ARMS, DIM, stream(0, "sphere arms")))
    frame = torch.from_numpy(np.linalg.qr(stream(spec.seed, "drift truth").standard_normal((DIM, 2)))[0])
    tastes = tastes_of(frame[:, 0].contiguous(), frame[:, 1].contiguous(), spec.horizon)
    rounds = DriftingRounds(arms.profiles, tastes, spec.arms_per_round or ARMS, spec.seed)
    return SlateEnvironment(name, arms, Recorded(rounds), spec)


drift_none = partial(drifting, "drift-none", Switch)  # after the horizon: never
drift_abrupt = partial(drifting, "drift-abrupt", lambda first, then, horizon: Switch(first, then, max(1, horizon // 2)))
drift_slow = partial(drifting, "drift-slow", Turn)


def turnover(spec: ProblemSpec | None = None, **fields: Any) -> SlateEnvironment:
    """The arms of `clusters`, about 1,000 of them at a time: new ones appear, old ones leave for good."""
    spec = some_offered(spec, fields)
    arms, means = true_clusters((ARMS, DIM, CLUSTERS), spec.seed)
    born, gone = lifetimes(ARMS, ALIVE, spec.horizon, spec.seed)
    rounds = Lifetimes(means, born, gone, spec.arms_per_round or ARMS, spec.seed)
    return SlateEnvironment("turnover", arms, Recorded(rounds), spec)


def many_arms(spec: ProblemSpec | None = None, **fields: Any) -> SlateEnvironment:
    """`clusters` with 100,000 arms, all offered in every round by default."""
    return clustered("many-arms", ProblemSpec.of(spec, fields), (MANY_ARMS, DIM, CLUSTERS))


def long_slate(spec: ProblemSpec | None = None, **fields: Any) -> SlateEnvironment:
    """`clusters` with slates of 20: no cluster offers so many good arms, the best slate is in several."""
    return clustered("long-slate", ProblemSpec.of(spec, fields, slate_size=LONG_SLATE, arms_per_round=OFFERED))
