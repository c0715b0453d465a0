"""The norm bound S ≥ √(2 hᵀH⁻¹h) and λ_0, the smallest eigenvalue of H, on a set of distinct contexts.

h is in the span of the kernel where S settles as the jitter falls, and outside of it where S grows without end: so does
a mean reward that is not homogeneous along a ray of contexts, where H is singular.
"""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from neuclust.theory.ntk import TangentKernel

JITTERS = (1e-2, 1e-4, 1e-6, 1e-8)  # of tr(H)/n
ROUNDING = 1e-12  # eigenvalues below this share of the largest are 0
SETTLED = 1.1  # S may grow by this factor between the last two jitters


@dataclass(frozen=True, slots=True)
class NormBound:
    """S by jitter, λ_0, and the largest eigenvalue."""

    by_jitter: tuple[tuple[float, float], ...]  # (jitter, √(2 hᵀ(H + jitter·tr/n I)⁻¹h))
    smallest: float  # λ_0; 0 where it is rounding
    largest: float

    @property
    def value(self) -> float:
        """S at the smallest jitter."""
        return self.by_jitter[-1][1]

    @property
    def settles(self) -> bool:
        """Whether S hardly moves as the jitter falls, so that h lies in the kernel's span."""
        (_, before), (_, last) = self.by_jitter[-2:]
        return last <= SETTLED * before

    @property
    def distance(self) -> float:
        """Lemma 4's bound on √m‖θ* − θ_0‖, √(hᵀH⁻¹h) = S/√2."""
        return self.value / math.sqrt(2)


def norm_bound(distinct: Tensor, means: Tensor, kernel: TangentKernel) -> NormBound:
    """S and λ_0 on distinct contexts (n, d) with mean rewards (n,), by one eigendecomposition."""
    values, vectors = torch.linalg.eigh(kernel(distinct))
    squares = (vectors.T @ means.to(torch.float64)) ** 2
    largest, unit = float(values[-1]), float(values.clamp(min=0).sum()) / len(values)
    found = [(each, math.sqrt(2 * float((squares / (values.clamp(min=0) + each * unit)).sum()))) for each in JITTERS]
    smallest = float(values[0])
    return NormBound(tuple(found), smallest if smallest > ROUNDING * largest else 0.0, largest)
