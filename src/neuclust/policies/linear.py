"""Shared K-LinUCB (C2UCB; Qin, Chen, Zhu, SDM 2014): one linear model for all arms, top K by optimism."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

import torch
from torch import Tensor

from neuclust.configuration import check_entries
from neuclust.core import Feedback, Round, Slate, check_feedback, check_round
from neuclust.errors import ConfigError
from neuclust.kernels.ranking import top
from neuclust.kernels.regions import group_rows
from neuclust.kernels.widths import add_products_, refactored, woodbury_
from neuclust.models.encoder import Encoder, EncoderConfig, active_contexts, contexts_at
from neuclust.models.state import Shape, take, take_count
from neuclust.models.watch import LearningWatch
from neuclust.persistence import save_policy
from neuclust.slates.ties import tie_rank


@dataclass(frozen=True, slots=True)
class LinearConfig:
    """V_0 = ridge·I; alpha multiplies the width; `bias` adds a constant feature."""

    encoder: EncoderConfig = field(default_factory=EncoderConfig)
    alpha: float = 1.0
    ridge: float = 1.0
    bias: bool = False
    refresh: int = 200
    tie: Literal["id", "random"] = "id"

    def __post_init__(self) -> None:
        check_entries(self)
        if not self.ridge > 0:
            raise ConfigError(f"ridge: expected a number above 0, got {self.ridge}")
        if not self.alpha >= 0 or self.refresh < 1:
            raise ConfigError(f"expected alpha >= 0 and refresh >= 1, got {self.alpha} and {self.refresh}")


class SharedLinUCB:
    """u_i = θ̂ᵀx_i + α √(x_iᵀ V⁻¹ x_i), θ̂ = V⁻¹ b; V += Σ_S xxᵀ, b += Σ_S r x."""

    name = "linucb"
    save = save_policy

    def __init__(self, config: LinearConfig, dim: int, slate_size: int, seed: int = 0) -> None:
        self.config, self.dim, self.slate_size, self.seed = config, dim, slate_size, seed
        self.encoder = Encoder(config.encoder, dim, even=False)
        self.watch = LearningWatch("the linear model")
        size = self.encoder.dim + config.bias
        self._matrix = torch.eye(size, dtype=torch.float64) * config.ridge  # V
        self._inverse = torch.eye(size, dtype=torch.float64) / config.ridge
        self._moment = torch.zeros(size, dtype=torch.float64)  # b
        self._updates = 0

    def select(self, round: Round) -> Slate:
        check_round(round, self.dim, self.slate_size)
        contexts = active_contexts(round)
        first, group = group_rows(contexts)  # equal contexts once, so that ties stay ties
        x, columns = self._encode(round, contexts[first])
        theta = (self._inverse @ self._moment)[columns]
        squares = ((x @ self._inverse[columns[:, None], columns]) * x).sum(1)
        means, bonuses = (x @ theta)[group], self.config.alpha * squares.clamp(min=0).sqrt()[group]
        positions = top(means + bonuses, tie_rank(round, self.config.tie, self.seed), self.slate_size)
        return Slate(positions, means[positions], bonuses[positions])

    def update(self, round: Round, slate: Slate, feedback: Feedback) -> None:
        check_round(round, self.dim, self.slate_size)
        check_feedback(round, slate, feedback)
        x, columns = self._encode(round, contexts_at(round, slate.positions))
        seen = ~torch.isnan(feedback.arm_rewards)
        if bool(seen.any()):
            self._learn(x[seen], columns, feedback.arm_rewards[seen])
        self.encoder.settle(round)
        self._updates += 1
        self.watch.see(feedback.arm_rewards)
        self.watch.speak()

    def _learn(self, x: Tensor, columns: Tensor, rewards: Tensor) -> None:
        due = (self._updates + 1) % self.config.refresh == 0
        if due or woodbury_(self._inverse, columns, x) is None:  # all or nothing: this may be refused
            self._matrix, self._inverse, _ = refactored(self._matrix, columns, x)
        else:
            add_products_(self._matrix, columns, x)
        self._moment[columns] += x.T @ rewards

    def _encode(self, round: Round, contexts: Tensor) -> tuple[Tensor, Tensor]:
        x, columns = self.encoder.encode(contexts, round.active, self.encoder.scale_of(round))
        if self.config.bias:
            x = torch.cat([x, x.new_ones(len(x), 1)], 1)
            columns = torch.cat([columns, columns.new_tensor([self.encoder.dim])])
        return x, columns

    @staticmethod
    def saved_shapes(config: LinearConfig, dim: int, slate_size: int) -> Iterator[tuple[str, Shape]]:  # noqa: ARG004
        """What a save holds at least."""
        size = Encoder(config.encoder, dim, even=False).dim + config.bias
        yield "matrix", (size, size)

    def state_dict(self) -> dict[str, Tensor]:
        return {
            "matrix": self._matrix.clone(),
            "inverse": self._inverse.clone(),
            "moment": self._moment.clone(),
            "rho": self.encoder.saved_rho(),
            "updates": torch.tensor(self._updates),
        }

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        self._matrix, self._inverse = take(state, "matrix", self._matrix), take(state, "inverse", self._inverse)
        self._moment = take(state, "moment", self._moment)
        self.encoder.load_rho(state)
        self._updates = take_count(state, "updates")
