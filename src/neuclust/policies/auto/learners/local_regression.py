"""A hierarchical (empirical Bayes) linear model, one Bayesian regression per cluster with shared hyperparameters:
r = level + w_cᵀx + noise,  x = [1, (z − centroid_c)/spread],  w_c ~ N(0, diag(s_level, s_slope, …)) per cluster c."""

from collections.abc import Mapping

import torch
from torch import Tensor

from neuclust.models.bayes_linear import with_constant
from neuclust.models.state import expect, take, take_numbers
from neuclust.policies.auto.features import ContextClusters, Features
from neuclust.policies.auto.learners.block_regression import BlockRegressionConfig, taken_variances
from neuclust.policies.auto.plays import Played, Plays

LEVEL = 0.3  # prior mean of the common level; counts like one cluster
VARIANCES = (0.1, 0.05)  # prior variances of a cluster's own level and of its slope; count like one weight
TUNED_FROM = 50  # rewards, before which variances and noise stay as they are
OFTEN_UNTIL = 20  # slates after each of which the level is re-estimated


class LocalRegression:
    """level + w_cᵀx + bonus·√(xᵀΛ_c⁻¹x) of the nearest cluster c."""

    def __init__(self, config: BlockRegressionConfig, clusters: ContextClusters, bonus: float) -> None:
        self.config, self.clusters, self.bonus = config, clusters, bonus
        count, dim = clusters.centroids.shape
        self._gram = torch.zeros(count, dim + 1, dim + 1, dtype=torch.float64)  # XᵀX per cluster
        self._moment = torch.zeros(count, dim + 1, dtype=torch.float64)  # Xᵀr per cluster
        self._energy, self._count = 0.0, 0.0  # Σr²/a and Σa, of rewards r with exposures a
        self.level, self.noise = LEVEL, config.noise
        self.variances = torch.tensor(VARIANCES, dtype=torch.float64)
        self._solved: tuple[Tensor, Tensor] | None = None

    def _solve(self) -> tuple[Tensor, Tensor]:
        """Λ⁻¹ (C, p, p) and the means of w (C, p); computed on the first read after a change."""
        if self._solved is None:
            prior = torch.cat([self.variances[:1], self.variances[1:].expand(self._moment.shape[1] - 1)])
            precision = self._gram / self.noise + torch.diag(1 / prior)
            covariance: Tensor = torch.cholesky_inverse(torch.linalg.cholesky(precision))
            moment = (self._moment - self.level * self._gram[:, 0]) / self.noise
            self._solved = covariance, (covariance @ moment.unsqueeze(2))[:, :, 0]
        return self._solved

    def _read(self, features: Features) -> tuple[Tensor, Tensor]:
        """x (n, p) and clusters (n,)."""
        labels = self.clusters.labels(features.x)
        x = (features.x - self.clusters.centroids[labels]) / self.clusters.spread
        return with_constant(x), labels

    def means(self, features: Features) -> Tensor:
        x, labels = self._read(features)
        return self.level + (x * self._solve()[1][labels]).sum(1)

    def scores(self, features: Features, t: int) -> tuple[Tensor, Tensor]:  # noqa: ARG002
        (x, labels), (covariance, weights) = self._read(features), self._solve()
        means = self.level + (x * weights[labels]).sum(1)
        squares = torch.empty_like(means)
        for cluster in torch.unique(labels).tolist():  # one product per cluster, not one matrix per arm
            mine = labels == cluster
            squares[mine] = ((x[mine] @ covariance[cluster]) * x[mine]).sum(1)
        return means + self.bonus * squares.clamp(min=0).sqrt(), means

    def learn(self, played: Played, plays: Plays) -> None:
        (x, labels), rewards, exposures = self._read(played.features), played.rewards, played.exposures
        self._gram.index_add_(0, labels, x.unsqueeze(2) * (x * exposures.unsqueeze(1)).unsqueeze(1))
        self._moment.index_add_(0, labels, x * rewards.unsqueeze(1))
        self._energy += float(rewards @ (rewards / exposures))
        self._count += float(exposures.sum())
        self._solved = None
        if plays.slates % self.config.every == 0 or plays.slates < OFTEN_UNTIL:
            for _ in range(self.config.steps):
                self._set_level()
                if self._count >= TUNED_FROM:
                    self._set_variances()

    def _set_level(self) -> None:
        """The clusters' mean level, each weighted by the share of it that the data determines."""
        covariance, weights = self._solve()
        known = 1 - covariance[:, 0, 0] / self.variances[0]
        total = LEVEL + float((known * (self.level + weights[:, 0])).sum())
        self.level, self._solved = total / (1 + float(known.sum())), None

    def _set_variances(self) -> None:
        """One evidence step (MacKay, 1992) for both variances and the noise."""
        config, (covariance, weights) = self.config, self._solve()
        uncertain = torch.diagonal(covariance, dim1=1, dim2=2)
        stepped, determined = [], 0.0
        # the prior variance counts like one determined weight: few levels that happen to agree must not end exploration
        for block, prior, first in zip((slice(0, 1), slice(1, None)), self.variances.tolist(), VARIANCES, strict=True):
            known = float((1 - uncertain[:, block] / prior).sum())
            stepped.append((float(weights[:, block].square().sum()) + first) / (known + 1))
            determined += known
        noise = self._residual(weights) / max(1.0, self._count - determined)
        self.variances = torch.tensor(stepped, dtype=torch.float64).clamp(config.least_variance, config.most_variance)
        self.noise = min(max(noise, config.least_noise), config.most_noise)
        self._solved = None

    def _residual(self, weights: Tensor) -> float:
        """Σ(r − level − w_cᵀx)² for weights (C, p)."""
        total = weights.clone()
        total[:, 0] += self.level
        fitted = (self._gram @ total.unsqueeze(2))[:, :, 0]
        return self._energy + float((total * (fitted - 2 * self._moment)).sum())

    def state_dict(self) -> dict[str, Tensor]:
        numbers = torch.tensor([self.level, self.noise, self._energy, self._count], dtype=torch.float64)
        state = {"gram": self._gram.clone(), "moment": self._moment.clone()}
        return state | {"variances": self.variances.clone(), "numbers": numbers}

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        gram, moment = take(state, "gram", self._gram), take(state, "moment", self._moment)
        variances = taken_variances(state, self.variances)
        level, noise, energy, count = take_numbers(state, "numbers", 4)
        expect(noise > 0 and count >= 0, "noise above 0 and a count of at least 0", (noise, count))
        self.variances, self.level, self.noise = variances, level, noise
        self._gram, self._moment, self._energy, self._count = gram, moment, energy, count
        self._solved = None
