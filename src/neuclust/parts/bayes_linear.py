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

from neuclust.errors import ConfigError
from neuclust.kernels.widths import definite_cholesky
from neuclust.parts.state import take


@dataclass(frozen=True, slots=True)
class BayesLinearConfig:
    """Variance of every weight before anything was seen, and of a reward around its mean."""

    prior_variance: float = 0.1
    noise_variance: float = 0.2

    def __post_init__(self) -> None:
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
        self._reset()
        self._solve()

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

    def _reset(self) -> None:
        self._precision = torch.diag(1 / self._prior)  # Λ
        self._moment = torch.zeros_like(self._prior)  # Xᵀr/σ²
        self._energy, self._count = 0.0, 0  # Σr² and n

    def _add(self, features: Tensor, sums: Tensor, counts: Tensor, energy: float) -> None:
        self._precision += (features.T * counts) @ features / self.noise_variance
        self._moment += features.T @ sums / self.noise_variance
        self._energy += energy
        self._count += round(float(counts.sum()))
        self._solve()

    def _solve(self) -> None:
        self._factor = definite_cholesky(self._precision)  # Λ = LLᵀ
        self.mean = torch.cholesky_solve(self._moment.unsqueeze(1), self._factor)[:, 0]  # m, (p,)

    # --- reading ---------------------------------------------------------------------------------------------

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

    def log_evidence(self) -> float:
        """log p(r | X) = −½ (n log 2πσ² + Σr²/σ² − mᵀΛm + log|Λ| + log|diag s|)."""
        fit = self._energy / self.noise_variance - float(self.mean @ self._moment)
        shrink = 2 * float(torch.log(torch.diagonal(self._factor)).sum()) + float(torch.log(self._prior).sum())
        return -0.5 * (self._count * math.log(2 * math.pi * self.noise_variance) + fit + shrink)

    # --- state -----------------------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Tensor]:
        return {
            "precision": self._precision.clone(),
            "moment": self._moment.clone(),
            "energy": torch.tensor(self._energy, dtype=torch.float64),
            "count": torch.tensor(self._count),
        }

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        precision, moment = take(state, "precision", self._precision), take(state, "moment", self._moment)
        self._precision, self._moment = precision, moment
        self._energy, self._count = float(state["energy"]), int(state["count"])
        self._solve()
