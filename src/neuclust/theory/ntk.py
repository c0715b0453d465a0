"""The neural tangent kernel of the arm network in closed form, for any depth, and what a finite net has instead.

For Σ^{(1)} = ⟨x, y⟩ and c = Σ/(‖x‖‖y‖), with φ = arccos c (Cho and Saul's arc-cosine kernels):

    Σ ← ‖x‖‖y‖ κ_1(c),  κ_1 = (√(1 − c²) + (π − φ) c)/π;    H̃ ← H̃ κ_0(c) + Σ,  κ_0 = (π − φ)/π,  H̃^{(1)} = Σ^{(1)}.

Norms are kept by every step, so the recursion runs on cosines, c ← κ_1(c). The kernel is homogeneous of degree 1 in
either argument: k(ax, by) = ab k(x, y) for a, b ≥ 0.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from neuclust.configuration import AT_LEAST_ONE, checked
from neuclust.kernels.initial import initial_network
from neuclust.kernels.network import gradient_factors, gram
from neuclust.randomness import stream

Convention = Literal["initialised", "halved", "printed"]
CONVENTIONS: tuple[Convention, ...] = ("initialised", "halved", "printed")


@dataclass(frozen=True, slots=True)
@checked(depth=AT_LEAST_ONE)
class TangentKernel:
    """k(x, y) of a net with `depth` = L hidden layers.

    `initialised`: H̃^{(L+1)}, the limit of ⟨g, g'⟩/m for the last layer N(0, 2/m), as the paper draws it.
    `halved`: (H̃^{(L+1)} + Σ^{(L+1)})/2, the limit for N(0, 1/m).  `printed`: (H̃^{(L)} + Σ^{(L)})/2, one layer short.
    """

    depth: int = 1
    convention: Convention = "initialised"

    @property
    def steps(self) -> int:
        """How often the recursion is taken from Σ^{(1)}."""
        return self.depth - (self.convention == "printed")

    def __call__(self, x: Tensor, y: Tensor | None = None) -> Tensor:
        """The kernel matrix of rows x (n, d) with rows y (k, d), or with themselves: (n, k)."""
        (left, a), (right, b) = _directions(x), _directions(x if y is None else y)
        values = self.of_cosines(left @ right.T)
        values.mul_(a[:, None]).mul_(b[None, :])
        if y is None:  # a cosine of 1 − 1e-16 already costs 1e-8 in κ_0
            values.fill_diagonal_(0).add_(torch.diag(self.diagonal(x)))
        return values

    def of_cosines(self, cosines: Tensor) -> Tensor:
        """k of unit vectors by their cosines (…); the argument is overwritten."""
        c = cosines.clamp_(-1.0, 1.0)
        total = c.clone()
        for _ in range(self.steps):
            rest = torch.acos(c).neg_().add_(math.pi).div_(math.pi)  # κ_0
            following = (c * c).neg_().add_(1.0).clamp_(min=0.0).sqrt_().div_(math.pi).addcmul_(rest, c)  # κ_1
            total.mul_(rest).add_(following)
            c = following.clamp_(max=1.0)
        return total if self.convention == "initialised" else total.add_(c).div_(2.0)

    def diagonal(self, x: Tensor) -> Tensor:
        """k(x, x) = ‖x‖² times the number of layers that count: (n,)."""
        layers = self.steps + 1
        return (x * x).sum(1) * (layers if self.convention == "initialised" else (layers + 1) / 2)

    def row_sums(self, x: Tensor, vectors: Tensor, block: int = 2048) -> Tensor:
        """H v for vectors (n, k), in blocks of rows, without ever holding H: (n, k)."""
        parts = [self(x[i : i + block], x) @ vectors for i in range(0, len(x), block)]
        return torch.cat(parts)


def _directions(x: Tensor) -> tuple[Tensor, Tensor]:
    """Rows of length 1, 0 where a row is 0, and their lengths."""
    norms = torch.linalg.vector_norm(x, dim=1)
    return x / norms.clamp(min=torch.finfo(x.dtype).tiny)[:, None], norms


def empirical_kernel(x: Tensor, width: int, depth: int, seed: int = 0, rule: str = "mirrored") -> Tensor:
    """⟨g(x; θ_0), g(y; θ_0)⟩/m of one freshly initialised net of `width` m, (n, n)."""
    rng = stream(seed, "tangent kernel", width)
    net = initial_network(rule, x.shape[1], width, depth, math.sqrt(width), rng)
    factors = gradient_factors(net, x)
    return gram(factors, factors) / width


@dataclass(frozen=True, slots=True)
class WidthError:
    """How far ⟨g, g'⟩/m lies from the closed form at one width: root mean square over pairs and nets, relative to
    that of the closed form, and the standard error over the nets."""

    width: int
    error: float
    spread: float


def width_errors(
    x: Tensor, kernel: TangentKernel, widths: Sequence[int], nets: int = 8, rule: str = "mirrored"
) -> Iterator[WidthError]:
    """The error of finite nets against the closed form, which falls like 1/√m where the convention is theirs."""
    exact = kernel(x)
    scale = float(exact.square().mean().sqrt())
    for width in widths:
        misses = [empirical_kernel(x, width, kernel.depth, seed, rule) - exact for seed in range(nets)]
        errors = torch.tensor([float(miss.square().mean().sqrt()) / scale for miss in misses], dtype=torch.float64)
        spread = float(errors.std() / math.sqrt(nets)) if nets > 1 else math.nan
        yield WidthError(width, float(errors.square().mean().sqrt()), spread)


def decay_exponent(errors: Sequence[WidthError]) -> float:
    """The slope of log error against log width by least squares: −½ for an error like 1/√m."""
    x = torch.log(torch.tensor([float(each.width) for each in errors], dtype=torch.float64))
    y = torch.log(torch.tensor([each.error for each in errors], dtype=torch.float64))
    centred = x - x.mean()
    return float((centred @ y) / (centred @ centred))
