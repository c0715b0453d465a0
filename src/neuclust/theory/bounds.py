"""γ_t of Eq. 8 term by term, e_t, the bounds on F, Lemma 3's four terms, Lemma 11 and the drift of the weights.

Constants are 1 unless given. What does not hold as printed is computed as it must be (docs/theory.md, "Where the
statement does not hold"): 9T^{−βα} is 4 + 2ε by Lemma 1's own choice, never T^{−1}.
"""

import math
from dataclasses import dataclass

from neuclust.models.schedules import Progress, ScheduleConfig, gamma_terms


@dataclass(frozen=True, slots=True)
class GammaTerms:
    """Eq. 8 after t rounds: γ = Γ_1 (noise + norm) + factor (descent + Γ_3)."""

    gamma_1: float
    gamma_2: float
    gamma_3: float
    noise: float  # ζ √(log det + Γ_2 − 2 log Δ)
    norm: float  # √λ S
    factor: float  # λ + C_1 tKL
    descent: float  # (1 − η m λ)^{J/2} √(tK/λ)

    @property
    def statistical(self) -> float:
        return self.gamma_1 * (self.noise + self.norm)

    @property
    def optimisation(self) -> float:
        return self.factor * (self.descent + self.gamma_3)

    @property
    def value(self) -> float:
        return self.statistical + self.optimisation


def eq_8(config: ScheduleConfig, progress: Progress) -> GammaTerms:
    """Every term of γ_t; before any observation Γ = (1, 0, 0) and there is nothing to optimise.

    Where η m λ ≥ 1 descent does not contract: the term is then computed with |1 − η m λ| instead of refused.
    """
    n, ridge = progress.observations, progress.ridge
    first, second, third = gamma_terms(config, progress)
    spread = max(progress.logdet, 0.0) + second - 2 * math.log(config.confidence)
    noise, norm = config.noise * math.sqrt(spread), math.sqrt(ridge) * config.norm_bound
    if n == 0:
        return GammaTerms(first, second, third, noise, norm, 0.0, 0.0)
    shrink = abs(1 - progress.step * progress.width * ridge)
    left = 0.5 * progress.steps * math.log(max(shrink, 1e-300)) + 0.5 * math.log(n / ridge)
    descent = math.exp(min(left, 700.0))
    return GammaTerms(first, second, third, noise, norm, ridge + config.c_1 * n * progress.depth, descent)


@dataclass(frozen=True, slots=True)
class Constants:
    """Constants of Lemma 3 and e_t that the paper leaves open; n and L_m are the width and depth of F."""

    lipschitz: float = 1.0  # B of u in the means
    context_lipschitz: float = 1.0  # B' of h in the contexts, in ℓ1
    c_3: float = 1.0
    c_4: float = 1.0
    c_matching: float = 1.0  # C''
    epsilon: float = 0.0  # ε of Lemma 1
    slate_width: int = 15
    slate_depth: int = 1


def offset(gamma: float, progress: Progress, constants: Constants) -> float:
    """e_t = (C_3 γ_{t−1} (tK)^{1/6} L^{7/2} + C_4 (tK)^{2/3}) m^{−1/6} λ^{−2/3} √log m."""
    n, width = progress.observations, progress.width
    decay = math.pow(width, -1 / 6) * math.pow(progress.ridge, -2 / 3) * math.sqrt(math.log(width))
    lifted = constants.c_3 * gamma * math.pow(n, 1 / 6) * math.pow(progress.depth, 3.5)
    return (lifted + constants.c_4 * math.pow(n, 2 / 3)) * decay


def lemma_1(rounds: int, ridge: float, epsilon: float = 0.0) -> float:
    """Lemma 1: f ≤ 4 · 9T^{−βα} √(T/λ) with 9T^{−βα} = 4 + 2ε, so 4 (4 + 2ε) √(T/λ)."""
    return 4 * (4 + 2 * epsilon) * math.sqrt(rounds / ridge)


def largest_rounds() -> float:
    """The largest T for which "choose βα = 1" agrees with 9T^{−βα} = 4 + 2ε ≥ 4: 9/4."""
    return 9 / 4


