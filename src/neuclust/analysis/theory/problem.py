"""The analysis of one problem for one policy's sizes: kernel, dimension, norm bound, conditions and assumptions."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from neuclust.analysis.theory.clustering import ClusterNumbers, cluster_numbers
from neuclust.analysis.theory.contexts import Sample, Sampling, sample
from neuclust.environments.payments import Amounts
from neuclust.environments.rewards import SlateReward
from neuclust.environments.slates import SlateEnvironment
from neuclust.errors import ConfigError
from neuclust.experiment.contestants import Contestant
from neuclust.models.arm_model import ArmModelConfig
from neuclust.models.encoder import Encoder, EncoderConfig
from neuclust.registry import policy_config
from neuclust.slates.slate_model import SlateModelConfig
from neuclust.theory import effective_dimension as dimension
from neuclust.theory.assumptions import (
    Check,
    contexts_check,
    entries,
    monotone,
    noise,
    separation,
    smoothness,
)
from neuclust.theory.bounds import least_separation
from neuclust.theory.conditions import Choices, Line, Sizes, condition_1, theorem_1
from neuclust.theory.effective_dimension import Estimate
from neuclust.theory.norm_bound import NormBound, norm_bound
from neuclust.theory.ntk import CONVENTIONS, TangentKernel
from neuclust.theory.pivoting import Watch, unwatched

GROWTH = (125, 250, 500, 1000, 2000, 4000)
CLUSTERS = 22  # the paper's, for policies without clusters
MOST_PARAMETERS = 20_000_000  # of a net that can be played here: 160 MB


@dataclass(frozen=True, slots=True)
class Shape:
    """What a policy brings to the analysis: its encoder, net, F and number of clusters."""

    arms: ArmModelConfig
    slate: SlateModelConfig
    clusters: int
    neural: bool  # whether it has a net of arms at all

    @classmethod
    def of(cls, contestant: Contestant) -> "Shape":
        config: Any = policy_config(contestant.policy, contestant.preset, contestant.clusters, contestant.settings)
        arms = getattr(config, "arms", None)
        slate, clustering = getattr(config, "slate", None), getattr(config, "clustering", None)
        plain = ArmModelConfig(encoder=EncoderConfig("scale", rho=None))
        return cls(
            arms if isinstance(arms, ArmModelConfig) else plain,
            slate if isinstance(slate, SlateModelConfig) else SlateModelConfig(),
            CLUSTERS if clustering is None else int(clustering.count),
            isinstance(arms, ArmModelConfig),
        )

    def check(self, dim: int) -> None:
        """Refuse nets too wide to be played, before anything overflows."""
        width, depth = self.arms.network.width, self.arms.network.depth
        parameters = width * (dim + 1) + width**2 * (depth - 1)
        if parameters > MOST_PARAMETERS:
            got = f"a width of {float_text(width)} and depth of {depth}, {float_text(parameters)} parameters"
            wanted = f"a net of at most {MOST_PARAMETERS:,} parameters, which can be played and whose widths are finite"
            raise ConfigError(f"expected {wanted}, got {got}; lower network.width or network.depth", field="settings")


def float_text(number: int) -> str:
    """A whole number of any length, shortly."""
    return f"{number:,}" if number < 10**9 else f"about 10^{len(str(number)) - 1}"


@dataclass(frozen=True, slots=True)
class ProblemNumbers:
    """Everything that needs no run."""

    name: str
    sizes: Sizes
    shape: Shape
    sample: Sample
    estimates: tuple[Estimate, ...]
    by_convention: Mapping[str, float]
    growth: tuple[tuple[int, float], ...]
    bound: NormBound
    condition: tuple[Line, ...]
    choices: Choices
    clusters: ClusterNumbers
    assumptions: tuple[Check, ...]

    @property
    def effective_dimension(self) -> float:
        """The exact one, or the middle of the bracket."""
        return self.estimates[0].value


def problem_numbers(
    environment: SlateEnvironment, shape: Shape, how: Sampling, watch: Watch = unwatched
) -> ProblemNumbers:
    """The analysis on distinct contexts of the first rounds."""
    shape.check(environment.dim)
    found = sample(environment, shape.arms.encoder, how, watch)
    net, ridge = shape.arms.network, shape.arms.confidence.ridge
    kernel = TangentKernel(net.depth)
    sizes = Sizes(
        environment.horizon, found.arms, environment.slate_size, net.width, net.depth, ridge,
        shape.arms.schedule.confidence,
    )  # fmt: skip
    estimates, by_convention, growth = _dimensions(found, kernel, ridge, watch)
    bound = norm_bound(*found.paired, kernel)
    encoder = Encoder(shape.arms.encoder, environment.dim, even=False)
    encoder.settle(environment.round(1).read)
    clusters = cluster_numbers(environment, encoder, shape.clusters, how.seed, watch)
    checks = _checks(environment, found, bound, clusters)
    return ProblemNumbers(
        environment.name, sizes, shape, found, estimates, by_convention, growth, bound,
        condition_1(sizes, bound.smallest), theorem_1(sizes), clusters, checks,
    )  # fmt: skip


Dimensions = tuple[tuple[Estimate, ...], dict[str, float], tuple[tuple[int, float], ...]]


def _dimensions(found: Sample, kernel: TangentKernel, ridge: float, watch: Watch) -> Dimensions:
    """d̃ by every method, by every convention of H, and as the set grows."""
    folded, small = found.folded, len(found.folded.rays) <= dimension.MOST_EXACT
    estimates = [dimension.exact(folded, kernel, ridge)] if small else []
    estimates.append(dimension.bracket(folded, kernel, ridge, watch=watch)[0])
    if small:
        estimates.append(dimension.lanczos(folded, kernel, ridge, watch=watch)[0])
    others = (TangentKernel(kernel.depth, each) for each in CONVENTIONS)
    by_convention = {str(each.convention): dimension.exact(folded, each, ridge).value for each in others if small}
    growth = dimension.growth(folded, kernel, ridge, GROWTH) if small else []
    return tuple(estimates), by_convention, tuple(growth)


def _checks(
    environment: SlateEnvironment, found: Sample, bound: NormBound, clusters: ClusterNumbers
) -> tuple[Check, ...]:
    pays = environment.pays
    values = pays.values if isinstance(pays, SlateReward) else (0.0, 1.0)
    largest = float(np.diff(values).max())
    worst = clusters.reverse
    floor = least_separation(worst.reverse, worst.least, found.contexts.shape[1])
    times = np.array(clusters.times, dtype=np.float64)
    others, best = (np.array([getattr(each, name) for each in clusters.aligned]) for name in ("others", "best"))
    checks = [
        smoothness(found.steepest, *found.paired, largest),
        monotone(found.flattest),
        noise(found.lowest_mean, found.highest_mean, isinstance(pays, Amounts)),
        contexts_check(found.contexts, bound, found.folded.parallel),
    ]
    if len(times):
        checks.append(separation(times, others, best, floor))
    return (*checks, entries(worst, found.contexts.shape[1]))
