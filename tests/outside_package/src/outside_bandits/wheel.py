"""An environment with the required members alone."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from neuclust.core import Feedback, Round, Slate
from neuclust.environments.problem import ProblemSpec
from neuclust.randomness import stream

ARMS = 30


class Wheel:
    """Arms on a circle; a slate pays the mean of its arms, the best ones lie at a hidden angle."""

    name = "wheel"
    dim = 2

    def __init__(self, spec: ProblemSpec) -> None:
        self.slate_size, self.horizon, self.seed = spec.slate_size, spec.horizon, spec.seed
        angles = torch.arange(ARMS, dtype=torch.float64) * (2 * math.pi / ARMS)
        self._profiles = torch.stack([angles.cos(), angles.sin()], 1)
        hidden = 2 * math.pi * stream(spec.seed, "wheel").random()
        self._means = 0.5 + 0.4 * (angles - hidden).cos()

    def round(self, t: int) -> Round:
        return Round(t, torch.arange(ARMS), self._profiles, None, self.slate_size)

    def play(self, round: Round, slate: Slate) -> Feedback:
        coins = torch.from_numpy(stream(self.seed, "wheel coins", round.t).random(ARMS))
        rewards = (coins < self._means)[slate.positions].to(torch.float64)
        return Feedback(rewards, rewards.mean())

    def expected_reward(self, round: Round, slate: Slate) -> float:
        return float(self._means[slate.positions].mean())

    def best_expected_reward(self, round: Round) -> float:
        return float(self._best().mean())

    def _best(self) -> Tensor:
        return torch.topk(self._means, self.slate_size).values
