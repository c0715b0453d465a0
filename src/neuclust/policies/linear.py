"""Linear bandits that play the top K: one model for all arms (C2UCB, Thompson sampling), or one for every arm.

Shared K-LinUCB is C2UCB (Qin, Chen, Zhu, SDM 2014). Linear Thompson sampling (Agrawal, Goyal, ICML 2013; combinatorial:
Wen et al., ICML 2015) makes one draw per round. Disjoint and hybrid LinUCB are Li, Chu, Langford, Schapire (WWW 2010).
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import torch
from torch import Tensor

from neuclust.configuration import AT_LEAST_ONE, NON_NEGATIVE, POSITIVE, checked
from neuclust.core import Feedback, Round, Slate
from neuclust.errors import DataError
from neuclust.kernels import jit
from neuclust.kernels.ranking import top
from neuclust.kernels.rows import Rows, linear_beliefs, sparse_rows
from neuclust.kernels.widths import add_products_, definite_cholesky, refactored, woodbury_
from neuclust.models.arm_scoring import MANY_ARMS, ProfileCache
from neuclust.models.armwise import LONGEST, ArmwiseRidge
from neuclust.models.crossed import CrossedRounds, crossed_beliefs
from neuclust.models.encoder import Encoder, EncoderConfig, distinct, encoded, full_at
from neuclust.models.state import Shape, load_saved_state, saved_state
from neuclust.models.watch import LearningWatch
from neuclust.persistence import save_policy
from neuclust.policies.wiring import (
    check_update,
    optimistic_scores,
    optimistic_slate,
    readable,
    revised,
    settle_encoder,
)
from neuclust.randomness import stream
from neuclust.slates.rules import keeps_rules
from neuclust.slates.ties import tie_rank, top_slate

FEW = 16  # non-zero entries per context up to which reading these alone is less work than products of matrices


@dataclass(frozen=True, slots=True)
@checked(alpha=NON_NEGATIVE, ridge=POSITIVE, refresh=AT_LEAST_ONE)
class LinearConfig:
    """V_0 = ridge·I; alpha multiplies the width; `bias` adds a constant feature."""

    encoder: EncoderConfig = field(default_factory=EncoderConfig)
    alpha: float = 1.0
    ridge: float = 1.0
    bias: bool = False
    refresh: int = 200
    tie: Literal["id", "random"] = "id"


def matrix_shapes(config: Any, dim: int, slate_size: int) -> Iterator[tuple[str, Shape]]:  # noqa: ARG001
    """What a save of a linear policy holds at least."""
    size = Encoder(config.encoder, dim, even=False).dim + getattr(config, "bias", 0)
    yield "shared" if isinstance(config, ArmwiseLinearConfig) else "matrix", (size, size)


def few_entries(rows: Rows) -> bool:
    """Whether these contexts have few non-zero entries on average."""
    return len(rows.value) <= FEW * len(rows)


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
        self._profiles = ProfileCache()

    select, scores = optimistic_slate, optimistic_scores

    def beliefs(self, round: Round) -> tuple[Tensor, Tensor]:
        """θ̂ᵀx and α √(xᵀ V⁻¹ x) of every arm, (n,) each."""
        many = self._plain and len(round.arm_ids) >= MANY_ARMS and jit.serves(round.profiles, self.inverse)
        if many:
            scale = self.encoder.scale_of(round) if self.encoder.config.kind == "scale" else 1.0
            found = self._profiles.contexts_again(round, scale)
            if found is not None and few_entries(found[0]):
                return self._sparse_beliefs(found[0], round.active, torch.from_numpy(found[1]))
        x, columns, group = distinct(self.encoder, round)
        if many and few_entries(rows := sparse_rows(x.contiguous().numpy())):  # the same numbers
            return self._sparse_beliefs(rows, columns, group)
        x, columns = self._with_constant(x, columns)
        theta, inverse = self._on(columns)
        squares = (x @ inverse).mul_(x).sum(1)
        return (x @ theta)[group], self.config.alpha * squares.clamp(min=0).sqrt()[group]

    def _sparse_beliefs(self, x: Rows, columns: Tensor, group: Tensor) -> tuple[Tensor, Tensor]:
        """`beliefs` from the non-zero entries of distinct contexts x (u, q) and every arm's row (n,)."""
        means, squares = (torch.from_numpy(one) for one in linear_beliefs(x, *(p.numpy() for p in self._on(columns))))
        return means[group], self.config.alpha * squares.clamp(min=0).sqrt()[group]

    def _on(self, columns: Tensor) -> tuple[Tensor, Tensor]:
        """θ̂ and V⁻¹ on these columns."""
        theta, inverse = self.inverse @ self.moment, self.inverse
        if len(columns) < len(theta):
            theta, inverse = theta[columns], inverse[columns[:, None], columns]
        return theta, inverse

    @property
    def _plain(self) -> bool:
        """Whether contexts are read as they are, or divided by ρ."""
        config = self.encoder.config
        return config.kind in ("raw", "scale") and not config.duplicate and not self.config.bias

    def select_many(self, rounds: CrossedRounds) -> Sequence[Slate | None]:
        """The slates of `select`, in one pass: xᵀV⁻¹x = aᵀ(S V⁻¹ Sᵀ)a / ρ² for x = Sᵀa / ρ (`models.crossed`).
        None where settings or sizes need every round by itself."""
        config = self.encoder.config
        rho = 1.0 if config.kind == "raw" else self.encoder.rho or config.rho
        if not self._plain or rho is None or self.config.tie != "id" or not rounds.fits(self.dim, self.slate_size):
            return [None] * len(rounds)
        beliefs = crossed_beliefs(rounds, self.inverse @ self.moment / rho, self.inverse / rho**2)
        ranked = zip(rounds.arm_ids, rounds.slate_sizes, beliefs, strict=True)
        return [
            top_slate(means, self.config.alpha * widths, torch.from_numpy(ids), k) for ids, k, (means, widths) in ranked
        ]

    def update(self, round: Round, slate: Slate, feedback: Feedback) -> None:
        check_update(self, round, slate, feedback)
        round = round.read
        x, columns = self._with_constant(*encoded(self.encoder, round, slate.positions))
        seen = ~torch.isnan(feedback.arm_rewards)
        if bool(seen.any()):
            self._learn(x[seen], columns, feedback.arm_rewards[seen])
        self.encoder.settle(round)
        self.updates += 1
        self.watch.see(feedback.arm_rewards)
        self.watch.speak()

    def revise(self, round: Round, slate: Slate, before: Feedback, after: Feedback) -> None:
        """Rewards already learned turn out to be others: b += Σ_S (r' − r) x; those not seen before are learned."""
        change, round = revised(self, round, slate, before, after), round.read
        x, columns = self._with_constant(*encoded(self.encoder, round, slate.positions))
        new = ~torch.isnan(change.new)
        if bool(new.any()):
            self._learn(x[new], columns, change.new[new])
        self.moment[columns] += x.T @ change.difference

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

    settle, state_dict, load_state_dict = settle_encoder, saved_state, load_saved_state
    saved_shapes = staticmethod(matrix_shapes)


