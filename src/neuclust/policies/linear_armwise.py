"""Disjoint and hybrid LinUCB (Li, Chu, Langford, Schapire, WWW 2010): a linear model for every arm, top K."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

import torch
from torch import Tensor

from neuclust.configuration import check_entries
from neuclust.core import Feedback, Round, Slate, check_feedback, check_round
from neuclust.errors import ConfigError, DataError
from neuclust.kernels.ranking import top
from neuclust.kernels.regions import group_rows
from neuclust.kernels.widths import definite_cholesky
from neuclust.models.armwise import LONGEST, ArmwiseRidge
from neuclust.models.encoder import Encoder, EncoderConfig, active_contexts, contexts_at
from neuclust.models.state import Shape, nested, take, take_whole, under
from neuclust.models.watch import LearningWatch
from neuclust.persistence import save_policy
from neuclust.slates.ties import tie_rank


@dataclass(frozen=True, slots=True)
class ArmwiseLinearConfig:
    """A_i = ridge·I at the start; alpha multiplies the width; `shared` adds one β for all arms (hybrid)."""

    encoder: EncoderConfig = field(default_factory=lambda: EncoderConfig("raw"))
    shared: bool = False
    alpha: float = 1.0
    ridge: float = 1.0
    tie: Literal["id", "random"] = "id"

    def __post_init__(self) -> None:
        check_entries(self)
        if not self.ridge > 0:
            raise ConfigError(f"ridge: expected a number above 0, got {self.ridge}")
        if not self.alpha >= 0:
            raise ConfigError(f"alpha: expected a number of at least 0, got {self.alpha}")


class ArmwiseLinUCB:
    """u_i = mean + α√s of every arm's own model; S_t = top K.

    Disjoint: mean = xᵀθ_i, s = xᵀA_i⁻¹x, A_i = I + X_iᵀX_i, θ_i = A_i⁻¹X_iᵀr_i; never played: 0 and ‖x‖².
    Hybrid with the context as the shared feature: with y = A_i⁻¹x, the published update collapses to
    A_0 = I + Σ BᵀB, β = A_0⁻¹ Σ_i θ_i (models/armwise.py), mean = yᵀβ + xᵀθ_i and s = yᵀA_0⁻¹y + xᵀy.
    A ridge λ is the context divided by √λ.
    """

    name = "linucb-disjoint"
    save = save_policy

    def __init__(self, config: ArmwiseLinearConfig, dim: int, slate_size: int, seed: int = 0) -> None:
        self.config, self.dim, self.slate_size, self.seed = config, dim, slate_size, seed
        self.encoder = Encoder(config.encoder, dim, even=False)
        self.watch = LearningWatch("the linear model")
        self.own = ArmwiseRidge(self.encoder.dim)
        self._shared = torch.eye(self.encoder.dim, dtype=torch.float64)  # A_0

    def select(self, round: Round) -> Slate:
        check_round(round, self.dim, self.slate_size)
        means, squares = self._beliefs(round)
        bonuses = self.config.alpha * squares.clamp(min=0).sqrt()
        positions = top(means + bonuses, tie_rank(round, self.config.tie, self.seed), self.slate_size)
        return Slate(positions, means[positions], bonuses[positions])

    def update(self, round: Round, slate: Slate, feedback: Feedback) -> None:
        check_round(round, self.dim, self.slate_size)
        check_feedback(round, slate, feedback)
        x = self._full(round, contexts_at(round, slate.positions))
        arms = round.arm_ids[slate.positions].tolist()
        for arm, context, reward in zip(arms, x, feedback.arm_rewards.tolist(), strict=True):
            if not math.isnan(reward):  # not observed, not learned
                row = self.own.learn(arm, context, reward)
                self._shared += torch.outer(row, row)
        self.encoder.settle(round)
        self.watch.see(feedback.arm_rewards)
        self.watch.speak()

    def _beliefs(self, round: Round) -> tuple[Tensor, Tensor]:
        """Mean and s of every offered arm, (n,) each: as if never played, then those that were."""
        contexts = active_contexts(round)
        first, group = group_rows(contexts)  # equal contexts once, so that ties stay ties
        x, columns = self._encode(round, contexts[first])
        beta, inverse = self._shared_model()
        means = (x @ beta[columns])[group]
        squares = ((x * x).sum(1) + ((x @ inverse[columns[:, None], columns]) * x).sum(1))[group]
        positions, slots = self.own.played(round.arm_ids)
        if len(positions):
            x = self._full(round, contexts[positions])
            y = self.own.solved(slots, x)
            means[positions] = y @ beta + (x * self.own.thetas(slots)).sum(1)
            squares[positions] = (x * y).sum(1) + ((y @ inverse) * y).sum(1)
        return means, squares

    def _shared_model(self) -> tuple[Tensor, Tensor]:
        """β (d,) and A_0⁻¹ (d, d); zeros where arms share nothing."""
        if not self.config.shared:
            return torch.zeros(self.encoder.dim, dtype=torch.float64), torch.zeros_like(self._shared)
        inverse = torch.cholesky_inverse(definite_cholesky(self._shared))
        return inverse @ self.own.theta_sum, inverse

    def _encode(self, round: Round, contexts: Tensor) -> tuple[Tensor, Tensor]:
        x, columns = self.encoder.encode(contexts, round.active, self.encoder.scale_of(round))
        return self._bounded(x / math.sqrt(self.config.ridge)), columns

    def _full(self, round: Round, contexts: Tensor) -> Tensor:
        x = self.encoder.full(contexts, round.active, self.encoder.scale_of(round))
        return self._bounded(x / math.sqrt(self.config.ridge))

    def _bounded(self, x: Tensor) -> Tensor:
        """Contexts, refused where the ridge is too small beside them to be told from rounding."""
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

    def state_dict(self) -> dict[str, Tensor]:
        scalars = {"seed": torch.tensor(self.seed), "rho": self.encoder.saved_rho()}
        return {**scalars, "shared": self._shared.clone(), **nested("own", self.own.state_dict())}

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        self.own.load_state_dict(under("own", state))
        self._shared = take(state, "shared", self._shared)
        self.encoder.load_rho(state)
        self.seed = take_whole(state, "seed")
