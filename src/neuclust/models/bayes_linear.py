"""Bayesian linear regression, on given features or on a net's last hidden layer.

w ~ N(0, diag(s)), r = wᵀx + noise of variance σ²; after observations X, r the posterior is N(m, Λ⁻¹) with precision
Λ = diag(1/s) + XᵀX/σ² and mean m = Λ⁻¹Xᵀr/σ².
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np
import torch
from torch import Tensor

from neuclust.configuration import POSITIVE, checked
from neuclust.kernels.evidence import inverse_diagonal
from neuclust.kernels.widths import definite_cholesky
from neuclust.models.feature_net import FeatureNet
from neuclust.models.history import History
from neuclust.models.state import expect, load_saved_state, saved_state, take, take_number
from neuclust.models.tracked_covariance import MOST_UPDATES, TrackedCovariance

LARGE = 1e12  # sums of squares from which rounding comes near the prior's share of the precision
LONGEST = 1e3  # of a net's features: one outlier of a million would leave no digits for all other weights


@dataclass(frozen=True, slots=True)
@checked(prior_variance=POSITIVE, noise_variance=POSITIVE)
class BayesLinearConfig:
    """Prior variance of every weight, and variance of a reward around its mean."""

    prior_variance: float = 0.1
    noise_variance: float = 0.2


def shortened(z: Tensor, longest: float) -> Tensor:
    """Rows longer than `longest` scaled to that length."""
    lengths = torch.linalg.vector_norm(z, dim=1, keepdim=True)
    return torch.where(lengths > longest, z * (longest / lengths.clamp(min=longest)), z)


def with_constant(features: Tensor) -> Tensor:
    """[1, x]: (n, p) -> (n, p + 1)."""
    return torch.cat([features.new_ones(len(features), 1), features], 1)


@dataclass(frozen=True, slots=True)
class SufficientStatistics:
    """XᵀX (p, p), Xᵀr (p,), Σr² and the number of observations, each weighted by its exposure a: Σa x xᵀ, Σr²/a, Σa."""

    gram: Tensor
    moment: Tensor
    energy: float
    count: float

    @classmethod
    def none(cls, size: int) -> Self:
        """Of no observation of `size` features."""
        return cls(torch.zeros(size, size, dtype=torch.float64), torch.zeros(size, dtype=torch.float64), 0.0, 0.0)

    def plus(self, features: Tensor, sums: Tensor, counts: Tensor, energy: float) -> Self:
        """With features (u, p) added, each observed counts (u,) times with rewards that add up to sums (u,)."""
        gram, moment = self.gram + (features.T * counts) @ features, self.moment + features.T @ sums
        return type(self)(gram, moment, self.energy + energy, self.count + float(counts.sum()))

    def added(self, features: Tensor, sums: Tensor, counts: Tensor, energy: float) -> Self:
        """The same in the place of this XᵀX, which is lost: a copy of a large one takes longer than its sum."""
        gram = self.gram.addmm_(features.T * counts, features)
        return type(self)(gram, self.moment + features.T @ sums, self.energy + energy, self.count + float(counts.sum()))

    def rescaled(self, slope: float, shift: float, weight: float = 1.0) -> Self:
        """Of rewards slope · r + shift · a, each observation counted `weight` times; the first feature is 1."""
        moment = slope * self.moment + shift * self.gram[:, 0]
        energy = slope**2 * self.energy + shift * (2 * slope * float(self.moment[0]) + shift * self.count)
        return type(self)(weight * self.gram, weight * moment, weight * energy, weight * self.count)

    def precision(self, prior: Tensor, noise_variance: float) -> Tensor:
        """Λ for prior variances (p,), (p, p)."""
        precision = self.gram / noise_variance
        precision.diagonal().add_(1 / prior)
        return precision

    def residual(self, weights: Tensor) -> float:
        """Σ(r − wᵀx)² for weights (p,)."""
        return self.energy + float(weights @ (self.gram @ weights - 2 * self.moment))


@dataclass(frozen=True)
class Solution:
    """L with Λ = LLᵀ, (p, p), the vector b (p,) of Λm = b, and what follows, each computed on its first read."""

    factor: Tensor
    moment: Tensor

    @cached_property
    def mean(self) -> Tensor:
        """m = Λ⁻¹b, (p,)."""
        return torch.cholesky_solve(self.moment.unsqueeze(1), self.factor)[:, 0]

    @cached_property
    def root(self) -> Tensor:
        """R = L⁻¹, lower triangular, with √(xᵀΛ⁻¹x) = ‖Rx‖: (p, p)."""
        unit = torch.eye(len(self.factor), dtype=self.factor.dtype)
        inverse: Tensor = torch.linalg.solve_triangular(self.factor, unit, upper=False)
        return inverse

    @cached_property
    def covariance(self) -> Tensor:
        """Λ⁻¹, (p, p)."""
        return torch.cholesky_inverse(self.factor)


class BayesLinear:
    """The posterior N(m, Λ⁻¹) for prior variances s (p,); `observe` adds data, `rebuild` starts over.
    A `tracked` one follows Λ⁻¹ itself: observations and means take O(p²), widths and draws a new factor."""

    def __init__(self, prior: Tensor, noise_variance: float, tracked: bool = False) -> None:
        self.prior, self.noise_variance, self.tracked = prior.to(torch.float64), noise_variance, tracked
        self.data = SufficientStatistics.none(len(prior))
        self._solved: Solution | None = None
        self._covariance: TrackedCovariance | None = None

    def observe(self, features: Tensor, rewards: Tensor, counts: Tensor | None = None) -> None:
        """Add features (k, p) with rewards (k,), each seen counts (k,) times, or with such a chance; 1 if not given."""
        counts = torch.ones_like(rewards) if counts is None else counts
        new, noise, covariance = (features, rewards, counts), self.noise_variance, self._covariance
        energy = float(rewards @ (rewards / counts))
        if not bool((torch.diagonal(self.data.gram) + counts @ features.square() < LARGE).all()):
            self._accept(self.data.plus(*new, energy))
            return
        self.data, self._solved, self._covariance = self.data.added(*new, energy), None, None
        if (
            covariance is not None
            and covariance.updates < MOST_UPDATES
            and covariance.observe(features, rewards / noise, counts / noise)
        ):
            self._covariance = covariance

    def rebuild(self, features: Tensor, sums: Tensor, counts: Tensor, energy: float) -> None:
        """Start over from distinct features (u, p), each observed counts (u,) times with rewards of sums (u,) in all;
        energy = Σr²."""
        self._accept(SufficientStatistics.none(len(self.prior)).plus(features, sums, counts, energy))

    def reweight(self, prior: Tensor, noise_variance: float) -> None:
        """Other variances for the same data: s (p,) and σ²."""
        self.prior, self.noise_variance = prior.to(torch.float64), noise_variance
        self._solved = self._covariance = None

    def _accept(self, data: SufficientStatistics) -> None:
        if not bool((torch.diagonal(data.gram) < LARGE).all()):
            definite_cholesky(data.precision(self.prior, self.noise_variance))  # refused before anything changes
        self.data, self._solved, self._covariance = data, None, None

    @property
    def solved(self) -> Solution:
        """The factor of Λ and what follows from it; computed on the first read after a change."""
        if self._solved is None:
            factor = definite_cholesky(self.data.precision(self.prior, self.noise_variance))
            self._solved = Solution(factor, self.data.moment / self.noise_variance)
        return self._solved

    def _track(self) -> TrackedCovariance:
        """Λ⁻¹ and m, from a new factor where there is none to follow."""
        if self._covariance is None:
            factor = definite_cholesky(self.data.precision(self.prior, self.noise_variance))
            self._covariance = TrackedCovariance.of(factor, self.data.moment / self.noise_variance)
        return self._covariance

    @property
    def mean(self) -> Tensor:
        """m, (p,)."""
        return self._track().mean if self.tracked else self.solved.mean

    def means(self, features: Tensor) -> Tensor:
        """mᵀx of features (n, p) -> (n,)."""
        return features @ self.mean

    def widths(self, features: Tensor) -> Tensor:
        """√(xᵀΛ⁻¹x), the standard deviation of wᵀx: (n, p) -> (n,)."""
        half = torch.linalg.solve_triangular(self.solved.factor, features.T, upper=False)
        lengths: Tensor = torch.linalg.vector_norm(half, dim=0)
        return lengths

    def draw(self, rng: np.random.Generator, spread: float = 1.0) -> Tensor:
        """One weight vector w̃ = m + spread · L⁻ᵀε ~ N(m, spread² Λ⁻¹), (p,)."""
        noise = torch.from_numpy(rng.standard_normal((len(self.prior), 1)))
        drawn: Tensor = (
            self.mean + spread * torch.linalg.solve_triangular(self.solved.factor.T, noise, upper=True)[:, 0]
        )
        return drawn

    def variances(self) -> Tensor:
        """Diagonal of Λ⁻¹, (p,)."""
        return self._track().variances if self.tracked else inverse_diagonal(self.solved.factor)

    def state_dict(self) -> dict[str, Tensor]:
        # without it a loaded posterior would differ in the last digits from one that goes on
        tracked = {"covariance": self._track().packed()} if self.tracked else {}
        return tracked | {
            "gram": self.data.gram.clone(),
            "moment": self.data.moment.clone(),
            "prior": self.prior.clone(),
            "noise": torch.tensor(self.noise_variance, dtype=torch.float64),
            "energy": torch.tensor(self.data.energy, dtype=torch.float64),
            "count": torch.tensor(self.data.count, dtype=torch.float64),
        }

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        gram, moment = take(state, "gram", self.data.gram), take(state, "moment", self.data.moment)
        prior, noise = take(state, "prior", self.prior), take_number(state, "noise")
        expect(noise > 0 and bool((prior > 0).all()), "noise and prior above 0", "0 or less")
        energy, count = take_number(state, "energy"), take_number(state, "count")
        expect(count >= 0, "count of at least 0", count)
        self.data = SufficientStatistics(gram, moment, energy, count)
        self.reweight(prior, noise)
        if self.tracked:
            packed = take(state, "covariance", self._track().packed())
            self._covariance = TrackedCovariance.unpacked(packed, len(prior))
            expect(bool((self._covariance.variances > 0).all()), "variances above 0", "0 or less")


def rescale(belief: BayesLinear, slope: float, shift: float, weight: float = 1.0) -> None:
    """Rewards r become slope · r + shift, each counted `weight` times; the first feature is 1."""
    belief._accept(belief.data.rescaled(slope, shift, weight))


def track(belief: BayesLinear, tracked: bool) -> None:
    """Follow Λ⁻¹ itself from now on, or no longer."""
    belief.tracked, belief._covariance = tracked, None


def log_evidence(belief: BayesLinear) -> float:
    """log p(r | X) = −½ (n log 2πσ² + Σr²/σ² − mᵀΛm + log|Λ| + log|diag s|)."""
    solved, data, noise = belief.solved, belief.data, belief.noise_variance
    factor, mean = solved.factor, solved.mean
    fit = data.energy / noise - float(mean @ data.moment) / noise
    shrink = 2 * float(torch.log(torch.diagonal(factor)).sum()) + float(torch.log(belief.prior).sum())
    return -0.5 * (data.count * math.log(2 * math.pi * noise) + fit + shrink)


def prediction_covariance(belief: BayesLinear, features: Tensor) -> Tensor:
    """XΛ⁻¹Xᵀ, the covariance of wᵀx between features (k, p) -> (k, k)."""
    if belief.tracked:
        return belief._track().between(features)
    half: Tensor = torch.linalg.solve_triangular(belief.solved.factor, features.T, upper=False)
    return half.T @ half


class NetRegression:
    """The posterior N(m, Λ⁻¹) of rewards as a linear function of x = [1, φ(z; θ)] (Riquelme, Tucker and Snoek, 2018).
    Between trainings of θ new observations are added; a training changes the features of all, and it is rebuilt."""

    saved = ("net", "posterior")

    def __init__(self, net: FeatureNet, config: BayesLinearConfig) -> None:
        self.net = net
        prior = torch.full((net.config.width + 1,), config.prior_variance, dtype=torch.float64)
        self.posterior = BayesLinear(prior, config.noise_variance)

    def features(self, inputs: Tensor, columns: Tensor | None = None) -> Tensor:
        """[1, φ] of encoded contexts, φ of length at most 1,000: (n, d') -> (n, m + 1)."""
        return with_constant(shortened(self.net.features(inputs, columns), LONGEST))

    def learn(self, history: History, rows: Tensor, rewards: Tensor, t: int) -> None:
        """Learn rewards (k,) of the history's rows (k,), which holds them already, at the t-th update."""
        if self.net.train(history, t):
            contexts, means, counts = history.targets()
            self.posterior.rebuild(self.features(contexts), means * counts, counts, history.energy)
        elif len(rewards):
            self.posterior.observe(self.features(history.contexts.rows[rows]), rewards)

    state_dict, load_state_dict = saved_state, load_saved_state
