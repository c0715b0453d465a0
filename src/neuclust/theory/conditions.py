"""Condition 1 on the width and Theorem 1's choices of η_1, λ_1 and J, in logarithms: none of them can overflow.

Every constant C is 1 unless given. The lines of Condition 1 are those under which H and the Γ of Eq. 8 stay small:

    m ≥ L^{−3/2} K^{−1/2} λ^{1/2} log^{3/2}(TNL²/Δ),   m ≥ T⁶N⁶L⁶ log(T²N²L/Δ) max{λ_0^{−4}, 1},
    m log^{−3} m ≥ TKL^{12} λ^{−1},  (TK)^7 L^{24} λ^{−7},  (TK)^{10} L^{24} λ^{−1},
    m log^{−3} m ≥ (TK)^7 L^{21} λ^{−7} (λ + TKL)^6 (1 + √(TK/λ))^6.
"""

import math
from dataclasses import dataclass

from neuclust.configuration import AT_LEAST_ONE, BELOW_ONE, POSITIVE, checked


@dataclass(frozen=True, slots=True)
@checked(
    rounds=AT_LEAST_ONE, arms=AT_LEAST_ONE, slate_size=AT_LEAST_ONE, width=AT_LEAST_ONE, depth=AT_LEAST_ONE,
    ridge=POSITIVE, confidence=(POSITIVE[0], BELOW_ONE),
)  # fmt: skip
class Sizes:
    """What the statements are about: T rounds of N arms, slates of K, a net of m × L, λ_1, Δ, and Theorem 1's C_1 to
    C_3."""

    rounds: int
    arms: int
    slate_size: int
    width: float  # a statement may be asked about widths that no net can have
    depth: int
    ridge: float = 1.0
    confidence: float = 0.1
    c_1: float = 1.0
    c_2: float = 1.0
    c_3: float = 1.0

    @property
    def played(self) -> int:
        """TK."""
        return self.rounds * self.slate_size


@dataclass(frozen=True, slots=True)
class Line:
    """One line of Condition 1: log₁₀ of what is asked for and of what is there."""

    name: str
    purpose: str
    required: float
    actual: float

    @property
    def holds(self) -> bool:
        return self.actual >= self.required


def condition_1(sizes: Sizes, smallest: float) -> tuple[Line, ...]:
    """Every line with its two sides; λ_0 = 0 asks for an infinite width."""
    log = math.log10
    t, n, k, depth, ridge, delta = (
        sizes.rounds, sizes.arms, sizes.slate_size, sizes.depth, sizes.ridge, sizes.confidence
    )  # fmt: skip
    tk = sizes.played
    width = log(sizes.width)
    slower = width - 3 * log(max(math.log(sizes.width), 1e-300))  # log₁₀(m/log³m)
    first = math.log(max(t * n * depth**2 / delta, math.e))
    second = math.log(max(t**2 * n**2 * depth / delta, math.e))
    kernel = math.inf if smallest <= 0 else max(-4 * log(smallest), 0.0)
    last = 7 * log(tk) + 21 * log(depth) - 7 * log(ridge) + 6 * log(ridge + tk * depth) + 6 * log1p10(tk / ridge)
    return (
        Line("m", "gradients at the start concentrate",
             -1.5 * log(depth) - 0.5 * log(k) + 0.5 * log(ridge) + 1.5 * log(first), width),
        Line("m", "the net's kernel is near H (Lemma 4)", 6 * log(t * n * depth) + log(second) + kernel, width),
        Line("m/log³m", "weights stay near the start", log(tk) + 12 * log(depth) - log(ridge), slower),
        Line("m/log³m", "Γ₁ of Eq. 8 is about 1", 7 * log(tk) + 24 * log(depth) - 7 * log(ridge), slower),
        Line("m/log³m", "Γ₂ of Eq. 8 is about 1", 10 * log(tk) + 24 * log(depth) - log(ridge), slower),
        Line("m/log³m", "(λ + TKL)Γ₃ of Eq. 8 is about 1", last, slower),
    )  # fmt: skip


def log1p10(ratio: float) -> float:
    """log₁₀(1 + √ratio)."""
    return math.log1p(math.sqrt(ratio)) / math.log(10)


@dataclass(frozen=True, slots=True)
class Choices:
    """Theorem 1's step size, number of steps and range of λ_1."""

    step: float  # η_1 = C_1/(TKmL + mλ_1)
    steps: int  # J = ⌈2 log((λ_1 + C_3 TKL) √(TK/λ_1)) (TKL + λ_1)/(C_1 λ_1)⌉
    printed_steps: float  # 2 log(√(λ_1/TK)/(λ_1 + C_3 TKL)) TKL/(C_1 λ_1), as printed: below 0
    least_ridge: float  # λ_1 ≥ C_2 L K


def theorem_1(sizes: Sizes) -> Choices:
    """What Theorem 1 asks of the optimiser. The printed J is negative, its logarithm being that of a number below 1;
    J as computed makes (1 − η_1 m λ_1)^{J/2} √(TK/λ_1) (λ_1 + C_3 TKL) at most 1."""
    tk, ridge, depth = sizes.played, sizes.ridge, sizes.depth
    span = (ridge + sizes.c_3 * tk * depth) * math.sqrt(tk / ridge)
    # a sum of logarithms: TKmL may be too large for a float
    step = 10.0 ** (math.log10(sizes.c_1) - math.log10(tk * depth + ridge) - math.log10(sizes.width))
    steps = math.ceil(2 * max(math.log(span), 0.0) * (tk * depth + ridge) / (sizes.c_1 * ridge))
    printed = 2 * math.log(1 / span) * tk * depth / (sizes.c_1 * ridge)
    return Choices(step, steps, printed, sizes.c_2 * depth * sizes.slate_size)


def contraction(sizes: Sizes, step: float, steps: int) -> float:
    """(1 − η m λ)^{J/2} √(TK/λ) (λ + C_3 TKL): what J steps leave of the optimisation error, relative to 1."""
    shrink = 1 - step * sizes.width * sizes.ridge
    left = math.pow(max(shrink, 0.0), steps / 2)
    return left * math.sqrt(sizes.played / sizes.ridge) * (sizes.ridge + sizes.c_3 * sizes.played * sizes.depth)