@dataclass(frozen=True, slots=True)
@checked(spread=NON_NEGATIVE, ridge=POSITIVE)
class LinearSamplingConfig:
    """V_0 = ridge·I; `spread` is ν, the scale of the posterior."""

    encoder: EncoderConfig = field(default_factory=EncoderConfig)
    spread: float = 0.5
    ridge: float = 1.0
    tie: Literal["id", "random"] = "id"


class LinearTS:
    """S_t = top K of x_iᵀθ̃, θ̃ ~ N(θ̂, ν²V⁻¹), θ̂ = V⁻¹b; V += Σ_S xxᵀ, b += Σ_S r x.
    A slate's `bonuses` are ν√(xᵀV⁻¹x), the spread of a sample, not the draw."""

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

    @keeps_rules
    def select(self, round: Round) -> Slate:
        round = readable(self, round)
        positions = top(self.scores(round), tie_rank(round, self.config.tie, self.seed), round.slate_size)
        chosen, factor = full_at(self.encoder, round, positions), self._known_factor()
        means = chosen @ self._estimate(factor)
        half = torch.linalg.solve_triangular(factor, chosen.T, upper=False)
        return Slate(positions, means, self.config.spread * torch.linalg.vector_norm(half, dim=0))

    def scores(self, round: Round) -> Tensor:
        """x_iᵀθ̃ of every arm, (n,)."""
        x, columns, group = distinct(self.encoder, readable(self, round))
        sampled: Tensor = (x @ self._draw(self._known_factor(), round.key)[columns])[group]
        return sampled

    def update(self, round: Round, slate: Slate, feedback: Feedback) -> None:
        check_update(self, round, slate, feedback)
        round = round.read
        x = full_at(self.encoder, round, slate.positions)
        seen = ~torch.isnan(feedback.arm_rewards)
        matrix = self.matrix + x[seen].T @ x[seen]
        self._factor = definite_cholesky(matrix)  # what the next select needs; nothing is learned where it is refused
        self.matrix = matrix
        self.moment += x[seen].T @ feedback.arm_rewards[seen]
        self.encoder.settle(round)
        self.watch.see(feedback.arm_rewards)
        self.watch.speak()

    def revise(self, round: Round, slate: Slate, before: Feedback, after: Feedback) -> None:
        """Rewards already learned turn out to be others: b += Σ_S (r' − r) x; those not seen before are learned."""
        change = revised(self, round, slate, before, after)
        self.update(round, slate, Feedback(change.new, after.slate_reward))
        self.moment += full_at(self.encoder, round.read, slate.positions).T @ change.difference

    def _known_factor(self) -> Tensor:
        return definite_cholesky(self.matrix) if self._factor is None else self._factor

    def _estimate(self, factor: Tensor) -> Tensor:
        """θ̂, (d,)."""
        return torch.cholesky_solve(self.moment.unsqueeze(1), factor)[:, 0]

    def _draw(self, factor: Tensor, key: int) -> Tensor:
        """θ̃ = θ̂ + ν L⁻ᵀε for V = LLᵀ, (d,)."""
        noise = torch.from_numpy(stream(self.seed, "lin-ts", key).standard_normal((len(factor), 1)))
        shift = torch.linalg.solve_triangular(factor.T, noise, upper=True)[:, 0]
        drawn: Tensor = self._estimate(factor) + self.config.spread * shift
        return drawn

    settle, state_dict, saved_shapes = settle_encoder, saved_state, staticmethod(matrix_shapes)

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        load_saved_state(self, state)
        self._factor = definite_cholesky(self.matrix)


