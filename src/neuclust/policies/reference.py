"""Yardsticks: uniform at random, and the oracle that knows every mean."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from neuclust.core import Feedback, Round, Slate, check_feedback, check_round
from neuclust.kernels.ranking import top
from neuclust.parts.ties import tie_rank
from neuclust.persistence import save_policy
from neuclust.randomness import stream


@dataclass(frozen=True, slots=True)
class ReferenceConfig:
    """Nothing to configure."""


class Uniform:
    """K of n arms, every slate equally likely."""

    name = "uniform"
    save = save_policy

    def __init__(self, config: ReferenceConfig, dim: int, slate_size: int, seed: int = 0) -> None:
        self.config, self.dim, self.slate_size, self.seed = config, dim, slate_size, seed

    def select(self, round: Round) -> Slate:
        check_round(round, self.dim, self.slate_size)
        n, k = len(round.arm_ids), self.slate_size
        chosen = stream(self.seed, "uniform", round.t).choice(n, size=k, replace=False)
        zeros = torch.zeros(k, dtype=torch.float64)
        return Slate(torch.from_numpy(chosen), zeros, zeros, probabilities=torch.full_like(zeros, 1 / n))

    def update(self, round: Round, slate: Slate, feedback: Feedback) -> None:
        check_round(round, self.dim, self.slate_size)
        check_feedback(round, slate, feedback)

    def state_dict(self) -> dict[str, Tensor]:
        return {"seed": torch.tensor(self.seed)}

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        self.seed = int(state["seed"])

    def diagnostics(self) -> dict[str, Any]:
        """Nothing is learned."""
        return {}


class Oracle:
    """The K arms with the largest true means: the optimum for any symmetric, monotone slate reward."""

    name = "oracle"
    save = save_policy

    def __init__(
        self, config: ReferenceConfig, dim: int, slate_size: int, seed: int = 0, *, means: Callable[[Round], Tensor]
    ) -> None:
        self.config, self.dim, self.slate_size, self.seed = config, dim, slate_size, seed
        self._means = means

    def select(self, round: Round) -> Slate:
        check_round(round, self.dim, self.slate_size)
        means = self._means(round)
        positions = top(means, tie_rank(round, "id", self.seed), self.slate_size)
        return Slate(positions, means[positions], torch.zeros_like(means[positions]))

    def update(self, round: Round, slate: Slate, feedback: Feedback) -> None:
        check_round(round, self.dim, self.slate_size)
        check_feedback(round, slate, feedback)

    def state_dict(self) -> dict[str, Tensor]:
        return {"seed": torch.tensor(self.seed)}

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        self.seed = int(state["seed"])

    def diagnostics(self) -> dict[str, Any]:
        """Nothing is learned."""
        return {}
