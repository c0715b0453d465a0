"""How much to explore: γ for the next round, from what has been seen so far, and ε-greedy slates."""

import math
from dataclasses import dataclass, replace
from typing import Literal

from neuclust.configuration import BELOW_ONE, NON_NEGATIVE, POSITIVE, checked
from neuclust.errors import ConfigError

_FACTORS = ("noise", "norm_bound", "c_1", "c_gamma_1", "c_gamma_2", "c_gamma_3")  # none may turn a bonus around


@dataclass(frozen=True, slots=True)
@checked(gamma=NON_NEGATIVE, confidence=(POSITIVE[0], BELOW_ONE), **dict.fromkeys(_FACTORS, NON_NEGATIVE))
class ScheduleConfig:
    """`constant` γ; `det`, from the log-determinant; `theory`, Eq. 8 with all its Γ terms.
    `noise` is ζ (½ for 0/1 rewards), `confidence` Δ, `norm_bound` S; the `c_*` are Eq. 8's constants."""

    kind: Literal["constant", "det", "theory"] = "constant"
    gamma: float = 1.0
    noise: float = 0.5
    confidence: float = 0.1
    norm_bound: float = 1.0
    c_1: float = 1.0
    c_gamma_1: float = 1.0
    c_gamma_2: float = 1.0
    c_gamma_3: float = 1.0


@dataclass(frozen=True, slots=True)
class Progress:
    """What γ depends on after t rounds: n observations, log det Z_t/det λI, and the net's shape."""

    observations: int  # tK where every reward was seen
    logdet: float
    ridge: float
    width: int
    depth: int
    step: float  # η_1 of the sum loss
    steps: int  # J


@dataclass(frozen=True, slots=True)
class Radius:
    """γ as a function of the log-determinant: factor·√(logdet + extra) + offset."""

    factor: float
    extra: float
    offset: float

    def at(self, logdet: float) -> float:
        return self.factor * math.sqrt(max(logdet, 0.0) + self.extra) + self.offset


def exploration(config: ScheduleConfig, progress: Progress) -> float:
    """γ_t, used with Z_t in round t + 1."""
    return radius(config, progress).at(progress.logdet)


def radius(config: ScheduleConfig, progress: Progress) -> Radius:
    """γ_t up to its log-determinant, which alone differs between runs of one configuration after as many rounds.

    `det`: ζ √(logdet + 2 log(1/Δ)) + √λ S.
    """
    if config.kind == "constant":
        return Radius(0.0, 0.0, config.gamma)
    plain = Radius(config.noise, -2 * math.log(config.confidence), math.sqrt(progress.ridge) * config.norm_bound)
    return plain if config.kind == "det" or progress.observations == 0 else _theory_radius(config, progress, plain)


def gamma_terms(config: ScheduleConfig, progress: Progress) -> tuple[float, float, float]:
    """Γ_1, Γ_2, Γ_3 of Eq. 8; (1, 0, 0) before any observation."""
    n, ridge, depth, width = progress.observations, progress.ridge, progress.depth, progress.width
    if n == 0:
        return 1.0, 0.0, 0.0
    decay = width ** (-1 / 6) * math.sqrt(math.log(width))
    first = math.sqrt(1 + config.c_gamma_1 * n ** (7 / 6) * depth**4 * ridge ** (-7 / 6) * decay)
    second = config.c_gamma_2 * n ** (5 / 3) * depth**4 * ridge ** (-1 / 6) * decay
    third = config.c_gamma_3 * n ** (7 / 6) * depth**3.5 * ridge ** (-7 / 6) * decay * (1 + math.sqrt(n / ridge))
    return first, second, third


def theory_gamma(config: ScheduleConfig, progress: Progress) -> float:
    """Eq. 8: Γ_1 (ζ √(logdet + Γ_2 − 2 log Δ) + √λ S) + (λ + C_1 n L) ((1 − η m λ)^{J/2} √(n/λ) + Γ_3)."""
    return exploration(replace(config, kind="theory"), progress)


def _theory_radius(config: ScheduleConfig, progress: Progress, plain: Radius) -> Radius:
    n, ridge = progress.observations, progress.ridge
    shrink = progress.step * progress.width * ridge
    if not 0 < shrink < 1:
        raise ConfigError(f"schedule 'theory' needs 0 < η·m·λ < 1 (Eq. 8), got {shrink:g}; lower training.step")
    first, second, third = gamma_terms(config, progress)
    optimisation = math.pow(1 - shrink, progress.steps / 2) * math.sqrt(n / ridge) + third
    offset = first * plain.offset + (ridge + config.c_1 * n * progress.depth) * optimisation
    return Radius(first * plain.factor, plain.extra + second, offset)