@dataclass(frozen=True, slots=True)
@checked(alpha=NON_NEGATIVE, ridge=POSITIVE)
class ArmwiseLinearConfig:
    """A_i = ridge·I at the start; alpha multiplies the width; `shared` adds one β for all arms (hybrid)."""

    encoder: EncoderConfig = field(default_factory=lambda: EncoderConfig("raw"))
    shared: bool = False
    alpha: float = 1.0
    ridge: float = 1.0
    tie: Literal["id", "random"] = "id"


class ArmwiseLinUCB:
    """u_i = mean + α√s of every arm's own model; S_t = top K.
    Disjoint: mean = xᵀθ_i, s = xᵀA_i⁻¹x, A_i = I + X_iᵀX_i, θ_i = A_i⁻¹X_iᵀr_i; never played: 0 and ‖x‖². Hybrid with
    the context as the shared feature: with y = A_i⁻¹x, the published update is A_0 = I + Σ BᵀB, β = A_0⁻¹ Σ_i θ_i
    (models/armwise.py), mean = yᵀβ + xᵀθ_i and s = yᵀA_0⁻¹y + xᵀy. A ridge λ is the context divided by √λ."""

    name = "linucb-disjoint"
    save = save_policy
    saved = ("own", "shared", "rho", "seed")

    def __init__(self, config: ArmwiseLinearConfig, dim: int, slate_size: int, seed: int = 0) -> None:
        self.config, self.dim, self.slate_size, self.seed = config, dim, slate_size, seed
        self.encoder = Encoder(config.encoder, dim, even=False)
        self.watch = LearningWatch("the linear model")
        self.own = ArmwiseRidge(self.encoder.dim)
        self.shared = torch.eye(self.encoder.dim, dtype=torch.float64)  # A_0

    select, scores = optimistic_slate, optimistic_scores

    def update(self, round: Round, slate: Slate, feedback: Feedback) -> None:
        check_update(self, round, slate, feedback)
        round = round.read
        x = self._divided(full_at(self.encoder, round, slate.positions))
        arms = round.arm_ids[slate.positions].tolist()
        for arm, context, reward in zip(arms, x, feedback.arm_rewards.tolist(), strict=True):
            if not math.isnan(reward):  # not observed, not learned
                row = self.own.learn(arm, context, reward)
                self.shared += torch.outer(row, row)
        self.encoder.settle(round)
        self.watch.see(feedback.arm_rewards)
        self.watch.speak()

    def beliefs(self, round: Round) -> tuple[Tensor, Tensor]:
        """Mean and α√s of every offered arm, (n,) each: as if never played, then those that were."""
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
        return means, self.config.alpha * squares.clamp(min=0).sqrt()

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
            got = f"got {longest:.3g}·√ridge; scale the features (encoder.kind=scale, rho=none does) or raise ridge"
            raise DataError(f"{name}: expected contexts of length at most {LONGEST:g}·√ridge, {got}")
        return x

    settle, state_dict, load_state_dict = settle_encoder, saved_state, load_saved_state
    saved_shapes = staticmethod(matrix_shapes)
