"""Basis functions of contexts: what linear models read, in blocks that share one prior variance each."""

import math
from dataclasses import dataclass
from typing import Protocol, Self

import numpy as np
import torch
from torch import Tensor

from neuclust.models.bayes_linear import with_constant
from neuclust.policies.auto.features import FeatureBlocks, Features
from neuclust.randomness import stream

FREQUENCIES = 100  # per length scale
LENGTH_SCALES = (0.5, 1.5)  # of the two RBF kernels, in typical lengths of a context
FOURIER_VARIANCES = (0.1, 0.1, 0.1, 0.1)  # prior: of the constant, of the context, of the features of each length scale


class Basis(Protocol):
    """Maps contexts to columns (n, p); `dot` is columns times weights (p,) -> (n,)."""

    def __call__(self, features: Features) -> Tensor: ...

    def dot(self, features: Features, weights: Tensor) -> Tensor: ...


@dataclass(frozen=True, slots=True)
class BlockColumns:
    """The leading `size` columns of the feature blocks."""

    size: int

    def __call__(self, features: Features) -> Tensor:
        return features.columns(self.size)

    def dot(self, features: Features, weights: Tensor) -> Tensor:
        return features.dot(weights)


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


def quadratic_columns(x: Tensor) -> Tensor:
    """[1, x, x_i x_j for i <= j]: (n, d) -> (n, 1 + d + d(d + 1)/2)."""
    i, j = torch.triu_indices(x.shape[1], x.shape[1])
    return with_constant(torch.cat([x, x[:, i] * x[:, j]], 1))


def scaled_inputs(inputs: Tensor, scale: float) -> Tensor:
    """Net inputs without their constant, divided by `scale`, their typical length: (n, d + 1) -> (n, d)."""
    return inputs[:, :-1] / scale
