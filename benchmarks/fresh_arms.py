"""A problem whose arms are all new in every round, of any number, with the same hidden truth.

Arms are unit vectors around twenty centres; three hidden spots are good, the nearer the better:
μ = 0.05 + 0.9 max_h height_h · exp(−‖x − s_h‖² / (2 · 0.45²)). A linear score finds one spot, not three.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from neuclust.core import Feedback, Round, Slate
from neuclust.environments.rewards import top_by_mean
from neuclust.environments.synthetic import CLUSTER_SPREAD, FLOOR, SPAN, unit_vectors
from neuclust.randomness import stream

CENTRES, CATALOGUE = 20, 2000
HEIGHTS, REACH = (1.0, 0.85, 0.7), 0.45
ROOM = 10_000_000  # arm ids a round may use, so that no id comes twice

Matrix = NDArray[np.float64]


@dataclass
class FreshArms:
    """Deals rounds of any number of new arms; `arm_ids` and `profiles` are a sample of arms that are never offered."""

    dim: int = 20
    slate_size: int = 5
    seed: int = 0
    counts: None = None
    centres: Matrix = field(init=False)
    spots: Matrix = field(init=False)
    arm_ids: Tensor = field(init=False)
    profiles: Tensor = field(init=False)

    def __post_init__(self) -> None:
        rng = stream(self.seed, "fresh truth")
        self.centres = unit_vectors(CENTRES, self.dim, rng)
        self.spots = self._around(self.centres[: len(HEIGHTS)], rng)
        self.arm_ids = torch.arange(CATALOGUE)
        self.profiles = self._arms(CATALOGUE, 0)

    def round(self, t: int, arms: int) -> Round:
        """Round t = 1, 2, ... with so many arms nobody has seen."""
        return Round(t, torch.arange(arms) + t * ROOM, self._arms(arms, t), None, self.slate_size)

    def means(self, round: Round) -> Tensor:
        """μ of every arm of the round, (n,)."""
        squares = torch.cdist(round.profiles, torch.from_numpy(self.spots)) ** 2
        hills = torch.tensor(HEIGHTS, dtype=torch.float64) * torch.exp(-squares / (2 * REACH**2))
        return FLOOR + SPAN * hills.max(1).values

    def play(self, round: Round, slate: Slate) -> Feedback:
        """One coin an arm, the same whoever plays it; the slate pays the mean."""
        coins = torch.from_numpy(stream(self.seed, "coins", round.t).random(len(round.arm_ids)))
        rewards = (coins < self.means(round)).to(torch.float64)[slate.positions]
        return Feedback(rewards, rewards.mean())

    def regret(self, round: Round, positions: Tensor) -> float:
        """Σ of the K largest μ − Σ_S μ."""
        means = self.means(round)
        return float(means[self._best(round, means)].sum() - means[positions].sum())

    def expected_reward(self, round: Round, slate: Slate) -> float:
        return float(self.means(round)[slate.positions].mean())

    def average_means(self) -> Tensor:
        """μ of the sample, (N,); no query changes it."""
        return self.means(Round(0, self.arm_ids, self.profiles, None, self.slate_size))

    def _best(self, round: Round, means: Tensor) -> Tensor:
        return top_by_mean(means, round.arm_ids, self.slate_size)

    def _arms(self, count: int, t: int) -> Tensor:
        rng = stream(self.seed, "fresh arms", t)
        return torch.from_numpy(self._around(self.centres[rng.integers(CENTRES, size=count)], rng))

    def _around(self, centres: Matrix, rng: np.random.Generator) -> Matrix:
        noise = rng.standard_normal(centres.shape) * (CLUSTER_SPREAD / np.sqrt(self.dim))
        rows = centres + noise
        scaled: Matrix = rows / np.linalg.norm(rows, axis=1, keepdims=True)
        return scaled
