"""Bayesian linear regression: a Gaussian belief about weights, from features and rewards.

w ~ N(0, diag(s)), r = wᵀx + noise of variance σ²; after observations X, r the belief is N(m, Λ⁻¹) with precision
Λ = diag(1/s) + XᵀX/σ² and mean m = Λ⁻¹Xᵀr/σ².
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from neuclust.configuration import check_entries
from neuclust.errors import ConfigError
from neuclust.kernels.evidence import inverse_diagonal
from neuclust.kernels.widths import definite_cholesky
from neuclust.models.state import expect, take, take_count, take_number

LARGE = 1e12  # sums of squares from which rounding comes near the prior's share of the precision


@dataclass(frozen=True, slots=True)
class BayesLinearConfig:
    """Variance of every weight before anything was seen, and of a reward around its mean."""

    prior_variance: float = 0.1
    noise_variance: float = 0.2

    def __post_init__(self) -> None:
        check_entries(self)
        if not (self.prior_variance > 0 and self.noise_variance > 0):
            raise ConfigError(
                "expected prior_variance and noise_variance above 0, got "
                f"{self.prior_variance} and {self.noise_variance}"
            )


def with_constant(features: Tensor) -> Tensor:
    """[1, x]: (n, p) -> (n, p + 1)."""
    return torch.cat([features.new_ones(len(features), 1), features], 1)


class BayesLinear:
    """The belief N(m, Λ⁻¹); `observe` adds to it, `rebuild` makes it anew, everything else reads.

    `prior` are the weights' variances s, (p,), one number each, so that blocks of features may differ.
    """

    def __init__(self, prior: Tensor, noise_variance: float) -> None:
        self.noise_variance = noise_variance
        self._prior = prior.to(torch.float64)
        self._solved: tuple[Tensor, Tensor] | None = None
        self._reset()

    @classmethod
    def of(cls, config: BayesLinearConfig, size: int) -> BayesLinear:
        """The same prior variance for `size` weights."""
        return cls(torch.full((size,), config.prior_variance, dtype=torch.float64), config.noise_variance)

    # --- learning --------------------------------------------------------------------------------------------

    def observe(self, features: Tensor, rewards: Tensor) -> None:
        """Take in features (k, p) with rewards (k,)."""
        self._add(features, rewards, torch.ones_like(rewards), float(rewards @ rewards))

    def rebuild(self, features: Tensor, sums: Tensor, counts: Tensor, energy: float) -> None:
        """Start over from distinct features (u, p), each seen counts (u,) times with rewards of sums (u,) in all.

        energy = Σr² over all observations; only `log_evidence` needs it.
        """
        self._reset()
        self._add(features, sums, counts, energy)

    def weigh(self, prior: Tensor, noise_variance: float) -> None:
        """Other variances for what was seen: s (p,) and σ²."""
        self._prior, self.noise_variance = prior.to(torch.float64), noise_variance
        self._solved = None

    def _reset(self) -> None:
        self._gram = torch.zeros(len(self._prior), len(self._prior), dtype=torch.float64)  # XᵀX
        self._moment = torch.zeros_like(self._prior)  # Xᵀr
        self._energy, self._count = 0.0, 0  # Σr² and n
        self._solved = None

    def _add(self, features: Tensor, sums: Tensor, counts: Tensor, energy: float) -> None:
        gram = self._gram + (features.T * counts) @ features
        if not bool((torch.diagonal(gram) < LARGE).all()):
            definite_cholesky(self._precision(gram))  # refused here, before anything changes, or never
        self._gram = gram
        self._moment += features.T @ sums
        self._energy += energy
        self._count += round(float(counts.sum()))
        self._solved = None

    def _solve(self) -> tuple[Tensor, Tensor]:
        """L with Λ = LLᵀ, and m; made when first asked for after a change."""
        if self._solved is None:
            factor = definite_cholesky(self._precision(self._gram))
            mean = torch.cholesky_solve(self._moment.unsqueeze(1) / self.noise_variance, factor)[:, 0]
            self._solved = factor, mean
        return self._solved

    def _precision(self, gram: Tensor) -> Tensor:
        """Λ, (p, p)."""
        precision = gram / self.noise_variance
        precision.diagonal().add_(1 / self._prior)
        return precision

    # --- reading ---------------------------------------------------------------------------------------------

    @property
    def mean(self) -> Tensor:
        """m, (p,)."""
        return self._solve()[1]

    @property
    def _factor(self) -> Tensor:
        return self._solve()[0]

    def means(self, features: Tensor) -> Tensor:
        """mᵀx of features (n, p) -> (n,)."""
        return features @ self.mean

    def widths(self, features: Tensor) -> Tensor:
        """√(xᵀΛ⁻¹x), the standard deviation of wᵀx: (n, p) -> (n,)."""
        half = torch.linalg.solve_triangular(self._factor, features.T, upper=False)
        lengths: Tensor = torch.linalg.vector_norm(half, dim=0)
        return lengths

    def predictive(self, features: Tensor) -> tuple[Tensor, Tensor]:
        """Mean and variance of a reward not yet seen, mᵀx and xᵀΛ⁻¹x + σ²: (n, p) -> (n,), (n,)."""
        return self.means(features), self.widths(features) ** 2 + self.noise_variance

    def draw(self, rng: np.random.Generator, spread: float = 1.0) -> Tensor:
        """One weight vector w̃ = m + spread · L⁻ᵀε ~ N(m, spread² Λ⁻¹), (p,)."""
        noise = torch.from_numpy(rng.standard_normal((len(self._prior), 1)))
        drawn: Tensor = self.mean + spread * torch.linalg.solve_triangular(self._factor.T, noise, upper=True)[:, 0]
        return drawn

    def covariance(self) -> Tensor:
        """Λ⁻¹, (p, p)."""
        return torch.cholesky_inverse(self._factor)

    def variances(self) -> Tensor:
        """Diagonal of Λ⁻¹, (p,)."""
        return inverse_diagonal(self._factor)

    def residual(self) -> float:
        """Σ(r − mᵀx)² over all observations."""
        return self._energy + float(self.mean @ (self._gram @ self.mean - 2 * self._moment))

    @property
    def count(self) -> int:
        """How many rewards were seen."""
        return self._count

    def log_evidence(self) -> float:
        """log p(r | X) = −½ (n log 2πσ² + Σr²/σ² − mᵀΛm + log|Λ| + log|diag s|)."""
        fit = self._energy / self.noise_variance - float(self.mean @ self._moment) / self.noise_variance
        shrink = 2 * float(torch.log(torch.diagonal(self._factor)).sum()) + float(torch.log(self._prior).sum())
        return -0.5 * (self._count * math.log(2 * math.pi * self.noise_variance) + fit + shrink)

    # --- state -----------------------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Tensor]:
        return {
            "gram": self._gram.clone(),
            "moment": self._moment.clone(),
            "prior": self._prior.clone(),
            "noise": torch.tensor(self.noise_variance, dtype=torch.float64),
            "energy": torch.tensor(self._energy, dtype=torch.float64),
            "count": torch.tensor(self._count),
        }

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        gram, moment = take(state, "gram", self._gram), take(state, "moment", self._moment)
        prior, noise = take(state, "prior", self._prior), take_number(state, "noise")
        expect(noise > 0 and bool((prior > 0).all()), "noise and prior above 0", "0 or less")
        energy, count = take_number(state, "energy"), take_count(state, "count")
        self.weigh(prior, noise)
        self._gram, self._moment, self._energy, self._count = gram, moment, energy, count