def slate_term(slate_size: int, rounds: int, ridge: float, constants: Constants) -> float:
    """P = 4BK² λ^{−1/2} (9T^{−βα}) √T n^{L_m} = BK times F's bound, its price per round (Lemmas 1 and 2)."""
    return constants.lipschitz * slate_size * slate_bound(slate_size, rounds, ridge, constants)


def printed_slate_term(slate_size: int, rounds: int, ridge: float, constants: Constants) -> float:
    """P with βα = 1, as Theorem 1 chooses it: 4BK² λ^{−1/2} 9 T^{−1/2} n^{L_m}. It would need T ≤ 9/4."""
    width = math.pow(constants.slate_width, constants.slate_depth)
    return 36 * constants.lipschitz * slate_size**2 * width / math.sqrt(rounds * ridge)


def slate_bound(slate_size: int, rounds: int, ridge: float, constants: Constants) -> float:
    """Lemma 2's upper end: F ≤ K · 4 (4 + 2ε) √(T/λ) n^{L_m}."""
    width = math.pow(constants.slate_width, constants.slate_depth)
    return slate_size * lemma_1(rounds, ridge, constants.epsilon) * width


def ridge_ends(value: float, least: float, most: float, ridge: float) -> tuple[float, float]:
    """The λ_1 for which e_T ≤ F ≤ its bound, given e_T and the bound at `ridge`: e_T falls like λ^{−2/3} and the bound
    like λ^{−1/2}, so λ lies between ridge (e_T/F)^{3/2} and ridge (bound/F)². NaN where F is not above 0."""
    if not value > 0:
        return math.nan, math.nan
    return ridge * (least / value) ** 1.5, ridge * (most / value) ** 2


def exploration_term(gamma: float, squares: float, slate_size: int, constants: Constants) -> float:
    """Y_t = 2Bγ_T √K √(Σ_{i ∈ S_t} w_{t,i}²)."""
    return 2 * constants.lipschitz * gamma * math.sqrt(slate_size * squares)


def optimism_term(offset: float, slate_size: int, constants: Constants) -> float:
    """U_t = BK e_t."""
    return constants.lipschitz * slate_size * offset


@dataclass(frozen=True, slots=True)
class ClusterTerms:
    """What E_t is made of in one round: δ_t, P_t, and Assumption 6's Q and Y."""

    others: float  # δ_t: how near the played cluster's centroid is to another cluster's
    best: float  # P_t: and to that of the best cluster
    reverse: float  # Q
    least: float  # Y


def cluster_term(terms: ClusterTerms, slate_size: int, arms: int, dim: int, constants: Constants) -> float:
    """E_t = B'BK · NQδ_t√d/Y · (C''/P_t + 1); infinite where centroids are orthogonal to the best or 0."""
    if terms.least <= 0 or terms.best <= 0 or not math.isfinite(terms.reverse):
        return math.inf
    scale = constants.context_lipschitz * constants.lipschitz * slate_size
    reach = arms * terms.reverse * terms.others * math.sqrt(dim) / terms.least
    return scale * reach * (constants.c_matching / terms.best + 1)


def least_separation(reverse: float, least: float, dim: int) -> float:
    """Y/(Q√d): δ_t cannot be below it, since ‖x̄‖_1 ≥ 1 for unit contexts of entries ≥ 0 and ‖x̄‖_1 ≤ Qδ_t√d/Y."""
    return least / (reverse * math.sqrt(dim)) if reverse > 0 and math.isfinite(reverse) else 0.0


def drift_bound(observations: int, width: int, ridge: float) -> float:
    """‖θ_t − θ_0‖ ≤ 2√(tK/(mλ))."""
    return 2 * math.sqrt(observations / (width * ridge))


def width_sum_bound(dimension: float, rounds: int, arms: int, ridge: float) -> float:
    """Lemma 11: Σ_t Σ_{i ∈ S_t} w² ≤ 2d̃ log(1 + TN/λ) + 2."""
    return 2 * dimension * math.log1p(rounds * arms / ridge) + 2
