"""log det(I + H/λ) by stochastic Lanczos quadrature: random probes, products with H alone, and a standard error.

For A = I + H/λ and probes z of random signs, E zᵀ log(A) z = log det A; Lanczos' tridiagonal matrix with eigenpairs
(θ_k, first entry τ_k) gives zᵀ log(A) z ≈ n Σ τ_k² log θ_k (Ubaru, Chen and Saad). A low-rank part H_r = FFᵀ goes into
a preconditioner P = I + H_r/λ: log det A = log det P + log det P^{−1/2} A P^{−1/2}, whose probes vary far less.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from neuclust.errors import ConfigError
from neuclust.randomness import stream
from neuclust.theory.pivoting import Watch, unwatched

Product = Callable[[Tensor], Tensor]  # H v of a vector (n,)


@dataclass(frozen=True, slots=True)
class Quadrature:
    """An estimate with the standard error over its probes."""

    value: float
    error: float
    probes: int
    steps: int


@dataclass(frozen=True, slots=True)
class Probing:
    """How many probes of how many Lanczos steps, drawn with a seed."""

    probes: int = 30
    steps: int = 30
    seed: int = 0

    def __post_init__(self) -> None:
        if self.probes < 2 or self.steps < 1:
            wanted = "at least 2 probes (for an error) of at least 1 step"
            raise ConfigError(f"Lanczos quadrature: expected {wanted}, got {self.probes} and {self.steps}")


class Preconditioner:
    """P = I + FFᵀ/λ by the eigenpairs of FᵀF: its log-determinant and P^{−1/2}."""

    def __init__(self, factor: Tensor, ridge: float) -> None:
        values, vectors = torch.linalg.eigh(factor.T @ factor)
        kept = values > 1e-12 * float(values.max()) if len(values) else values > 0
        values = values[kept]
        self._basis = factor @ vectors[:, kept] / values.sqrt()  # (n, r) orthonormal
        self._shrink = (1 + values / ridge).rsqrt() - 1
        self.logdet = float(torch.log1p(values / ridge).sum())

    def half(self, vector: Tensor) -> Tensor:
        """P^{−1/2} v."""
        made: Tensor = vector + self._basis @ (self._shrink * (self._basis.T @ vector))
        return made


def quadrature(
    product: Product, n: int, ridge: float, factor: Tensor | None = None, probing: Probing | None = None,
    watch: Watch = unwatched,
) -> Quadrature:  # fmt: skip
    """log det(I + H/λ) of an H (n, n) given by its products; `factor` (n, r) of a part of it sharpens the estimate."""
    how = Probing() if probing is None else probing
    first = Preconditioner(torch.zeros(n, 0, dtype=torch.float64) if factor is None else factor, ridge)

    def matrix(vector: Tensor) -> Tensor:
        inside = first.half(vector)
        return first.half(inside + product(inside) / ridge)

    values = np.empty(how.probes)
    for probe in range(how.probes):
        signs = stream(how.seed, "lanczos", probe).integers(0, 2, n) * 2.0 - 1.0
        values[probe] = n * _log_form(matrix, torch.from_numpy(signs) / math.sqrt(n), how.steps)
        watch("Lanczos probes", probe + 1, how.probes)
    error = float(values.std(ddof=1)) / math.sqrt(how.probes)
    return Quadrature(first.logdet + float(values.mean()), error, how.probes, how.steps)


def _log_form(matrix: Product, start: Tensor, steps: int) -> float:
    """zᵀ log(A) z of a unit z by Lanczos with full reorthogonalisation, Σ τ_k² log θ_k."""
    basis, diagonal, beside = [start], list[float](), list[float]()
    for step in range(min(steps, len(start))):
        image = matrix(basis[step])
        diagonal.append(float(image @ basis[step]))
        held = torch.stack(basis)
        for _ in range(2):  # twice is enough (Parlett)
            image = image - held.T @ (held @ image)
        length = float(torch.linalg.vector_norm(image))
        if length < 1e-10 or step + 1 == min(steps, len(start)):
            break
        beside.append(length)
        basis.append(image / length)
    tridiagonal = np.diag(diagonal) + np.diag(beside, 1) + np.diag(beside, -1)
    values, vectors = np.linalg.eigh(tridiagonal)
    return float((vectors[0] ** 2) @ np.log(np.maximum(values, np.finfo(float).tiny)))
