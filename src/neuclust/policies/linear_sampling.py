"""Linear Thompson sampling (Agrawal, Goyal, ICML 2013; combinatorial: Wen et al., ICML 2015), one draw per round."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

import torch
from torch import Tensor

from neuclust.configuration import NON_NEGATIVE, POSITIVE, check_ranges
from neuclust.core import Feedback, Round, Slate, check_round
from neuclust.kernels.ranking import top
from neuclust.kernels.widths import definite_cholesky
from neuclust.models.contexts import distinct, full_at
from neuclust.models.encoder import Encoder, EncoderConfig
from neuclust.models.state import Shape
from neuclust.models.watch import LearningWatch
from neuclust.persistence import save_policy
from neuclust.policies.wiring import check_update, load_saved_state, saved_state
from neuclust.randomness import stream
from neuclust.slates.ties import tie_rank


@dataclass(frozen=True, slots=True)
class LinearSamplingConfig:
    """V_0 = ridge·I; `spread` is ν, the scale of the posterior."""

    encoder: EncoderConfig = field(default_factory=EncoderConfig)
    spread: float = 0.5
    ridge: float = 1.0
    tie: Literal["id", "random"] = "id"

    def __post_init__(self) -> None:
        check_ranges(self, spread=NON_NEGATIVE, ridge=POSITIVE)


class LinearTS:
    """S_t = top K of x_iᵀθ̃, θ̃ ~ N(θ̂, ν²V⁻¹), θ̂ = V⁻¹b; V += Σ_S xxᵀ, b += Σ_S r x.

    A slate's `bonuses` are ν√(xᵀV⁻¹x), the spread of a sample, not the draw.
    """

    name = "lin-ts"
    save = save_policy
    saved = ("matrix", "moment", "rho", "seed")

    def __init__(self, config: LinearSamplingConfig, dim: int, slate_size: int, seed: int = 0) -> None:
        self.config, self.dim, self.slate_size, self.seed = config, dim, slate_size, seed
        self.encoder = Encoder(config.encoder, dim, even=False)
        self.watch = LearningWatch("the linear model")
        self.matrix = torch.eye(self.encoder.dim, dtype=torch.float64) * config.ridge  # V
        self.moment = torch.zeros(self.encoder.dim, dtype=torch.float64)  # b
        self._factor: Tensor | None = None  # L, V = LLᵀ, where it is known

    def select(self, round: Round) -> Slate:
        check_round(round, self.dim, self.slate_size)
        x, columns, group = distinct(self.encoder, round)
        factor = definite_cholesky(self.matrix) if self._factor is None else self._factor
        sampled = (x @ self._draw(factor, round.t)[columns])[group]
        positions = top(sampled, tie_rank(round, self.config.tie, self.seed), self.slate_size)
        chosen = full_at(self.encoder, round, positions)
        means = chosen @ self._estimate(factor)
        half = torch.linalg.solve_triangular(factor, chosen.T, upper=False)
        return Slate(positions, means, self.config.spread * torch.linalg.vector_norm(half, dim=0))

    def update(self, round: Round, slate: Slate, feedback: Feedback) -> None:
        check_update(self, round, slate, feedback)
        x = full_at(self.encoder, round, slate.positions)
        seen = ~torch.isnan(feedback.arm_rewards)
        matrix = self.matrix + x[seen].T @ x[seen]
        self._factor = definite_cholesky(matrix)  # what the next select needs; nothing is learned where it is refused
        self.matrix = matrix
        self.moment += x[seen].T @ feedback.arm_rewards[seen]
        self.encoder.settle(round)
        self.watch.see(feedback.arm_rewards)
        self.watch.speak()

    def _estimate(self, factor: Tensor) -> Tensor:
        """θ̂, (d,)."""
        return torch.cholesky_solve(self.moment.unsqueeze(1), factor)[:, 0]

    def _draw(self, factor: Tensor, t: int) -> Tensor:
        """θ̃ = θ̂ + ν L⁻ᵀε for V = LLᵀ, (d,)."""
        noise = torch.from_numpy(stream(self.seed, "lin-ts", t).standard_normal((len(factor), 1)))
        shift = torch.linalg.solve_triangular(factor.T, noise, upper=True)[:, 0]
        drawn: Tensor = self._estimate(factor) + self.config.spread * shift
        return drawn

    @staticmethod
    def saved_shapes(config: LinearSamplingConfig, dim: int, slate_size: int) -> Iterator[tuple[str, Shape]]:  # noqa: ARG004
        """What a save holds at least."""
        size = Encoder(config.encoder, dim, even=False).dim
        yield "matrix", (size, size)

    state_dict = saved_state

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        load_saved_state(self, state)
        self._factor = definite_cholesky(self.matrix)
