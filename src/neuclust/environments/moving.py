"""Rounds that change as they go: tastes that drift, arms that come and go."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from neuclust.randomness import stream

STEEPNESS, LEVEL = 10.0, 3.0  # μ rises from 0.09 at x·θ = 0 to 0.9 at about 0.58, the best of 500 arms


Tastes = Callable[[int], Tensor]  # θ of round t, (d,), of length 1


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
    """Round t offers `offered` of N arms at random; μ = floor + span / (1 + exp(3 − 10 x·θ_t))."""

    profiles: Tensor  # (N, d)
    tastes: Tastes
    offered: int
    seed: int
    floor: float
    span: float

    def __call__(self, t: int) -> tuple[Tensor, Tensor]:
        rows = random_rows(np.arange(len(self.profiles)), self.offered, self.seed, t)
        liking = self.profiles[rows] @ self.tastes(t)
        return rows, self.floor + self.span * torch.sigmoid(STEEPNESS * liking - LEVEL)


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
