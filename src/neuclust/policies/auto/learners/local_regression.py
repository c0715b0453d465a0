"""A hierarchical (empirical Bayes) linear model, one Bayesian regression per cluster with shared hyperparameters:
r = level + w_cᵀx + noise,  x = [1, (z − centroid_c)/spread],  w_c ~ N(0, diag(s_level, s_slope, …)) per cluster c."""

from collections.abc import Mapping

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from neuclust.kernels.scoring import arm_scores
from neuclust.models.bayes_linear import with_constant
from neuclust.models.state import expect, take, take_numbers
from neuclust.policies.auto.features import ContextClusters, Features
from neuclust.policies.auto.learners.block_regression import BlockRegressionConfig, taken_variances
from neuclust.policies.auto.plays import Played, Plays, RewardScale
from neuclust.policies.auto.reward_range import Rescaling

VARIANCES = (1.6, 0.8)  # prior variances of a cluster's own level and of its slope, in log-odds; count like one weight
OFTEN_UNTIL = 20  # slates after each of which the level is re-estimated


class LocalRegression:
    """level + w_cᵀx + bonus·√(xᵀΛ_c⁻¹x) of the nearest cluster c."""

    def __init__(self, config: BlockRegressionConfig, clusters: ContextClusters, bonus: float) -> None:
        self.config, self.clusters, self.bonus = config, clusters, bonus
        count, dim = clusters.centroids.shape
        self._gram = torch.zeros(count, dim + 1, dim + 1, dtype=torch.float64)  # XᵀX per cluster
        self._moment = torch.zeros(count, dim + 1, dtype=torch.float64)  # Xᵀr per cluster
        self._energy, self._count = 0.0, 0.0  # Σr²/a and Σa, of rewards r with exposures a
        self.scale, self.noise = RewardScale(), config.noise
        self.level = self.scale.level
        self.variances = torch.tensor(VARIANCES, dtype=torch.float64)
        self._solved: tuple[Tensor, Tensor] | None = None

    def _solve(self) -> tuple[Tensor, Tensor]:
        """R with Λ⁻¹ = RᵀR, lower triangular (C, p, p), and the means of w (C, p); on the first read after a change."""
        if self._solved is None:
            prior = torch.cat([self.variances[:1], self.variances[1:].expand(self._moment.shape[1] - 1)])
            noise, unit = self.noise * self.scale.unit, self.scale.unit
            factor = torch.linalg.cholesky(self._gram / noise + torch.diag(1 / (prior * unit**2)))
            root = torch.linalg.solve_triangular(factor, torch.eye(len(prior), dtype=factor.dtype), upper=False)
            moment = ((self._moment - self.level * self._gram[:, 0]) / noise).unsqueeze(2)
            self._solved = root, (root.mT @ (root @ moment))[:, :, 0]
        return self._solved

    def levels(self) -> tuple[NDArray[np.float64], NDArray[np.float64], float]:
        """Posterior means and standard deviations of the clusters' levels, (C,) each, and the variance of the noise."""
        root, weights = self._solve()
        spread = torch.linalg.vector_norm(root[:, :, 0], dim=1)
        return (self.level + weights[:, 0]).numpy(), spread.numpy(), self.noise * self.scale.unit

    def _read(self, features: Features) -> tuple[Tensor, Tensor]:
        """x (n, p) and clusters (n,)."""
        labels = features.groups[0]
        x = (features.x - self.clusters.centroids[labels]) / self.clusters.spread
        return with_constant(x), labels

    def means(self, features: Features) -> Tensor:
        x, labels = self._read(features)
        return self.level + (x * self._solve()[1][labels]).sum(1)

    def scores(self, features: Features, t: int) -> tuple[Tensor, Tensor]:  # noqa: ARG002
        means, widths = self._compiled(features) if features.compiled else self._plain(features)
        return means + self.bonus * widths, means

    def _plain(self, features: Features) -> tuple[Tensor, Tensor]:
        """Means and standard deviations, (n,) each."""
        (x, labels), root = self._read(features), self._solve()[0]
        widths = x.new_empty(len(x))
        for cluster in torch.unique(labels).tolist():  # one product per cluster, not one matrix per arm
            mine = labels == cluster
            widths[mine] = torch.linalg.vector_norm(x[mine] @ root[cluster].T, dim=1)
        return self.means(features), widths

    def _compiled(self, features: Features) -> tuple[Tensor, Tensor]:
        """The same with centroids and spread in the coefficients, so that contexts are read as they are."""
        (root, weights), (labels, order) = self._solve(), features.groups
        both = torch.cat([weights.unsqueeze(1), root], 1)  # (C, 1 + p, p)
        slopes = both[:, :, 1:] / self.clusters.spread
        levels = both[:, :, :1] - slopes @ self.clusters.centroids.unsqueeze(2)
        levels[:, 0] += self.level
        folded = torch.cat([levels, slopes], 2).numpy()
        starts = np.concatenate([[0], np.cumsum(np.bincount(labels.numpy(), minlength=len(root)))])
        means, roots = np.ascontiguousarray(folded[:, 0]), np.ascontiguousarray(folded[:, 1:])
        found = arm_scores.affine_beliefs(features.rows.numpy(), (order.numpy(), starts), means, roots)
        return torch.from_numpy(found[0]), torch.from_numpy(found[1])

    def learn(self, played: Played, plays: Plays) -> None:
        (x, labels), rewards, exposures = self._read(played.features), played.rewards, played.exposures
        self._gram.index_add_(0, labels, x.unsqueeze(2) * (x * exposures.unsqueeze(1)).unsqueeze(1))
        self._moment.index_add_(0, labels, x * rewards.unsqueeze(1))
        self._energy += float(rewards @ (rewards / exposures))
        self._count += float(exposures.sum())
        self.scale, self._solved = plays.scale, None
        if plays.slates % self.config.every == 0 or plays.slates < OFTEN_UNTIL:
            for _ in range(self.config.steps):
                self._set_level()
                if plays.informed:
                    self._set_variances()

    def rescale(self, change: Rescaling, scale: RewardScale) -> None:
        slope, shift = change
        total = float(self._moment[:, 0].sum())
        self._energy = slope**2 * self._energy + shift * (2 * slope * total + shift * self._count)
        self._moment = slope * self._moment + shift * self._gram[:, 0]
        self.level, self.scale, self._solved = slope * self.level + shift, scale, None

    def _set_level(self) -> None:
        """The clusters' mean level, each weighted by the share of it that the data determines."""
        root, weights = self._solve()
        known = 1 - root[:, :, 0].square().sum(1) / (self.variances[0] * self.scale.unit**2)
        total = self.scale.level + float((known * (self.level + weights[:, 0])).sum())
        self.level, self._solved = total / (1 + float(known.sum())), None

    def _set_variances(self) -> None:
        """One evidence step (MacKay, 1992) for both variances and the noise."""
        config, unit, (root, weights) = self.config, self.scale.unit, self._solve()
        uncertain = root.square().sum(1) / unit**2
        stepped, determined = [], 0.0
        # the prior variance counts like one determined weight: few levels that happen to agree must not end exploration
        for block, prior, first in zip((slice(0, 1), slice(1, None)), self.variances.tolist(), VARIANCES, strict=True):
            known = float((1 - uncertain[:, block] / prior).sum())
            stepped.append((float((weights[:, block] / unit).square().sum()) + first) / (known + 1))
            determined += known
        noise = self._residual(weights) / max(1.0, self._count - determined)
        self.variances = torch.tensor(stepped, dtype=torch.float64).clamp(max=config.most_variance)
        self.noise = min(max(noise / unit, config.least_noise), config.most_noise)
        self._solved = None

    def _residual(self, weights: Tensor) -> float:
        """Σ(r − level − w_cᵀx)² for weights (C, p)."""
        total = weights.clone()
        total[:, 0] += self.level
        fitted = (self._gram @ total.unsqueeze(2))[:, :, 0]
        return self._energy + float((total * (fitted - 2 * self._moment)).sum())

    def state_dict(self) -> dict[str, Tensor]:
        numbers = [self.scale.level, self.level, self.noise, self._energy, self._count]
        state = {"gram": self._gram.clone(), "moment": self._moment.clone()}
        return state | {"variances": self.variances.clone(), "numbers": torch.tensor(numbers, dtype=torch.float64)}

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        gram, moment = take(state, "gram", self._gram), take(state, "moment", self._moment)
        variances = taken_variances(state, self.variances)
        overall, level, noise, energy, count = take_numbers(state, "numbers", 5)
        expect(noise > 0 and count >= 0, "noise above 0 and a count of at least 0", (noise, count))
        expect(0 < overall < 1, "a level of rewards between 0 and 1", overall)
        self.variances, self.level, self.noise, self.scale = variances, level, noise, RewardScale(overall)
        self._gram, self._moment, self._energy, self._count = gram, moment, energy, count
        self._solved = None
