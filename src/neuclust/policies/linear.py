"""Shared K-LinUCB (C2UCB; Qin, Chen, Zhu, SDM 2014): one linear model for all arms, top K by optimism."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

import torch
from torch import Tensor

from neuclust.configuration import AT_LEAST_ONE, NON_NEGATIVE, POSITIVE, check_ranges
from neuclust.core import Feedback, Round, Slate, check_round
from neuclust.kernels.widths import add_products_, refactored, woodbury_
from neuclust.models.contexts import distinct, encoded_at
from neuclust.models.encoder import Encoder, EncoderConfig
from neuclust.models.state import Shape
from neuclust.models.watch import LearningWatch
from neuclust.persistence import save_policy
from neuclust.policies.wiring import check_update, load_saved_state, saved_state
from neuclust.slates.ties import tie_rank, top_slate


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
        check_ranges(self, alpha=NON_NEGATIVE, ridge=POSITIVE, refresh=AT_LEAST_ONE)


class SharedLinUCB:
    """u_i = θ̂ᵀx_i + α √(x_iᵀ V⁻¹ x_i), θ̂ = V⁻¹ b; V += Σ_S xxᵀ, b += Σ_S r x."""

    name = "linucb"
    save = save_policy
    saved = ("matrix", "inverse", "moment", "rho", "updates")

    def __init__(self, config: LinearConfig, dim: int, slate_size: int, seed: int = 0) -> None:
        self.config, self.dim, self.slate_size, self.seed = config, dim, slate_size, seed
        self.encoder = Encoder(config.encoder, dim, even=False)
        self.watch = LearningWatch("the linear model")
        size = self.encoder.dim + config.bias
        self.matrix = torch.eye(size, dtype=torch.float64) * config.ridge  # V
        self.inverse = torch.eye(size, dtype=torch.float64) / config.ridge
        self.moment = torch.zeros(size, dtype=torch.float64)  # b
        self.updates = 0

    def select(self, round: Round) -> Slate:
        check_round(round, self.dim, self.slate_size)
        *encoded, group = distinct(self.encoder, round)
        x, columns = self._with_constant(*encoded)
        theta = (self.inverse @ self.moment)[columns]
        squares = ((x @ self.inverse[columns[:, None], columns]) * x).sum(1)
        means, bonuses = (x @ theta)[group], self.config.alpha * squares.clamp(min=0).sqrt()[group]
        return top_slate(means, bonuses, tie_rank(round, self.config.tie, self.seed), self.slate_size)

    def update(self, round: Round, slate: Slate, feedback: Feedback) -> None:
        check_update(self, round, slate, feedback)
        x, columns = self._with_constant(*encoded_at(self.encoder, round, slate.positions))
        seen = ~torch.isnan(feedback.arm_rewards)
        if bool(seen.any()):
            self._learn(x[seen], columns, feedback.arm_rewards[seen])
        self.encoder.settle(round)
        self.updates += 1
        self.watch.see(feedback.arm_rewards)
        self.watch.speak()

    def _learn(self, x: Tensor, columns: Tensor, rewards: Tensor) -> None:
        due = (self.updates + 1) % self.config.refresh == 0
        if due or woodbury_(self.inverse, columns, x) is None:  # all or nothing: this may be refused
            self.matrix, self.inverse, _ = refactored(self.matrix, columns, x)
        else:
            add_products_(self.matrix, columns, x)
        self.moment[columns] += x.T @ rewards

    def _with_constant(self, x: Tensor, columns: Tensor) -> tuple[Tensor, Tensor]:
        if self.config.bias:
            x = torch.cat([x, x.new_ones(len(x), 1)], 1)
            columns = torch.cat([columns, columns.new_tensor([self.encoder.dim])])
        return x, columns

    @staticmethod
    def saved_shapes(config: LinearConfig, dim: int, slate_size: int) -> Iterator[tuple[str, Shape]]:  # noqa: ARG004
        """What a save holds at least."""
        size = Encoder(config.encoder, dim, even=False).dim + config.bias
        yield "matrix", (size, size)

    state_dict, load_state_dict = saved_state, load_saved_state
