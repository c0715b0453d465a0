"""Disjoint and hybrid LinUCB (Li, Chu, Langford, Schapire, WWW 2010): a linear model for every arm, top K."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

import torch
from torch import Tensor

from neuclust.configuration import NON_NEGATIVE, POSITIVE, check_ranges
from neuclust.core import Feedback, Round, Slate, check_round
from neuclust.errors import DataError
from neuclust.kernels.widths import definite_cholesky
from neuclust.models.armwise import LONGEST, ArmwiseRidge
from neuclust.models.contexts import distinct, full_at
from neuclust.models.encoder import Encoder, EncoderConfig
from neuclust.models.state import Shape
from neuclust.models.watch import LearningWatch
from neuclust.persistence import save_policy
from neuclust.policies.wiring import check_update, load_saved_state, saved_state
from neuclust.slates.ties import tie_rank, top_slate


@dataclass(frozen=True, slots=True)
class ArmwiseLinearConfig:
    """A_i = ridge·I at the start; alpha multiplies the width; `shared` adds one β for all arms (hybrid)."""

    encoder: EncoderConfig = field(default_factory=lambda: EncoderConfig("raw"))
    shared: bool = False
    alpha: float = 1.0
    ridge: float = 1.0
    tie: Literal["id", "random"] = "id"

    def __post_init__(self) -> None:
        check_ranges(self, alpha=NON_NEGATIVE, ridge=POSITIVE)


class ArmwiseLinUCB:
    """u_i = mean + α√s of every arm's own model; S_t = top K.

    Disjoint: mean = xᵀθ_i, s = xᵀA_i⁻¹x, A_i = I + X_iᵀX_i, θ_i = A_i⁻¹X_iᵀr_i; never played: 0 and ‖x‖².
    Hybrid with the context as the shared feature: with y = A_i⁻¹x, the published update collapses to
    A_0 = I + Σ BᵀB, β = A_0⁻¹ Σ_i θ_i (models/armwise.py), mean = yᵀβ + xᵀθ_i and s = yᵀA_0⁻¹y + xᵀy.
    A ridge λ is the context divided by √λ.
    """

    name = "linucb-disjoint"
    save = save_policy
    saved = ("own", "shared", "rho", "seed")

    def __init__(self, config: ArmwiseLinearConfig, dim: int, slate_size: int, seed: int = 0) -> None:
        self.config, self.dim, self.slate_size, self.seed = config, dim, slate_size, seed
        self.encoder = Encoder(config.encoder, dim, even=False)
        self.watch = LearningWatch("the linear model")
        self.own = ArmwiseRidge(self.encoder.dim)
        self.shared = torch.eye(self.encoder.dim, dtype=torch.float64)  # A_0

    def select(self, round: Round) -> Slate:
        check_round(round, self.dim, self.slate_size)
        means, squares = self._beliefs(round)
        bonuses = self.config.alpha * squares.clamp(min=0).sqrt()
        return top_slate(means, bonuses, tie_rank(round, self.config.tie, self.seed), self.slate_size)

    def update(self, round: Round, slate: Slate, feedback: Feedback) -> None:
        check_update(self, round, slate, feedback)
        x = self._divided(full_at(self.encoder, round, slate.positions))
        arms = round.arm_ids[slate.positions].tolist()
        for arm, context, reward in zip(arms, x, feedback.arm_rewards.tolist(), strict=True):
            if not math.isnan(reward):  # not observed, not learned
                row = self.own.learn(arm, context, reward)
                self.shared += torch.outer(row, row)
        self.encoder.settle(round)
        self.watch.see(feedback.arm_rewards)
        self.watch.speak()

    def _beliefs(self, round: Round) -> tuple[Tensor, Tensor]:
        """Mean and s of every offered arm, (n,) each: as if never played, then those that were."""
        x, columns, group = distinct(self.encoder, round)
        x = self._divided(x)
        beta, inverse = self._shared_model()
        means = (x @ beta[columns])[group]
        squares = ((x * x).sum(1) + ((x @ inverse[columns[:, None], columns]) * x).sum(1))[group]
        positions, slots = self.own.played(round.arm_ids)
        if len(positions):
            x = self._divided(full_at(self.encoder, round, positions))
            y = self.own.solved(slots, x)
            means[positions] = y @ beta + (x * self.own.thetas(slots)).sum(1)
            squares[positions] = (x * y).sum(1) + ((y @ inverse) * y).sum(1)
        return means, squares

    def _shared_model(self) -> tuple[Tensor, Tensor]:
        """β (d,) and A_0⁻¹ (d, d); zeros where arms share nothing."""
        if not self.config.shared:
            return torch.zeros(self.encoder.dim, dtype=torch.float64), torch.zeros_like(self.shared)
        inverse = torch.cholesky_inverse(definite_cholesky(self.shared))
        return inverse @ self.own.theta_sum, inverse

    def _divided(self, x: Tensor) -> Tensor:
        """x/√λ (n, ·), refused where the ridge is too small beside contexts to be told from rounding."""
        x = x / math.sqrt(self.config.ridge)
        longest = float(torch.linalg.vector_norm(x, dim=1).max()) if len(x) else 0.0
        if not longest <= LONGEST:
            name = "linucb-hybrid" if self.config.shared else self.name
            raise DataError(
                f"{name}: expected contexts of length at most {LONGEST:g}·√ridge, got {longest:.3g}·√ridge; scale "
                "the features (encoder.kind=scale with encoder.rho=none does) or raise ridge"
            )
        return x

    @staticmethod
    def saved_shapes(config: ArmwiseLinearConfig, dim: int, slate_size: int) -> Iterator[tuple[str, Shape]]:  # noqa: ARG004
        """What a save holds at least."""
        size = Encoder(config.encoder, dim, even=False).dim
        yield "shared", (size, size)

    state_dict, load_state_dict = saved_state, load_saved_state
