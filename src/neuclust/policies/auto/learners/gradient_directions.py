"""Where to look for the directions of a multi-index model: the gradients of a quadratic regression."""

from dataclasses import dataclass, replace
from typing import Self

import torch
from torch import Tensor

from neuclust.policies.auto.features import quadratic_columns, scaled_inputs
from neuclust.policies.auto.learners.block_regression import BlockPrior, BlockRegressionConfig, evidence_step
from neuclust.policies.auto.plays import Held, RewardScale

GUIDE_STEPS = 3  # evidence steps of the quadratic regression


@dataclass(frozen=True, slots=True)
class Observed:
    """Distinct contexts x (u, d), sums of their rewards (u,), numbers of observations (u,), Σr², and the scale."""

    x: Tensor
    sums: Tensor
    counts: Tensor
    energy: float
    scale: RewardScale

    @classmethod
    def of(cls, held: Held, scale: float) -> Self:
        """Net inputs without their constant, divided by `scale`."""
        return cls(scaled_inputs(held.features.inputs, scale), held.sums, held.counts, held.energy, held.scale)

    def single(self) -> Self:
        """In single precision: products over all observations take most of the time, and 7 digits suffice."""
        return replace(self, x=self.x.float(), sums=self.sums.float(), counts=self.counts.float())


def quadratic_weights(data: Observed, config: BlockRegressionConfig, variances: tuple[float, ...]) -> Tensor:
    """Mean weights of the blocks 1, x, and x_i x_j for i <= j, in a Bayesian regression with such prior variances,
    (1 + d + d(d + 1)/2,)."""
    dim = data.x.shape[1]
    prior = BlockPrior((1, dim, dim * (dim + 1) // 2), variances, config.noise)
    belief = prior.belief()
    prior.apply(belief, data.scale)
    belief.rebuild(quadratic_columns(data.x), data.sums, data.counts, data.energy)
    for _ in range(GUIDE_STEPS):
        evidence_step(config, prior, belief, data.scale)
    return belief.mean


def gradient_directions(weights: Tensor, data: Observed, count: int) -> Tensor:
    """Directions a quadratic function varies along: weights of `quadratic_columns` (p,) -> (d, count).
    Leading eigenvectors of the mean outer product of its gradients at the contexts played (Samarov, 1993), each as long
    as the root of its eigenvalue's ratio to the first; directions beyond d are 0."""
    d = data.x.shape[1]
    upper = weights.new_zeros(d, d)
    upper[tuple(torch.triu_indices(d, d))] = weights[1 + d :]
    gradients = weights[1 : 1 + d] + data.x @ (upper + upper.T)
    values, vectors = torch.linalg.eigh((gradients.T * data.counts) @ gradients)
    found = min(d, count)
    shares = values[-found:].clamp(min=0) / values[-1].clamp(min=1e-12)
    directions = weights.new_zeros(d, count)
    directions[:, count - found :] = vectors[:, -found:] * shares.sqrt()
    return directions
