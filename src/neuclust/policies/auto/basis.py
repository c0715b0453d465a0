"""Basis functions of contexts: what linear models read, in blocks that share one prior variance each."""

import math
from dataclasses import dataclass
from typing import Protocol, Self

import numpy as np
import torch
from torch import Tensor

from neuclust.kernels import arm_scores
from neuclust.models.bayes_linear import BayesLinear, with_constant
from neuclust.policies.auto.features import FeatureBlocks, Features
from neuclust.randomness import stream

FREQUENCIES = 100  # per length scale
LENGTH_SCALES = (0.5, 1.5)  # of the two RBF kernels, in typical lengths of a context
FOURIER_VARIANCES = (1.6, 1.6, 1.6, 1.6)  # prior: of the constant, the context, the features of each length scale


class Basis(Protocol):
    """Maps contexts to columns (n, p); `dot` is columns times weights (p,) -> (n,), `predicted` a belief's means and
    standard deviations, (n,) each."""

    def __call__(self, features: Features) -> Tensor: ...

    def dot(self, features: Features, weights: Tensor) -> Tensor: ...

    def predicted(self, features: Features, belief: BayesLinear) -> tuple[Tensor, Tensor]: ...


@dataclass(frozen=True, slots=True)
class BlockColumns:
    """The leading `size` columns of the feature blocks."""

    size: int

    def __call__(self, features: Features) -> Tensor:
        return features.columns(self.size)

    def dot(self, features: Features, weights: Tensor) -> Tensor:
        return features.dot(weights)

    def predicted(self, features: Features, belief: BayesLinear) -> tuple[Tensor, Tensor]:
        if not features.compiled or self.size != 1 + features.x.shape[1]:
            return predicted_from(self(features), belief)
        norms, nobody = features.blocks.column_norms[: self.size], np.empty(0, np.int64)
        groups = nobody, np.array([0, len(features.x)])
        means, roots = (belief.mean / norms).unsqueeze(0).numpy(), (belief.root() / norms).unsqueeze(0).numpy()
        found = arm_scores.affine_beliefs(features.rows.numpy(), groups, means, roots)
        return torch.from_numpy(found[0]), torch.from_numpy(found[1])


@dataclass(frozen=True, slots=True)
class FourierFeatures:
    """[1, x, √(2/n) cos(ωᵀx + φ)], ω ~ N(0, I/ℓ²) at two length scales ℓ: random Fourier features of two RBF kernels
    (Rahimi and Recht, 2007)."""

    frequencies: Tensor  # (d', 2n)
    phases: Tensor  # (2n,)
    scale: float

    @classmethod
    def of(cls, blocks: FeatureBlocks, seed: int, purpose: str) -> Self:
        rng = stream(seed, f"{purpose} waves")
        dim = blocks.input_size - 1
        drawn = [rng.standard_normal((dim, FREQUENCIES)) / length for length in LENGTH_SCALES]
        phases = rng.uniform(0, 2 * math.pi, FREQUENCIES * len(LENGTH_SCALES))
        return cls(torch.from_numpy(np.concatenate(drawn, 1)), torch.from_numpy(phases), blocks.input_length)

    @property
    def sizes(self) -> tuple[int, ...]:
        """Columns per block."""
        return (1, len(self.frequencies), *[FREQUENCIES] * len(LENGTH_SCALES))

    def __call__(self, features: Features) -> Tensor:
        x = scaled_inputs(features.inputs, self.scale)
        return with_constant(
            torch.cat([x, math.sqrt(2 / FREQUENCIES) * torch.cos(x @ self.frequencies + self.phases)], 1)
        )

    def dot(self, features: Features, weights: Tensor) -> Tensor:
        return self(features) @ weights

    def predicted(self, features: Features, belief: BayesLinear) -> tuple[Tensor, Tensor]:
        return predicted_from(self(features), belief)


def quadratic_columns(x: Tensor) -> Tensor:
    """[1, x, x_i x_j for i <= j]: (n, d) -> (n, 1 + d + d(d + 1)/2)."""
    i, j = torch.triu_indices(x.shape[1], x.shape[1])
    return with_constant(torch.cat([x, x[:, i] * x[:, j]], 1))

    def predicted(self, features: Features, belief: BayesLinear) -> tuple[Tensor, Tensor]:
        return predicted_from(self(features), belief)

    return None


def predicted_from(columns: Tensor, belief: BayesLinear) -> tuple[Tensor, Tensor]:
    """Means and standard deviations of columns (n, p): (n,), (n,)."""
    return belief.means(columns), belief.widths(columns)


def scaled_inputs(inputs: Tensor, scale: float) -> Tensor:
    """Net inputs without their constant, divided by `scale`, their typical length: (n, d + 1) -> (n, d)."""
    return inputs[:, :-1] / scale
