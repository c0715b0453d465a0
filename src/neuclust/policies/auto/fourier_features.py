"""Waves as features: cosines at random, which together tell functions that change from place to place."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from neuclust.policies.auto.features import FeatureBlocks, Features
from neuclust.randomness import stream

WAVES = 100  # of each length
LENGTHS = (0.5, 1.5)  # over which the functions change, in typical lengths of a context
VARIANCES = (0.1, 0.1, 0.1, 0.1)  # of the constant, of the context, of short and of long waves


@dataclass(frozen=True, slots=True)
class Waves:
    """[1, x, √(2/n) cos(ωᵀx + φ)], ω ~ N(0, I/length²) for two lengths: random Fourier features of two RBF kernels."""

    frequencies: Tensor  # (d', 2n)
    phases: Tensor  # (2n,)
    scale: float  # x = what nets read, but the constant, over this

    @classmethod
    def of(cls, blocks: FeatureBlocks, seed: int, purpose: str) -> Waves:
        rng = stream(seed, f"{purpose} waves")
        dim = blocks.input_size - 1
        drawn = [rng.standard_normal((dim, WAVES)) / length for length in LENGTHS]
        phases = rng.uniform(0, 2 * math.pi, WAVES * len(LENGTHS))
        return cls(torch.from_numpy(np.concatenate(drawn, 1)), torch.from_numpy(phases), blocks.input_length)

    @property
    def sizes(self) -> tuple[int, ...]:
        """Columns of every block."""
        return (1, len(self.frequencies), *[WAVES] * len(LENGTHS))

    def __call__(self, features: Features) -> Tensor:
        """(n, 1 + d' + 2n)."""
        x = features.inputs[:, :-1] / self.scale
        waves = math.sqrt(2 / WAVES) * torch.cos(x @ self.frequencies + self.phases)
        return torch.cat([x.new_ones(len(x), 1), x, waves], 1)

    def dot(self, features: Features, weights: Tensor) -> Tensor:
        return self(features) @ weights
