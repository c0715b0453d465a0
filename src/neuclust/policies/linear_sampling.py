"""Linear Thompson sampling (Agrawal, Goyal, ICML 2013; combinatorial: Wen et al., ICML 2015), one draw a round."""

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
from neuclust.kernels.widths import definite_cholesky
from neuclust.models.encoder import Encoder, EncoderConfig, active_contexts, contexts_at
from neuclust.models.state import Shape, take, take_whole
from neuclust.models.watch import LearningWatch
from neuclust.persistence import save_policy
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
        check_entries(self)
        if not self.ridge > 0:
            raise ConfigError(f"ridge: expected a number above 0, got {self.ridge}")
        if not self.spread >= 0:
            raise ConfigError(f"spread: expected a number of at least 0, got {self.spread}")


class LinearTS:
    """S_t = top K of x_iᵀθ̃, θ̃ ~ N(θ̂, ν²V⁻¹), θ̂ = V⁻¹b; V += Σ_S xxᵀ, b += Σ_S r x.

    A slate's `bonuses` are ν√(xᵀV⁻¹x), the spread of a sample, not the draw.
    """

    name = "lin-ts"
    save = save_policy

    def __init__(self, config: LinearSamplingConfig, dim: int, slate_size: int, seed: int = 0) -> None:
        self.config, self.dim, self.slate_size, self.seed = config, dim, slate_size, seed
        self.encoder = Encoder(config.encoder, dim, even=False)
        self.watch = LearningWatch("the linear model")
        self._matrix = torch.eye(self.encoder.dim, dtype=torch.float64) * config.ridge  # V
        self._moment = torch.zeros(self.encoder.dim, dtype=torch.float64)  # b
        self._factor: Tensor | None = None  # L, V = LLᵀ, where it is known

    def select(self, round: Round) -> Slate:
        check_round(round, self.dim, self.slate_size)
        contexts = active_contexts(round)
        first, group = group_rows(contexts)  # equal contexts once, so that ties stay ties
        x, columns = self._encode(round, contexts[first])
        factor = definite_cholesky(self._matrix) if self._factor is None else self._factor
        sampled = (x @ self._draw(factor, round.t)[columns])[group]
        positions = top(sampled, tie_rank(round, self.config.tie, self.seed), self.slate_size)
        chosen = self._full(round, contexts[positions])
        means = chosen @ self._estimate(factor)
        half = torch.linalg.solve_triangular(factor, chosen.T, upper=False)
        return Slate(positions, means, self.config.spread * torch.linalg.vector_norm(half, dim=0))

    def update(self, round: Round, slate: Slate, feedback: Feedback) -> None:
        check_round(round, self.dim, self.slate_size)
        check_feedback(round, slate, feedback)
        x = self._full(round, contexts_at(round, slate.positions))
        seen = ~torch.isnan(feedback.arm_rewards)
        matrix = self._matrix + x[seen].T @ x[seen]
        self._factor = definite_cholesky(matrix)  # what the next select needs; nothing is learned where it is refused
        self._matrix = matrix
        self._moment += x[seen].T @ feedback.arm_rewards[seen]
        self.encoder.settle(round)
        self.watch.see(feedback.arm_rewards)
        self.watch.speak()

    def _estimate(self, factor: Tensor) -> Tensor:
        """θ̂, (d,)."""
        return torch.cholesky_solve(self._moment.unsqueeze(1), factor)[:, 0]

    def _draw(self, factor: Tensor, t: int) -> Tensor:
        """θ̃ = θ̂ + ν L⁻ᵀε for V = LLᵀ, (d,)."""
        noise = torch.from_numpy(stream(self.seed, "lin-ts", t).standard_normal((len(factor), 1)))
        shift = torch.linalg.solve_triangular(factor.T, noise, upper=True)[:, 0]
        drawn: Tensor = self._estimate(factor) + self.config.spread * shift
        return drawn

    def _encode(self, round: Round, contexts: Tensor) -> tuple[Tensor, Tensor]:
        return self.encoder.encode(contexts, round.active, self.encoder.scale_of(round))

    def _full(self, round: Round, contexts: Tensor) -> Tensor:
        return self.encoder.full(contexts, round.active, self.encoder.scale_of(round))

    @staticmethod
    def saved_shapes(config: LinearSamplingConfig, dim: int, slate_size: int) -> Iterator[tuple[str, Shape]]:  # noqa: ARG004
        """What a save holds at least."""
        size = Encoder(config.encoder, dim, even=False).dim
        yield "matrix", (size, size)

    def state_dict(self) -> dict[str, Tensor]:
        scalars = {"seed": torch.tensor(self.seed), "rho": self.encoder.saved_rho()}
        return {**scalars, "matrix": self._matrix.clone(), "moment": self._moment.clone()}

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        self._matrix, self._moment = take(state, "matrix", self._matrix), take(state, "moment", self._moment)
        self._factor = definite_cholesky(self._matrix)
        self.encoder.load_rho(state)
        self.seed = take_whole(state, "seed")
