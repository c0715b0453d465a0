"""Bayesian linear regression on blocks of columns, prior variances by type-II maximum likelihood."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor

from neuclust.configuration import AT_LEAST_ONE, NON_NEGATIVE, POSITIVE, check_ranges, checked
from neuclust.kernels.evidence import block_step
from neuclust.models.bayes_linear import BayesLinear, rescale
from neuclust.models.state import Shape, expect, nested, take, take_number, under
from neuclust.policies.auto.features import FeatureBlocks, Features
from neuclust.policies.auto.plays import Played, Plays, RewardScale
from neuclust.policies.auto.reward_range import Rescaling

# prior variance of a block's contribution to the log-odds
PRIOR = {
    "constant": 1.0, "pooled": 2.0, "average": 2.0, "mask": 0.5, "pooled-square": 1.0, "squares": 1.0, "crosses": 1.0,
}  # fmt: skip

MOVED = 0.05  # logarithm of the unit


@dataclass(frozen=True, slots=True)
@checked(noise=POSITIVE, every=AT_LEAST_ONE, steps=NON_NEGATIVE)
class BlockRegressionConfig:
    """Initial noise variance σ²; after every `every` slates `steps` evidence steps, clipped to the bounds. Noise is in
    units of p̄(1 − p̄), its value for rewards of 0 and 1, variances in units of (p̄(1 − p̄))², which makes them those of
    log-odds."""

    noise: float = 0.8
    every: int = 10
    steps: int = 2
    least_variance: float = 1.6e-3
    most_variance: float = 160.0
    least_noise: float = 0.08
    most_noise: float = 1.2

    def __post_init__(self) -> None:
        above = POSITIVE[0]
        check_ranges(self, least_variance=(above, self.most_variance), least_noise=(above, self.most_noise))


def due(slates: int, every: int) -> bool:
    """Whether variances are estimated again: after every `every` slates, later whenever their number grew by 2 %."""
    return slates % max(every, slates // 50) == 0


class BlockPrior:
    """The block of each column, `of` (p,), prior variances s (B,), of which the constant's stays, and the noise σ²."""

    def __init__(self, sizes: Sequence[int], variances: Sequence[float], noise: float = 1.0) -> None:
        self.noise = noise
        self.size = sum(sizes)
        self.of = torch.repeat_interleave(torch.arange(len(sizes)), torch.tensor(sizes))
        self.variances = torch.tensor(variances, dtype=torch.float64)

    @classmethod
    def leading(cls, blocks: FeatureBlocks, last: str, noise: float = 1.0) -> Self:
        """Of the feature blocks up to the one named `last`."""
        sizes = blocks.sizes(last)
        return cls(list(sizes.values()), [PRIOR[name] for name in sizes], noise)

    @property
    def by_column(self) -> Tensor:
        """s of every column, (p,)."""
        return self.variances[self.of]

    def step(self, mean: Tensor, variances: Tensor, bounds: tuple[float, float]) -> Tensor:
        """One evidence step; the number of weights the data determines per block, (B,)."""
        stepped, determined = block_step(mean, variances, self.variances, self.of, bounds)
        self.variances = torch.cat([self.variances[:1], stepped[1:]])
        return determined

    def belief(self, tracked: bool = False) -> BayesLinear:
        """What is believed before any data."""
        belief = BayesLinear(self.by_column, self.noise, tracked)
        self.apply(belief, RewardScale())
        return belief

    def apply(self, belief: BayesLinear, scale: RewardScale) -> None:
        """Set a belief's prior in units of the rewards: variances s p̄²(1 − p̄)², noise σ² p̄(1 − p̄)."""
        belief.reweight(self.by_column * scale.unit**2, self.noise * scale.unit)

    def follow(self, belief: BayesLinear, scale: RewardScale) -> None:
        """The same where the unit has moved by more than `MOVED`: another prior takes a new factor."""
        if abs(math.log(self.noise * scale.unit / belief.noise_variance)) > MOVED:
            self.apply(belief, scale)


def evidence_step(config: BlockRegressionConfig, prior: BlockPrior, belief: BayesLinear, scale: RewardScale) -> None:
    """One fixed-point step (MacKay, 1992) towards the prior variances and the noise of the largest evidence."""
    variances, unit = belief.variances() / scale.unit**2, scale.unit
    slopes = belief.mean / unit
    determined = prior.step(slopes, variances, (config.least_variance, config.most_variance))
    noise = belief.data.residual(belief.mean) / max(1.0, belief.data.count - float(determined.sum()))
    prior.noise = min(max(noise / unit, config.least_noise), config.most_noise)
    prior.apply(belief, scale)


def taken_variances(state: Mapping[str, Tensor], like: Tensor) -> Tensor:
    """Saved prior variances of blocks."""
    variances = take(state, "variances", like)
    expect(bool((variances > 0).all()), "variances above 0", variances.tolist())
    return variances


def regression_state(prior: BlockPrior, belief: BayesLinear) -> dict[str, Tensor]:
    """The state of a regression with a block prior."""
    noise = torch.tensor(prior.noise, dtype=torch.float64)
    return {"variances": prior.variances.clone(), "noise": noise, **nested("belief", belief.state_dict())}


def load_regression(prior: BlockPrior, belief: BayesLinear, state: Mapping[str, Tensor]) -> None:
    """Set both from a saved state."""
    belief.load_state_dict(under("belief", state))
    prior.variances, prior.noise = taken_variances(state, prior.variances), take_number(state, "noise")
    expect(prior.noise > 0, "noise above 0", prior.noise)


def regression_shapes(size: int) -> Iterator[tuple[str, Shape]]:
    """What a state of a regression on so many columns holds at least."""
    yield "belief.gram", (size, size)


class BlockRegression:
    """Score mᵀx + bonus·√(xᵀΛ⁻¹x), x the feature blocks up to the one named `last`."""

    def __init__(self, config: BlockRegressionConfig, blocks: FeatureBlocks, last: str, bonus: float = 0.0) -> None:
        self.config, self.bonus = config, bonus
        self.prior = BlockPrior.leading(blocks, last, config.noise)
        self.belief = self.prior.belief(tracked=bonus == 0)

    def means(self, features: Features) -> Tensor:
        return self.belief.means(features.columns(self.prior.size))

    def scores(self, features: Features, t: int) -> tuple[Tensor, Tensor]:  # noqa: ARG002
        if self.bonus == 0:
            means = features.dot(self.belief.mean)
            return means, means
        means, widths = features.predicted(self.belief)
        return means + self.bonus * widths, means

    def learn(self, played: Played, plays: Plays) -> None:
        self.belief.observe(played.features.columns(self.prior.size), played.rewards, played.exposures)
        self.prior.follow(self.belief, plays.scale)
        if plays.informed and due(plays.slates, self.config.every):
            for _ in range(self.config.steps):
                evidence_step(self.config, self.prior, self.belief, plays.scale)

    def rescale(self, change: Rescaling, scale: RewardScale) -> None:
        rescale(self.belief, *change)
        self.prior.apply(self.belief, scale)

    def state_dict(self) -> dict[str, Tensor]:
        return regression_state(self.prior, self.belief)

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        load_regression(self.prior, self.belief, state)
